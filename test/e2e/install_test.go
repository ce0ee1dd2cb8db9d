package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// twoTenants installs two Veleros of the same name side by side. The parts that follow use them.
func twoTenants() features.Feature {
	return features.New("two tenants side by side").
		Setup(func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			for _, tenant := range []tenant{first(t), second(t)} {
				tenant.orderControlPlane(t)
				tenant.orderVelero(t, oldVersion, aws)
			}
			return ctx
		}).
		Assess("both become Ready", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			first(t).awaitReady(t)
			second(t).awaitReady(t)
			return ctx
		}).
		Assess("the server runs exactly what is offered", serverRunsWhatIsOffered).
		Assess("the server reaches its control plane, and only with a token file", serverReachesControlPlane).
		Assess("the control plane has the CRDs and a labelled namespace", controlPlaneIsFurnished).
		Assess("pull secrets arrive on the workload cluster with their type", pullSecretsArrive).
		Assess("no HelmRelease shows a token", noTokenInReleases).
		Feature()
}

func first(t *testing.T) tenant  { t.Helper(); return newTenant(t, "default", "test-mcp") }
func second(t *testing.T) tenant { t.Helper(); return newTenant(t, "team-b", "test-mcp") }

func serverRunsWhatIsOffered(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
	for _, tenant := range []tenant{first(t), second(t)} {
		images, err := tenant.running(ctx)
		must(t, err)
		if diff := cmp.Diff([]string{serverImage + ":" + oldVersion, awsImage + ":" + aws.Version}, images); diff != "" {
			t.Errorf("%s runs other images (-want +got):\n%s", tenant, diff)
		}
		deployment, err := tenant.deployment(ctx)
		must(t, err)
		if deployment.Status.AvailableReplicas != 1 {
			t.Errorf("%s has %d available replicas, want 1", tenant, deployment.Status.AvailableReplicas)
		}
	}
	return ctx
}

func serverReachesControlPlane(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
	first(t).assertServerReachesControlPlane(t)
	second(t).assertServerReachesControlPlane(t)
	return ctx
}

// assertServerReachesControlPlane uses the credentials that the pod gets, as the pod does.
func (s tenant) assertServerReachesControlPlane(t *testing.T) {
	t.Helper()
	kubeconfig, token := s.mountedCredentials(t)
	config, err := clientcmd.Load(kubeconfig)
	must(t, err)
	for name, user := range config.AuthInfos {
		if user.TokenFile == "" || user.Token != "" {
			t.Errorf("%s: user %q of the kubeconfig has no token file, or a token beside it", s, name)
		}
		user.TokenFile, user.Token = "", string(token)
	}
	rest, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	must(t, err)
	server, err := client.New(rest, client.Options{})
	must(t, err)
	backups := &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "velero.io/v1", Kind: "BackupList"}}
	must(t, server.List(t.Context(), backups))
}

// mountedCredentials finds the Secret that the server's kubeconfig is mounted from.
func (s tenant) mountedCredentials(t *testing.T) (kubeconfig, token []byte) {
	t.Helper()
	deployment, err := s.deployment(t.Context())
	must(t, err)
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		if volume.Secret == nil {
			continue
		}
		secret := &corev1.Secret{}
		if err := workload.Get(t.Context(), types.NamespacedName{Namespace: deployment.Namespace, Name: volume.Secret.SecretName}, secret); err != nil {
			continue
		}
		if mounted := secret.Data["kubeconfig"]; mounted != nil {
			return mounted, secret.Data["token"]
		}
	}
	t.Fatalf("%s: no kubeconfig is mounted into the server", s)
	return nil, nil
}

func controlPlaneIsFurnished(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
	for _, tenant := range []tenant{first(t), second(t)} {
		controlPlane := tenant.controlPlane(t)
		var crds apiextensionsv1.CustomResourceDefinitionList
		must(t, controlPlane.List(ctx, &crds))
		count := 0
		for _, crd := range crds.Items {
			if crd.Spec.Group == "velero.io" {
				count++
			}
		}
		if count != 13 {
			t.Errorf("%s has %d CRDs of Velero, want 13", tenant, count)
		}
		namespace := &corev1.Namespace{}
		must(t, controlPlane.Get(ctx, client.ObjectKey{Name: "velero"}, namespace))
		if namespace.Labels["velero.io/exclude-from-backup"] != "true" {
			t.Errorf("%s: namespace velero would be part of every backup: %v", tenant, namespace.Labels)
		}
	}
	return ctx
}

func pullSecretsArrive(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
	for _, tenant := range []tenant{first(t), second(t)} {
		deployment, err := tenant.deployment(ctx)
		must(t, err)
		if diff := cmp.Diff([]corev1.LocalObjectReference{{Name: pullSecret}}, deployment.Spec.Template.Spec.ImagePullSecrets); diff != "" {
			t.Errorf("%s: pull secrets of the pod (-want +got):\n%s", tenant, diff)
		}
		secret := &corev1.Secret{}
		must(t, workload.Get(ctx, types.NamespacedName{Namespace: deployment.Namespace, Name: pullSecret}, secret))
		if secret.Type != corev1.SecretTypeDockerConfigJson {
			t.Errorf("%s: the pull secret has type %s", tenant, secret.Type)
		}
	}
	return ctx
}

func noTokenInReleases(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
	for _, tenant := range []tenant{first(t), second(t)} {
		_, token := tenant.mountedCredentials(t)
		for _, name := range []string{plan.ControlPlaneRelease, plan.ServerRelease} {
			release, err := tenant.helmRelease(ctx, name)
			must(t, err)
			if err := withoutToken(release, string(token)); err != nil {
				t.Errorf("%s: HelmRelease %s: %v", tenant, name, err)
			}
			if release.Spec.KubeConfig == nil || release.Spec.KubeConfig.SecretRef == nil || release.Spec.KubeConfig.SecretRef.Key == "" {
				t.Errorf("%s: HelmRelease %s has no kubeconfig", tenant, name)
			}
		}
	}
	return ctx
}

// withoutToken looks for a token, and for anything that looks like one: every JSON web token begins with "eyJ".
func withoutToken(object any, token string) error {
	content, err := json.Marshal(object)
	if err != nil {
		return err
	}
	for _, needle := range []string{token, "eyJ"} {
		if needle == "" || strings.Contains(string(content), needle) {
			return fmt.Errorf("it contains a token")
		}
	}
	return nil
}
