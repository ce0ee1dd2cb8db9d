package integration

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
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

// judge is the ProviderConfig controller with a ProviderConfig of its own.
type judge struct {
	*line
	stage      *stage
	config     *v1alpha1.ProviderConfig
	reconciler *controller.ConfigReconciler
}

func newJudge(t *testing.T, config *v1alpha1.ProviderConfig) *judge {
	t.Helper()
	stage, err := theStage()
	must(t, err)
	must(t, stage.Create(t.Context(), config))
	t.Cleanup(func() { _ = stage.Delete(t.Context(), config) })
	j := &judge{line: &line{}, stage: stage, config: config}
	j.restart()
	return j
}

// restart is a new process of the operator: it remembers nothing.
func (j *judge) restart() {
	counted := j.client(j.stage)
	j.reconciler = &controller.ConfigReconciler{
		Onboarding: counted, Client: counted, Configs: controller.Configs{Platform: counted, ProviderName: landscape.ProviderName},
		Platform: cluster.New(counted, counted, landscape.SystemNamespace),
	}
}

func (j *judge) reconcile(t *testing.T) []call {
	t.Helper()
	done := len(j.calls)
	_, err := j.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(j.config)})
	must(t, err)
	return j.calls[done:]
}

// says checks what the ProviderConfig is told, and that looking again costs nothing.
func (j *judge) says(t *testing.T, reason string, words ...string) {
	t.Helper()
	j.reconcile(t)
	config := &v1alpha1.ProviderConfig{}
	must(t, j.stage.Get(t.Context(), client.ObjectKeyFromObject(j.config), config))
	ready := apimeta.FindStatusCondition(config.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || ready.Reason != reason || (ready.Status == metav1.ConditionTrue) != (reason == v1alpha1.ReasonValid) {
		t.Fatalf("condition %+v, want reason %s", ready, reason)
	}
	for _, word := range words {
		if !strings.Contains(ready.Message, word) {
			t.Errorf("message %q lacks %q", ready.Message, word)
		}
	}
	for _, call := range j.reconcile(t) {
		if call.write || readsContents(call) {
			t.Errorf("a look at what did not change: %s", call.what)
		}
	}
}

// readsContents: everything else is looked up in the caches, as metadata.
func readsContents(call call) bool {
	return strings.HasPrefix(call.what, "get *v1.Secret ") || strings.HasPrefix(call.what, "get *v1.ConfigMap ")
}

// TestProviderConfigTellsWhatCannotBeUsed: not only what does not exist, and before there is any Velero.
func TestProviderConfigTellsWhatCannotBeUsed(t *testing.T) {
	bundle, err := os.ReadFile(filepath.Join("..", "..", "internal", "plan", "testdata", "ca.crt"))
	must(t, err)
	config := fullProviderConfigObject()
	config.Name, config.Spec.Charts = "judged", nil
	config.Spec.ImagePullSecrets = []v1alpha1.SecretReference{{Name: "judged-pull"}}
	config.Spec.CABundleRef.Name, config.Spec.CABundleRef.Key = "judged-ca", "ca.crt"
	j := newJudge(t, config)
	own := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: landscape.SystemNamespace, Name: name}
	}
	secret := &corev1.Secret{ObjectMeta: own("judged-pull"), StringData: map[string]string{"password": "canary"}}
	configMap := &corev1.ConfigMap{ObjectMeta: own("judged-ca"), Data: map[string]string{"ca.crt": string(bundle)}}
	for _, object := range []client.Object{secret, configMap} {
		t.Cleanup(func() { _ = j.stage.Delete(t.Context(), object) })
	}

	j.says(t, v1alpha1.ReasonSecretNotFound, "judged-pull", "judged-ca")
	must(t, j.stage.Create(t.Context(), secret))
	must(t, j.stage.Create(t.Context(), configMap))
	j.says(t, v1alpha1.ReasonSecretInvalid, `Secret "judged-pull"`, "its type must be")
	must(t, j.stage.Delete(t.Context(), secret))
	secret = &corev1.Secret{ObjectMeta: own("judged-pull"), Type: corev1.SecretTypeDockerConfigJson, StringData: map[string]string{corev1.DockerConfigJsonKey: `{"auths":{"reg.example":{"auth":"dTpw"}}}`}}
	must(t, j.stage.Create(t.Context(), secret))
	j.says(t, v1alpha1.ReasonValid)
	merge(t, j.stage, configMap, `{"data":{"ca.crt":"no certificate"}}`)
	j.says(t, v1alpha1.ReasonCABundleInvalid, `ConfigMap "judged-ca"`, `key "ca.crt"`)
	merge(t, j.stage, configMap, fmt.Sprintf(`{"data":null,"binaryData":{"ca.crt":%q}}`, base64.StdEncoding.EncodeToString(bundle)))
	j.says(t, v1alpha1.ReasonValid)

	j.restart()
	for _, call := range j.reconcile(t) {
		if call.write {
			t.Errorf("a restart: %s", call.what)
		}
	}
	j.says(t, v1alpha1.ReasonValid)
}
