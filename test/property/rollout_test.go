package property

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// rolloutOf is a world in which the first Velero is being changed, and does not become Ready: the second one waits.
func rolloutOf(t *testing.T, edit func(*input)) *world {
	t.Helper()
	w, err := newWorld(t.Context(), start(true))
	ok(t, err)
	ok(t, w.settle(t.Context()))
	changed := w.input.copy()
	edit(&changed)
	ok(t, w.apply(t.Context(), changed))
	ok(t, w.reconcile(t.Context()))
	return w
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lookAfter changes the input and reconciles, without Flux.
func (w *world) lookAfter(t *testing.T, edit func(*input)) {
	t.Helper()
	changed := w.input.copy()
	edit(&changed)
	ok(t, w.apply(t.Context(), changed))
	ok(t, w.reconcile(t.Context()))
	ok(t, w.honest(t.Context()))
}

// secondHas are the data of the second one's generated Secrets, and the spec of its server's release.
func (w *world) secondHas(t *testing.T) (map[string]map[string][]byte, helmv2.HelmReleaseSpec) {
	t.Helper()
	data := map[string]map[string][]byte{}
	var secrets corev1.SecretList
	ok(t, w.platform.List(t.Context(), &secrets))
	for _, secret := range secrets.Items {
		if secret.Namespace == w.names[1].TenantNamespace && secret.Annotations[plan.SourcesAnnotation] != "" {
			data[secret.Name] = secret.Data
		}
	}
	release := &helmv2.HelmRelease{}
	ok(t, w.platform.Get(t.Context(), types.NamespacedName{Namespace: w.names[1].TenantNamespace, Name: plan.ServerRelease}, release))
	return data, release.Spec
}

func label(i *input) {
	i.Config.Values = &v1alpha1.ChartValues{Server: raw(`{"podLabels":{"team":"a"}}`)}
}

// TestRotationDoesNotWait for a rollout: the Secrets of whoever waits are renewed, and its releases are as they were.
func TestRotationDoesNotWait(t *testing.T) {
	for name, test := range map[string]struct {
		edit, rotate func(*input)
		renewed      []string
	}{
		"an image pull secret":          {label, func(i *input) { i.Objects[pullA] = dockerConfig(1) }, []string{"sp-velero-server-values"}},
		"the chart pull secret":         {label, func(i *input) { i.Objects[chartcrd] = dockerConfig(1) }, []string{"sp-velero-chart-pull"}},
		"the proxy":                     {label, func(i *input) { i.Objects[proxy] = proxyAddress(1) }, []string{"sp-velero-chart-proxy"}},
		"the public key":                {label, func(i *input) { i.Objects[cosign] = publicKey(1) }, []string{"sp-velero-chart-verify"}},
		"the CA bundle":                 {label, func(i *input) { i.Objects[customCA] = certificates(1) }, []string{"sp-velero-chart-ca", "sp-velero-server-values"}},
		"one that the edit adds":        {func(i *input) { i.charts().PullSecret = &references(pullB)[0] }, func(i *input) { i.Objects[pullB] = dockerCfg(1) }, []string{"sp-velero-server-values"}},
		"one of those that edit leaves": {func(i *input) { i.Config.ImagePullSecrets = references(pullA) }, func(i *input) { i.Objects[pullB] = dockerCfg(1) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := rolloutOf(t, test.edit)
			before, spec := w.secondHas(t)
			w.lookAfter(t, test.rotate)
			after, now := w.secondHas(t)
			renewed := map[string]bool{}
			for secret := range before {
				if !cmp.Equal(before[secret], after[secret]) {
					renewed[secret] = true
				}
			}
			want := map[string]bool{}
			for _, secret := range test.renewed {
				want[secret] = true
			}
			if diff := cmp.Diff(want, renewed); diff != "" {
				t.Errorf("renewed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(spec, now); diff != "" || len(before) != len(after) {
				t.Errorf("more is changed, from %d Secrets to %d (-before +after):\n%s", len(before), len(after), diff)
			}
		})
	}
}

// TestRotationAloneIsNoRollout: all have it at once.
func TestRotationAloneIsNoRollout(t *testing.T) {
	w := rolloutOf(t, func(*input) {})
	before, _ := w.secondHas(t)
	w.lookAfter(t, func(i *input) { i.Objects[pullA] = dockerConfig(1) })
	if after, _ := w.secondHas(t); cmp.Equal(before["sp-velero-server-values"], after["sp-velero-server-values"]) {
		t.Error("it is not renewed")
	}
}

// TestChoiceDoesNotWait: what a user chose is had when it can be, and not told before.
func TestChoiceDoesNotWait(t *testing.T) {
	choose := func(i *input) { i.Veleros[1].Version = "v1.18.3" }
	for name, walk := range map[string]func(*testing.T) *world{
		"offered only later": func(t *testing.T) *world {
			w := rolloutOf(t, func(i *input) { i.Config.AvailableImages = withoutNewest() })
			w.lookAfter(t, choose)
			w.lookAfter(t, func(i *input) { i.Config.AvailableImages = offer("velero/velero"); label(i) })
			return w
		},
		"the operator was restarted": func(t *testing.T) *world {
			w := rolloutOf(t, func(i *input) { i.charts().Version = unpublished })
			w.lookAfter(t, choose)
			w.restart()
			w.lookAfter(t, func(i *input) { i.charts().Version = ""; label(i) })
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := walk(t)
			ok(t, w.settle(t.Context()))
			if _, spec := w.secondHas(t); !cmp.Equal(imagesOf(&helmv2.HelmRelease{Spec: spec}), []string{"velero/velero-plugin-for-aws:v1.13.0", "velero/velero:v1.18.3"}) {
				t.Errorf("it runs %s", spec.Values.Raw)
			}
		})
	}
}
