package integration

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/cluster"
	"github.com/openmcp-project/service-provider-velero/internal/controller"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// TestProviderConfigTellsItsMistakes to who made them, not only to tenants, and once.
func TestProviderConfigTellsItsMistakes(t *testing.T) {
	stage, err := theStage()
	must(t, err)
	config := fullProviderConfigObject()
	config.Name = "mistaken"
	config.Spec.CABundleRef, config.Spec.Charts.ProxySecretRef, config.Spec.Charts.Verify = nil, nil, nil
	config.Spec.ImagePullSecrets = []v1alpha1.SecretReference{{Name: "comes-late"}}
	must(t, stage.Create(t.Context(), config))
	calls := &line{}
	counted := calls.client(stage)
	reconciler := controller.ConfigReconciler{
		Onboarding: counted, Client: counted, Platform: cluster.New(counted, counted, landscape.SystemNamespace),
		Configs: controller.Configs{Platform: counted, ProviderName: landscape.ProviderName},
	}
	expect := func(status metav1.ConditionStatus, reason, word string) {
		t.Helper()
		for range 2 {
			_, err := reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(config)})
			must(t, err)
		}
		must(t, stage.Get(t.Context(), client.ObjectKeyFromObject(config), config))
		ready := apimeta.FindStatusCondition(config.Status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || ready.Status != status || ready.Reason != reason || !strings.Contains(ready.Message, word) || config.Status.ObservedGeneration != config.Generation {
			t.Errorf("status is %+v", config.Status)
		}
	}
	expect(metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound, "comes-late")
	must(t, stage.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: landscape.SystemNamespace, Name: "comes-late"}, Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)}}))
	expect(metav1.ConditionTrue, v1alpha1.ReasonValid, "can be used")
	if len(config.Status.Offered) != len(config.Spec.AvailableImages) {
		t.Errorf("it offers %+v", config.Status.Offered)
	}
	writes := 0
	for _, call := range calls.calls {
		if call.write {
			writes++
		}
	}
	if writes != 2 {
		t.Errorf("%d writes, want one for each state", writes)
	}
}
