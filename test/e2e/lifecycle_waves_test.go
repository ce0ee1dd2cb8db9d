package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// waves: one edit of the ProviderConfig reaches many tenants a few at a time.
func waves(t *testing.T) {
	tenants := []tenant{newTenant(t, "waves", "one"), newTenant(t, "waves", "two"), newTenant(t, "waves", "three")}
	for _, tenant := range tenants {
		tenant.orderControlPlane(t)
		tenant.orderVelero(t, newVersion)
	}
	for _, tenant := range tenants {
		tenant.awaitReady(t)
	}
	t.Run("rollout: an edit of the ProviderConfig changes three tenants, one at a time | all changed, never two at once", func(t *testing.T) {
		changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) {
			spec.Rollout = &v1alpha1.Rollout{MaxConcurrent: 1}
			spec.Values = &v1alpha1.ChartValues{Server: &apiextensionsv1.JSON{Raw: []byte(`{"podAnnotations":{"wave":"first"}}`)}}
		})
		eventually(t, installed, "all are changed", func(ctx context.Context) error { return changedInTurn(ctx, t) })
		changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) { spec.Rollout, spec.Values = nil, nil })
		for _, tenant := range tenants {
			tenant.awaitReady(t)
		}
	})
	for _, tenant := range tenants {
		tenant.leave(t)
	}
}

// changedInTurn checks that all are changed, and at every look, which sees all of them at the same moment, that only one is being changed.
func changedInTurn(ctx context.Context, t *testing.T) error {
	t.Helper()
	var veleros v1alpha1.VeleroList
	if err := onboarding.List(ctx, &veleros, client.InNamespace("waves")); err != nil {
		return err
	}
	var moving []string
	var waiting error
	for _, velero := range veleros.Items {
		if velero.Status.Phase == string(v1alpha1.Progressing) {
			moving = append(moving, velero.Name)
		}
		deployment, err := newTenant(t, velero.Namespace, velero.Name).deployment(ctx)
		if err == nil && deployment.Spec.Template.Annotations["wave"] != "first" {
			err = fmt.Errorf("%s is not changed yet", velero.Name)
		}
		waiting = errors.Join(waiting, err)
	}
	if len(moving) > 1 {
		t.Fatalf("several are changed at the same time: %v", moving)
	}
	return waiting
}
