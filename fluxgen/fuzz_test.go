package fluxgen_test

import (
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openmcp-project/service-provider-velero/fluxgen"
)

// FuzzRender looks for a Release that renders to something that must not exist.
func FuzzRender(f *testing.F) {
	f.Add("app", "mcp--1", "tenant-kubeconfig", "kubeconfig", "app--1", "oci://registry.example/charts", "app", "1.2.3", "", "pull", "k", "v", int64(time.Minute), byte(0))
	f.Add("app", "mcp--1", "s", "value", "ns", "oci://[fd00::1]:5000", "a_b.c", "v1.2.3-rc.1+b", digest, "", "a/b", "", int64(time.Hour), byte(15))
	f.Add("", "", "", "", "", "oci://", "", "", "", "", "", "", int64(0), byte(1))
	f.Add("app", "mcp--1", "{{ secret }}", "kubeconfig", "app", "oci://r/c", "app", ">=1", "sha256:", "a b", "{{", "}}", int64(-1), byte(2))
	f.Fuzz(func(t *testing.T, name, namespace, kubeconfig, key, targetNamespace, repository, chart, version, pin, pull, label, value string, interval int64, policy byte) {
		// A target that NewTarget refused must not be rendered either.
		target, targetErr := fluxgen.NewTarget(kubeconfig, key, targetNamespace)
		release := fluxgen.Release{
			Name: name, Namespace: namespace, Labels: map[string]string{label: value}, Target: target,
			Chart:  fluxgen.Chart{Repository: repository, Name: chart, Version: version, Digest: pin, PullSecret: pull, Insecure: policy&8 > 0},
			Values: map[string]any{label: value}, ValuesSecrets: []string{pull}, Interval: time.Duration(interval), Timeout: time.Minute,
			Policy: fluxgen.Policy{CreateNamespace: policy&1 > 0, Adopt: policy&2 > 0, Wait: policy&4 > 0},
		}
		source, helmRelease, err := fluxgen.Render(release)
		if err != nil {
			if source != nil || helmRelease != nil {
				t.Fatal("objects beside an error")
			}
			return
		}
		if targetErr != nil {
			t.Fatalf("rendered with a target that is refused: %v", targetErr)
		}
		checkTarget(t, helmRelease, release)
		checkSource(t, source, helmRelease, release)
	})
}

// checkTarget: without a kubeconfig, Flux would install into the cluster that it runs on.
func checkTarget(t *testing.T, helmRelease *helmv2.HelmRelease, release fluxgen.Release) {
	t.Helper()
	spec := helmRelease.Spec
	if spec.KubeConfig == nil || spec.KubeConfig.SecretRef == nil || spec.KubeConfig.SecretRef.Name == "" || spec.KubeConfig.SecretRef.Key == "" || spec.KubeConfig.ConfigMapRef != nil {
		t.Fatalf("no kubeconfig: %+v", spec.KubeConfig)
	}
	if spec.StorageNamespace == "" || spec.StorageNamespace != spec.TargetNamespace || spec.TargetNamespace != release.Target.Namespace() {
		t.Fatalf("namespaces: target %q, storage %q", spec.TargetNamespace, spec.StorageNamespace)
	}
	if spec.ServiceAccountName != "" || spec.Suspend || len(spec.DependsOn) > 0 {
		t.Fatalf("set although it must not be: %+v", spec)
	}
	if spec.Install.DisableTakeOwnership == release.Policy.Adopt || spec.Upgrade.DisableTakeOwnership == release.Policy.Adopt {
		t.Fatal("ownership is not what the policy says")
	}
	if len(validation.IsValidLabelValue(helmRelease.Name)) > 0 || len(helmRelease.Name) > 50 || spec.ReleaseName != helmRelease.Name {
		t.Fatalf("name %q, release name %q", helmRelease.Name, spec.ReleaseName)
	}
}

// checkSource: exactly one chart version, from where it was said.
func checkSource(t *testing.T, source *sourcev1.OCIRepository, helmRelease *helmv2.HelmRelease, release fluxgen.Release) {
	t.Helper()
	reference := helmRelease.Spec.ChartRef
	if helmRelease.Spec.Chart != nil || reference == nil || reference.Kind != sourcev1.OCIRepositoryKind || reference.Name != source.Name || reference.Namespace != "" {
		t.Fatalf("chart reference %+v to %s", reference, source.Name)
	}
	if source.Namespace != helmRelease.Namespace || len(validation.IsDNS1123Label(source.Name)) > 0 {
		t.Fatalf("source %s/%s", source.Namespace, source.Name)
	}
	spec := source.Spec
	if !strings.HasPrefix(spec.URL, "oci://") || strings.ContainsAny(spec.URL, "@ {}") || spec.Reference.SemVer != "" || spec.Reference.Tag == "" {
		t.Fatalf("source %q, reference %+v", spec.URL, spec.Reference)
	}
	if strings.ContainsAny(spec.Reference.Tag, "+ *<>") || spec.Reference.Digest != release.Chart.Digest {
		t.Fatalf("reference %+v", spec.Reference)
	}
}
