package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// waitsForItsTurn is what a user is told while a change of the platform operator has to wait.
const waitsForItsTurn = "waits for its turn"

// rollout is a few lives with one operator, which changes one at a time.
type rollout struct {
	stage *stage
	lives []*life
}

func newRollout(t *testing.T, name string, count int) *rollout {
	t.Helper()
	r := &rollout{}
	for number := range count {
		one := newLife(t, fmt.Sprintf("rollout-%s-%d", name, number), &line{})
		r.stage, r.lives = one.stage, append(r.lives, one)
		one.reconciler = r.lives[0].reconciler
		one.until(t, "Ready", func(velero *v1alpha1.Velero) bool { return velero.Status.Phase == string(v1alpha1.Ready) })
	}
	return r
}

// edit changes the ProviderConfig until the end of the test.
func (r *rollout) edit(t *testing.T, change func(*v1alpha1.ProviderConfigSpec)) {
	t.Helper()
	config := &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	must(t, r.stage.Get(t.Context(), client.ObjectKeyFromObject(config), config))
	before := config.DeepCopy()
	config.Spec.Rollout = &v1alpha1.Rollout{MaxConcurrent: 1}
	change(&config.Spec)
	must(t, r.stage.Patch(t.Context(), config, client.MergeFrom(before)))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		must(t, r.stage.Get(ctx, client.ObjectKeyFromObject(config), config))
		config.Spec = before.Spec
		must(t, r.stage.Update(ctx, config))
	})
}

// look reconciles one Velero and returns it as it is then.
func (r *rollout) look(t *testing.T, one *life) *v1alpha1.Velero {
	t.Helper()
	_, err := one.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: one.velero})
	must(t, err)
	velero := &v1alpha1.Velero{}
	must(t, r.stage.Get(t.Context(), one.velero, velero))
	return velero
}

// changed says whether the server's release has what the ProviderConfig says by now.
func (r *rollout) changed(t *testing.T, one *life) bool {
	t.Helper()
	release := &helmv2.HelmRelease{}
	must(t, r.stage.Get(t.Context(), client.ObjectKey{Namespace: one.names.TenantNamespace, Name: plan.ServerRelease}, release))
	return strings.Contains(string(release.Spec.Values.Raw), "wave")
}

func (r *rollout) expect(t *testing.T, what string, one *life, velero *v1alpha1.Velero, changed, queued bool) {
	t.Helper()
	if got := r.changed(t, one); got != changed {
		t.Errorf("%s: changed %t, want %t", what, got, changed)
	}
	for _, condition := range velero.Status.Conditions {
		if condition.Type == v1alpha1.ConditionReady && strings.Contains(condition.Message, waitsForItsTurn) != queued {
			t.Errorf("%s: it says %q, and waits for its turn: %t", what, condition.Message, queued)
		}
	}
	if queued && velero.Status.Phase != string(v1alpha1.Ready) {
		t.Errorf("%s: what waits is %s", what, velero.Status.Phase)
	}
}

func annotate(spec *v1alpha1.ProviderConfigSpec) {
	spec.Values = &v1alpha1.ChartValues{Server: &apiextensionsv1.JSON{Raw: []byte(`{"podAnnotations":{"wave":"first"}}`)}}
}

// TestRolloutInTurn: who has to wait is told so, and runs on; the next one is changed when the first is Ready.
func TestRolloutInTurn(t *testing.T) {
	r := newRollout(t, "turn", 2)
	r.edit(t, annotate)
	first, second := r.lives[0], r.lives[1]
	r.expect(t, "the first", first, r.look(t, first), true, false)
	r.expect(t, "the second", second, r.look(t, second), false, true)
	r.stage.play(t, first.names)
	if velero := r.look(t, first); velero.Status.Phase != string(v1alpha1.Ready) {
		t.Fatalf("the first is %s: %+v", velero.Status.Phase, velero.Status.Conditions)
	}
	r.expect(t, "the second in its turn", second, r.look(t, second), true, false)
}

// TestUserOvertakesTheRollout: what a user changes is done at once, also when that takes several steps.
func TestUserOvertakesTheRollout(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.ProviderConfigSpec){
		"values": annotate,
		"chart": func(spec *v1alpha1.ProviderConfigSpec) {
			annotate(spec)
			spec.Charts.Digests.Server = "sha256:" + strings.Repeat("0", 64)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRollout(t, name, 3)
			r.edit(t, change)
			first, second, third := r.lives[0], r.lives[1], r.lives[2]
			r.look(t, first)
			r.expect(t, "before the user's edit", second, r.look(t, second), false, true)
			merge(t, r.stage, &v1alpha1.Velero{ObjectMeta: metav1.ObjectMeta{Namespace: second.velero.Namespace, Name: second.velero.Name}}, `{"spec":{"plugins":[]}}`)
			r.look(t, second)
			r.stage.play(t, second.names)
			r.expect(t, "after the user's edit", second, r.look(t, second), true, false)
			r.expect(t, "another one", third, r.look(t, third), false, true)
		})
	}
}
