package mirror_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/mirror"
)

func TestConfigPointsAtTheMirror(t *testing.T) {
	from, to := start(t, true), start(t, false)
	filled(t, from)
	tagged, pinned := from.push(t, "velero/velero:v1", multiArch(t, 64)), from.push(t, "velero/velero:v2", image(t, 64))
	untagged := from.push(t, "velero/velero:v3", image(t, 64))
	config := offerOf(from, "v1", "v2@"+pinned, untagged)
	config.Charts.Insecure = true
	config.FluxShard = "one"
	_, err := copyOf(t, config, from, to).Run(t.Context())
	must(t, err)
	point := mirror.Point{
		Layout: layout(t, to), Access: to.access(t), PullSecret: "mirrorcred", CABundle: &v1alpha1.ConfigMapKeyReference{Name: "ca", Key: "ca.crt"},
	}
	got, err := point.Config(t.Context(), *config.DeepCopy())
	must(t, err)
	want := &v1alpha1.ProviderConfigSpec{
		Charts: &v1alpha1.Charts{
			Repository: "oci://" + to.host + "/mirror/charts", Version: "0.1.0+build", PullSecret: &v1alpha1.SecretReference{Name: "mirrorcred"},
			Digests: &v1alpha1.ChartDigests{
				ControlPlane: from.digest(t, "charts/velero-control-plane:0.1.0_build"), Server: from.digest(t, "charts/velero-server:0.1.0_build"),
			},
		},
		AvailableImages: []v1alpha1.AvailableImage{{
			Name: "velero", Versions: []string{"v1@" + tagged, "v2@" + pinned, untagged}, Image: to.host + "/mirror/velero/velero",
		}},
		ImagePullSecrets: []v1alpha1.SecretReference{{Name: "mirrorcred"}}, CABundleRef: &v1alpha1.ConfigMapKeyReference{Name: "ca", Key: "ca.crt"},
		FluxShard: "one",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ProviderConfig (-want +got):\n%s", diff)
	}
}

// TestConfigOfAMirrorThatLacksSomething names all that is missing.
func TestConfigOfAMirrorThatLacksSomething(t *testing.T) {
	from, to := start(t, true), start(t, true)
	filled(t, from)
	from.push(t, "velero/velero:v1", image(t, 64))
	_, err := copyOf(t, offerOf(from, "v1"), from, to).Run(t.Context())
	must(t, err)
	missing := "sha256:" + strings.Repeat("0", 64)
	_, err = mirror.Point{Layout: layout(t, to), Access: to.access(t)}.Config(t.Context(), *offerOf(from, "v1", "v2", "v1@"+missing))
	if err == nil || !strings.Contains(err.Error(), "tag v2") || !strings.Contains(err.Error(), "digest "+missing) || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("error %v", err)
	}
}
