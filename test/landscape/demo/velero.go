package demo

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	velerov1alpha1 "github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// awaitVelero waits until the Velero is Ready and tells every change of its conditions.
func (d *demo) awaitVelero(ctx context.Context) error {
	onboarding, err := d.veleroClient()
	if err != nil {
		return err
	}
	told := map[string]string{}
	return d.await(ctx, func(ctx context.Context) (bool, error) {
		velero := &velerov1alpha1.Velero{}
		if err := onboarding.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, velero); err != nil {
			return false, err
		}
		for _, condition := range velero.Status.Conditions {
			if line := describe(condition); told[condition.Type] != line {
				told[condition.Type] = line
				d.Report("  %s", line)
			}
		}
		current := velero.Status.ObservedGeneration == velero.Generation
		return current && meta.IsStatusConditionTrue(velero.Status.Conditions, velerov1alpha1.ConditionReady), nil
	})
}

func (d *demo) veleroClient() (client.Client, error) {
	config, err := d.Onboarding.RESTConfig()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	utilruntime.Must(velerov1alpha1.AddToScheme(scheme))
	return client.New(config, client.Options{Scheme: scheme})
}

func describe(condition metav1.Condition) string {
	line := fmt.Sprintf("%s=%s %s", condition.Type, condition.Status, condition.Reason)
	if condition.Message != "" {
		line += ": " + condition.Message
	}
	return line
}
