package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	"github.com/openmcp-project/openmcp-operator/lib/clusteraccess/advanced"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/access"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// secrets come, change, go and come again. What changes reaches whom it is for within seconds; no pod is restarted for it that need not be.
func secrets(t *testing.T) {
	tenant := newTenant(t, "secrets", "holder")
	tenant.orderControlPlane(t)
	tenant.orderVelero(t, oldVersion, aws)
	tenant.awaitReady(t)
	imagePullSecrets(t, tenant)
	caBundle(t, tenant)
	chartSecrets(t, tenant)
	credentials(t, tenant)
	editedCopies(t, tenant)
	tenant.leave(t)
}

const legacyPullSecret = "legacycred"

func imagePullSecrets(t *testing.T, tenant tenant) {
	legacy := sourceSecret(legacyPullSecret, corev1.SecretTypeDockercfg, map[string]string{corev1.DockerConfigKey: `{"registry.example":{"auth":"dTpw"}}`})
	t.Run("image pull secret: one of the older type is added | it arrives with its type, and the pod refers to it", func(t *testing.T) {
		must(t, platform.Create(t.Context(), legacy))
		changePullSecrets(t, pullSecret, legacyPullSecret)
		tenant.awaitOnWorkload(t, legacyPullSecret, corev1.SecretTypeDockercfg, corev1.DockerConfigKey, `{"registry.example":{"auth":"dTpw"}}`)
		tenant.awaitPullSecretsOfPod(t, legacyPullSecret, pullSecret)
		tenant.awaitReady(t)
	})
	t.Run("image pull secret: both types are rotated | the new ones are on the workload cluster, and the pod is not restarted", func(t *testing.T) {
		const config = `{"auths":{"https://registry.example/v2/":{"auth":"cm90YXRlZDpw"}}}`
		pod := tenant.podState(t)
		rotate(t, pullSecret, corev1.DockerConfigJsonKey, config)
		rotate(t, legacyPullSecret, corev1.DockerConfigKey, `{"registry.example":{"auth":"cm90YXRlZDpw"}}`)
		// As it is written: the kubelet, unlike Flux, understands every form.
		tenant.awaitOnWorkload(t, pullSecret, corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey, config)
		tenant.awaitOnWorkload(t, legacyPullSecret, corev1.SecretTypeDockercfg, corev1.DockerConfigKey, `{"registry.example":{"auth":"cm90YXRlZDpw"}}`)
		tenant.awaitReady(t)
		tenant.assertNotRestarted(t, pod)
	})
	t.Run("image pull secret: one is deleted | its name is told, what runs is left alone, Ready when it is there again", func(t *testing.T) {
		pod, before := tenant.podState(t), tenant.generations(t)
		must(t, platform.Delete(t.Context(), legacy))
		tenant.awaitBlockedConfiguration(t, v1alpha1.ReasonSecretNotFound, legacyPullSecret, "spec.imagePullSecrets")
		assertUntouched(t, before, tenant)
		again := sourceSecret(legacyPullSecret, corev1.SecretTypeDockercfg, map[string]string{corev1.DockerConfigKey: `{"registry.example":{"auth":"YWdhaW46cA=="}}`})
		must(t, platform.Create(t.Context(), again))
		tenant.awaitOnWorkload(t, legacyPullSecret, corev1.SecretTypeDockercfg, corev1.DockerConfigKey, `{"registry.example":{"auth":"YWdhaW46cA=="}}`)
		tenant.awaitReady(t)
		tenant.assertNotRestarted(t, pod)
	})
	t.Run("image pull secret: one is of another type | its name is told, Ready when it is right again", func(t *testing.T) {
		must(t, platform.Delete(t.Context(), sourceSecret(legacyPullSecret, "", nil)))
		must(t, platform.Create(t.Context(), sourceSecret(legacyPullSecret, corev1.SecretTypeOpaque, map[string]string{"password": "canary"})))
		tenant.awaitBlockedConfiguration(t, v1alpha1.ReasonSecretInvalid, legacyPullSecret, "kubernetes.io/dockerconfigjson")
		must(t, platform.Delete(t.Context(), sourceSecret(legacyPullSecret, "", nil)))
		must(t, platform.Create(t.Context(), sourceSecret(legacyPullSecret, corev1.SecretTypeDockercfg, map[string]string{corev1.DockerConfigKey: `{"registry.example":{"auth":"dTpw"}}`})))
		tenant.awaitReady(t)
	})
	t.Run("image pull secret: it is renamed, which changes what the pod refers to | the new name is there, the old one is gone", func(t *testing.T) {
		must(t, platform.Create(t.Context(), sourceSecret("renamed", corev1.SecretTypeDockercfg, map[string]string{corev1.DockerConfigKey: `{"registry.example":{"auth":"dTpw"}}`})))
		changePullSecrets(t, pullSecret, "renamed")
		tenant.awaitOnWorkload(t, "renamed", corev1.SecretTypeDockercfg, corev1.DockerConfigKey, `{"registry.example":{"auth":"dTpw"}}`)
		tenant.awaitPullSecretsOfPod(t, pullSecret, "renamed")
		tenant.awaitNotOnWorkload(t, legacyPullSecret)
		tenant.awaitReady(t)
	})
	t.Run("image pull secret: all are removed, and one added again | what is not used is gone from the workload cluster", func(t *testing.T) {
		changePullSecrets(t)
		tenant.awaitPullSecretsOfPod(t)
		tenant.awaitNotOnWorkload(t, pullSecret, "renamed")
		changePullSecrets(t, pullSecret)
		tenant.awaitPullSecretsOfPod(t, pullSecret)
		tenant.awaitReady(t)
	})
	for _, name := range []string{legacyPullSecret, "renamed"} {
		must(t, client.IgnoreNotFound(platform.Delete(t.Context(), sourceSecret(name, "", nil))))
	}
}

// credentials are those of the server on its control plane, and those of Flux on both clusters.
func credentials(t *testing.T, tenant tenant) {
	t.Run("control plane credentials: the token is renewed | it is in the pod's Secret, and the pod is not restarted", func(t *testing.T) {
		tenant.assertNewToken(t, func(secret *corev1.Secret) { renewAccess(t, secret, "") })
	})
	t.Run("control plane credentials: their Secret is deleted | new ones are in the pod's Secret, and the pod is not restarted", func(t *testing.T) {
		tenant.assertNewToken(t, func(secret *corev1.Secret) { must(t, platform.Delete(t.Context(), secret)) })
	})
	t.Run("credentials of Flux: their Secrets are deleted | Flux works on with new ones, and the pod is not restarted", func(t *testing.T) {
		pod := tenant.podState(t)
		for _, id := range []string{access.Workload, access.ControlPlane} {
			tenant.replaceCredentials(t, id)
		}
		tenant.awaitQuiet(t)
		tenant.awaitReady(t)
		tenant.assertNotRestarted(t, pod)
	})
}

// editedCopies are generated Secrets that somebody edits.
func editedCopies(t *testing.T, tenant tenant) {
	t.Run("generated secrets: values are changed, removed and added by hand | undone within seconds, Ready", func(t *testing.T) {
		for _, name := range []string{"sp-velero-server-identity", "sp-velero-server-values"} {
			secret := &corev1.Secret{}
			must(t, platform.Get(t.Context(), types.NamespacedName{Namespace: tenant.names.TenantNamespace, Name: name}, secret))
			for _, edit := range []string{`{"data":{"values.yaml":"e30="}}`, `{"data":{"values.yaml":null}}`, `{"data":{"another":"e30="}}`} {
				must(t, platform.Patch(t.Context(), secret.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(edit))))
				tenant.awaitData(t, name, secret.Data)
			}
		}
		tenant.awaitQuiet(t)
		tenant.awaitReady(t)
	})
}

func (s tenant) awaitData(t *testing.T, name string, want map[string][]byte) {
	t.Helper()
	eventually(t, soon, name+" is as it was generated", func(ctx context.Context) error {
		secret := &corev1.Secret{}
		if err := platform.Get(ctx, types.NamespacedName{Namespace: s.names.TenantNamespace, Name: name}, secret); err != nil {
			return err
		}
		if !maps.EqualFunc(want, secret.Data, bytes.Equal) {
			return errors.New("it holds something else")
		}
		return nil
	})
}

// assertNewToken waits until another token than before is where the pod reads it, and uses it.
func (s tenant) assertNewToken(t *testing.T, replace func(*corev1.Secret)) {
	t.Helper()
	pod := s.podState(t)
	_, before := s.mountedCredentials(t)
	replace(s.grantedSecret(t, access.Server))
	eventually(t, reached, "the new token is on the workload cluster", func(context.Context) error {
		if _, token := s.mountedCredentials(t); bytes.Equal(token, before) {
			return errors.New("it is still the old one")
		}
		return nil
	})
	s.awaitReady(t)
	s.assertNotRestarted(t, pod)
	s.assertServerReachesControlPlane(t)
}

// replaceCredentials deletes the Secret of an access and waits for another one, which is guarded as the first one was.
func (s tenant) replaceCredentials(t *testing.T, id string) {
	t.Helper()
	old := s.grantedSecret(t, id)
	must(t, platform.Delete(t.Context(), old))
	eventually(t, reached, "a new Secret comes", func(ctx context.Context) error {
		secret := &corev1.Secret{}
		if err := platform.Get(ctx, client.ObjectKeyFromObject(old), secret); err != nil {
			return err
		}
		if secret.UID == old.UID || !slices.Contains(secret.Finalizers, plan.Finalizer) {
			return errors.New("it is still the old one, or not guarded")
		}
		return nil
	})
}

// grantedSecret is the kubeconfig Secret of one of the tenant's AccessRequests.
func (s tenant) grantedSecret(t *testing.T, id string) *corev1.Secret {
	t.Helper()
	request := &clustersv1alpha1.AccessRequest{}
	name := advanced.StableRequestName(plan.ProviderName, ctrl.Request{NamespacedName: s.NamespacedName}, id)
	must(t, platform.Get(t.Context(), types.NamespacedName{Namespace: s.names.TenantNamespace, Name: name}, request))
	secret := &corev1.Secret{}
	must(t, platform.Get(t.Context(), types.NamespacedName{Namespace: s.names.TenantNamespace, Name: request.Status.SecretRef.Name}, secret))
	return secret
}

// sourceSecret is one of those that the ProviderConfig refers to.
func sourceSecret(name string, kind corev1.SecretType, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: name}, Type: kind, StringData: data}
}

// rotate changes one key of a Secret in the operator's namespace.
func rotate(t *testing.T, name, key, value string) {
	t.Helper()
	patch := fmt.Sprintf(`{"data":{%q:%q}}`, key, base64.StdEncoding.EncodeToString([]byte(value)))
	must(t, platform.Patch(t.Context(), sourceSecret(name, "", nil), client.RawPatch(types.MergePatchType, []byte(patch))))
}

func changePullSecrets(t *testing.T, names ...string) {
	t.Helper()
	changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) {
		spec.ImagePullSecrets = nil
		for _, name := range names {
			spec.ImagePullSecrets = append(spec.ImagePullSecrets, v1alpha1.SecretReference{Name: name})
		}
	})
}

// awaitOnWorkload waits for a Secret beside the server, which must not take long.
func (s tenant) awaitOnWorkload(t *testing.T, name string, kind corev1.SecretType, key, value string) {
	t.Helper()
	eventually(t, reached, fmt.Sprintf("Secret %s is on the workload cluster", name), func(ctx context.Context) error {
		secret := &corev1.Secret{}
		if err := workload.Get(ctx, types.NamespacedName{Namespace: s.names.WorkloadNamespace, Name: name}, secret); err != nil {
			return err
		}
		if secret.Type != kind || string(secret.Data[key]) != value {
			return fmt.Errorf("it has type %s and content %s", secret.Type, secret.Data)
		}
		return nil
	})
}

func (s tenant) awaitNotOnWorkload(t *testing.T, names ...string) {
	t.Helper()
	eventually(t, reached, fmt.Sprintf("%v are gone from the workload cluster", names), func(ctx context.Context) error {
		for _, name := range names {
			if err := isGone(ctx, workload, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.names.WorkloadNamespace, Name: name}}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s tenant) awaitPullSecretsOfPod(t *testing.T, names ...string) {
	t.Helper()
	var want []corev1.LocalObjectReference
	for _, name := range names {
		want = append(want, corev1.LocalObjectReference{Name: name})
	}
	eventually(t, installed, fmt.Sprintf("the pod refers to %v", names), func(ctx context.Context) error {
		pods, err := s.pods(ctx)
		if err != nil {
			return err
		}
		if len(pods) != 1 || !cmp.Equal(want, pods[0].Spec.ImagePullSecrets) {
			return fmt.Errorf("there are %d pods", len(pods))
		}
		return nil
	})
}

// awaitBlockedConfiguration waits for the condition that says what a person has to do.
func (s tenant) awaitBlockedConfiguration(t *testing.T, reason string, words ...string) {
	t.Helper()
	s.awaitCondition(t, v1alpha1.ConditionConfigurationValid, metav1.ConditionFalse, reason, words...)
	s.awaitPhase(t, v1alpha1.Failed)
}

// copyOf waits for a copy in the tenant namespace that has some content.
func (s tenant) awaitCopy(t *testing.T, name string, want map[string]string) {
	t.Helper()
	eventually(t, reached, "the copy "+name+" is as its source", func(ctx context.Context) error {
		secret := &corev1.Secret{}
		if err := platform.Get(ctx, types.NamespacedName{Namespace: s.names.TenantNamespace, Name: name}, secret); err != nil {
			return err
		}
		got := map[string]string{}
		for key, value := range secret.Data {
			got[key] = string(value)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("it differs (-want +got):\n%s", diff)
		}
		return nil
	})
}

// awaitNoCopies waits until only those generated Secrets are left in the tenant namespace that are always there.
func (s tenant) awaitNoCopies(t *testing.T) {
	t.Helper()
	eventually(t, reached, "the copies are gone", func(ctx context.Context) error {
		for _, name := range []string{"sp-velero-chart-pull", "sp-velero-chart-ca", "sp-velero-chart-proxy", "sp-velero-chart-verify"} {
			secret := &corev1.Secret{}
			err := platform.Get(ctx, types.NamespacedName{Namespace: s.names.TenantNamespace, Name: name}, secret)
			if err == nil {
				return fmt.Errorf("%s is still there", name)
			}
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("look for %s: %w", name, err)
			}
		}
		return nil
	})
}
