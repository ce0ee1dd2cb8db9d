package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// blockedStates shows that a mistake is named within seconds, that nothing which runs is touched, and that the remedy alone is enough.
func blockedStates() features.Feature {
	return features.New("what a person must act on").
		Assess("a version that is not offered", blocked(blockedCase{
			breakIt: func(t *testing.T) {
				first(t).change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = "v9.9.9" })
			},
			reason: v1alpha1.ReasonVersionNotOffered,
			names:  []string{"spec.version", "v9.9.9", oldVersion, newVersion},
			remedy: func(t *testing.T) {
				changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) {
					spec.AvailableImages[0].Versions = append(spec.AvailableImages[0].Versions, "v9.9.9")
				})
			},
		})).
		Assess("a version that is withdrawn while it runs", blocked(blockedCase{
			breakIt: func(t *testing.T) {
				changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) {
					spec.AvailableImages[0].Versions = []string{oldVersion, newVersion}
				})
			},
			reason: v1alpha1.ReasonVersionNotOffered,
			names:  []string{"spec.version", "v9.9.9", newVersion},
			remedy: func(t *testing.T) {
				first(t).change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = newVersion })
			},
		})).
		Assess("a plugin that is not offered", blocked(blockedCase{
			breakIt: func(t *testing.T) {
				first(t).change(t, func(spec *v1alpha1.VeleroSpec) {
					spec.Plugins = []v1alpha1.Plugin{aws, {Name: "azure", Version: "v1.13.0"}}
				})
			},
			reason: v1alpha1.ReasonPluginNotOffered,
			names:  []string{"spec.plugins", "azure", "aws", "gcp"},
			remedy: func(t *testing.T) {
				first(t).change(t, func(spec *v1alpha1.VeleroSpec) { spec.Plugins = []v1alpha1.Plugin{aws} })
			},
		})).
		Assess("a pull secret that does not exist", blocked(blockedCase{
			breakIt: func(t *testing.T) {
				changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) {
					spec.ImagePullSecrets = append(spec.ImagePullSecrets, v1alpha1.SecretReference{Name: "late"})
				})
			},
			reason: v1alpha1.ReasonSecretNotFound,
			names:  []string{"late"},
			remedy: func(t *testing.T) {
				must(t, ensure(t.Context(), platform, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "late"},
					Type:       corev1.SecretTypeDockerConfigJson,
					Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)},
				}))
			},
		})).
		Assess("no ProviderConfig", blocked(blockedCase{
			breakIt: func(t *testing.T) { must(t, platform.Delete(t.Context(), offered())) },
			reason:  v1alpha1.ReasonProviderConfigNotFound,
			remedy:  func(t *testing.T) { must(t, platform.Create(t.Context(), offered())) },
		})).
		Assess("no control plane", controlPlaneMissing).
		Feature()
}

type blockedCase struct {
	breakIt, remedy func(*testing.T)
	// reason of ConfigurationValid, and what its message must name.
	reason string
	names  []string
}

// blocked breaks something for the first tenant, looks at what it is told, and mends it.
func blocked(c blockedCase) features.Func {
	return func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
		tenant := first(t)
		before := tenant.generations(t)
		c.breakIt(t)
		eventually(t, soon, "the condition names what is wrong", func(ctx context.Context) error {
			velero, err := tenant.velero(ctx)
			if err != nil {
				return err
			}
			if velero.Status.Phase != string(v1alpha1.Failed) {
				return fmt.Errorf("phase is %s", velero.Status.Phase)
			}
			if err := hasCondition(velero, v1alpha1.ConditionReady, metav1.ConditionFalse, c.reason); err != nil {
				return err
			}
			return messageNames(velero, c.names)
		})
		if diff := cmp.Diff(before, tenant.generations(t)); diff != "" {
			t.Errorf("what runs was touched (-before +after):\n%s", diff)
		}
		c.remedy(t)
		tenant.awaitReady(t)
		return ctx
	}
}

func messageNames(velero *v1alpha1.Velero, names []string) error {
	if err := hasCondition(velero, v1alpha1.ConditionConfigurationValid, metav1.ConditionFalse, apimeta.FindStatusCondition(velero.Status.Conditions, v1alpha1.ConditionReady).Reason); err != nil {
		return err
	}
	message := apimeta.FindStatusCondition(velero.Status.Conditions, v1alpha1.ConditionConfigurationValid).Message
	for _, name := range names {
		if !strings.Contains(message, name) {
			return fmt.Errorf("message %q does not name %s", message, name)
		}
	}
	return nil
}

// controlPlaneMissing orders a Velero before its control plane. Nothing may be created for it: the platform would be left with a namespace
// that nobody removes.
func controlPlaneMissing(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
	tenant := third(t)
	tenant.orderVelero(t, oldVersion)
	eventually(t, soon, "the condition says that there is no control plane", func(ctx context.Context) error {
		velero, err := tenant.velero(ctx)
		if err != nil {
			return err
		}
		return hasCondition(velero, v1alpha1.ConditionAccessGranted, metav1.ConditionFalse, v1alpha1.ReasonControlPlaneNotFound)
	})
	must(t, isGone(ctx, platform, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant.names.TenantNamespace}}))
	tenant.orderControlPlane(t)
	tenant.awaitReady(t)
	return ctx
}

func third(t *testing.T) tenant { t.Helper(); return newTenant(t, "default", "late-mcp") }
