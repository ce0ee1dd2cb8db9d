package property

import (
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/cluster"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

func (w *world) releaseOf(name string) *helmv2.HelmRelease {
	return &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: w.names[0].TenantNamespace, Name: name}}
}

// lose deletes releases as somebody does who wants them installed anew. Those that Flux has uninstalled are gone.
func (w *world) lose(t *testing.T, uninstalled bool, names ...string) {
	t.Helper()
	for _, name := range names {
		release := w.releaseOf(name)
		if err := w.platform.Delete(t.Context(), release); err != nil {
			t.Fatal(err)
		}
		if uninstalled {
			delete(w.platform.objects["HelmRelease"], types.NamespacedName{Namespace: release.Namespace, Name: release.Name})
		}
	}
}

// TestReleasesThatOthersDeleteAreNoRemoval: users' objects are looked for all the same. The control plane does not answer.
func TestReleasesThatOthersDeleteAreNoRemoval(t *testing.T) {
	for name, lose := range map[string]func(*testing.T, *world){
		"the server":                            func(t *testing.T, w *world) { w.lose(t, false, plan.ServerRelease) },
		"the server, which is gone":             func(t *testing.T, w *world) { w.lose(t, true, plan.ServerRelease) },
		"the control plane's":                   func(t *testing.T, w *world) { w.lose(t, false, plan.ControlPlaneRelease) },
		"the control plane's, which is gone":    func(t *testing.T, w *world) { w.lose(t, true, plan.ControlPlaneRelease) },
		"both":                                  func(t *testing.T, w *world) { w.lose(t, false, plan.ServerRelease, plan.ControlPlaneRelease) },
		"both, and the server is gone":          both(plan.ServerRelease, plan.ControlPlaneRelease),
		"both, and the control plane's is gone": both(plan.ControlPlaneRelease, plan.ServerRelease),
	} {
		t.Run(name, func(t *testing.T) {
			w := deleted(t)
			lose(t, w)
			if err := w.reconcile(t.Context()); err != nil {
				t.Fatal(err)
			}
			if ready := w.ready(t); ready.Reason != v1alpha1.ReasonTargetUnreachable || !strings.Contains(ready.Message, "users' objects") {
				t.Errorf("it says %s: %s", ready.Reason, ready.Message)
			}
		})
	}
}

func both(gone, going string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		w.lose(t, true, gone)
		w.lose(t, false, going)
	}
}

// TestRemovalBegins when the server is deleted by us, and has begun until the last release is gone. A process that ends right before it deletes
// the server has begun nothing.
func TestRemovalBegins(t *testing.T) {
	w := installed(t)
	platform := cluster.New(w.platform, w.platform, operatorNamespace)
	expect := func(when string, velero types.UID, want bool) {
		t.Helper()
		if begun, err := platform.RemovalBegun(t.Context(), w.names[0], velero); begun != want || err != nil {
			t.Errorf("%s: begun %v, error %v", when, begun, err)
		}
	}
	begin := func() {
		t.Helper()
		if err := platform.BeginRemoval(t.Context(), w.names[0], "this"); err != nil {
			t.Fatal(err)
		}
	}
	expect("before", "this", false)
	begin()
	expect("before the server is deleted", "this", false)
	w.lose(t, false, plan.ServerRelease)
	expect("while the server goes", "this", true)
	expect("while the server goes, of another Velero", "another", false)
	w.lose(t, true, plan.ServerRelease)
	expect("after the server is gone", "this", true)
	expect("after the server is gone, of another Velero", "another", false)
	w.lose(t, false, plan.ControlPlaneRelease)
	expect("while the control plane's goes", "this", true)
	w.lose(t, true, plan.ControlPlaneRelease)
	expect("after both are gone", "this", true)
}

// TestRemovalBeginsWithWhatIsLeft: what others delete is marked too, so that users are not asked again and again.
func TestRemovalBeginsWithWhatIsLeft(t *testing.T) {
	for name, lose := range map[string]func(*testing.T, *world){
		"the server goes":    func(t *testing.T, w *world) { w.lose(t, false, plan.ServerRelease) },
		"the server is gone": func(t *testing.T, w *world) { w.lose(t, true, plan.ServerRelease) },
		"both go":            func(t *testing.T, w *world) { w.lose(t, false, plan.ServerRelease, plan.ControlPlaneRelease) },
		"the server is gone and the control plane's goes":   both(plan.ServerRelease, plan.ControlPlaneRelease),
		"the control plane's is gone, and the server goes":  both(plan.ControlPlaneRelease, plan.ServerRelease),
		"the control plane's is gone, and the server stays": func(t *testing.T, w *world) { w.lose(t, true, plan.ControlPlaneRelease) },
	} {
		t.Run(name, func(t *testing.T) {
			w := installed(t)
			lose(t, w)
			platform := cluster.New(w.platform, w.platform, operatorNamespace)
			if err := platform.BeginRemoval(t.Context(), w.names[0], "this"); err != nil {
				t.Fatal(err)
			}
			if _, err := platform.RemoveRelease(t.Context(), w.names[0], plan.ServerRelease, true); err != nil {
				t.Fatal(err)
			}
			if begun, err := platform.RemovalBegun(t.Context(), w.names[0], "this"); !begun || err != nil {
				t.Errorf("begun %v, error %v", begun, err)
			}
		})
	}
}

// TestUsersCannotBeAskedAnyMore: a tenant namespace that is deleted takes the releases and the access with it, in whatever order.
func TestUsersCannotBeAskedAnyMore(t *testing.T) {
	w := deleted(t)
	w.lose(t, false, plan.ServerRelease, plan.ControlPlaneRelease)
	delete(w.platform.objects["Namespace"], types.NamespacedName{Name: w.names[0].TenantNamespace})
	for name := range w.platform.objects["AccessRequest"] {
		delete(w.platform.objects["AccessRequest"], name)
		delete(w.platform.objects["Secret"], types.NamespacedName{Namespace: name.Namespace, Name: name.Name + ".kubeconfig"})
	}
	if err := w.reconcile(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ready := w.ready(t); ready.Reason != v1alpha1.ReasonRemovingServer {
		t.Errorf("it says %s: %s", ready.Reason, ready.Message)
	}
}
