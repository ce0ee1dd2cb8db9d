package property

import (
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

func backup(name, phase string) object {
	return object{"kind": "Backup", "apiVersion": "velero.io/v1", "metadata": object{"namespace": "velero", "name": name}, "status": object{"phase": phase}}
}

func backups(phase string) map[string][]object {
	return map[string][]object{"backups": {backup("nightly-0", "Completed"), backup("nightly-1", phase)}}
}

// release is the HelmRelease of the server.
func (w *world) release(t *testing.T) *helmv2.HelmRelease {
	t.Helper()
	release := &helmv2.HelmRelease{}
	if err := w.platform.Get(t.Context(), types.NamespacedName{Namespace: w.names[0].TenantNamespace, Name: plan.ServerRelease}, release); err != nil {
		t.Fatal(err)
	}
	return release
}

// leaveOutPlugins changes what runs.
func (w *world) leaveOutPlugins(t *testing.T) {
	t.Helper()
	in := w.input.copy()
	in.Veleros[0].Plugins = nil
	if err := w.apply(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

func (w *world) settled(t *testing.T) {
	t.Helper()
	if err := w.settle(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// waits checks that a change waits, and says so.
func (w *world) waits(t *testing.T, generation int64, words ...string) *v1alpha1.PendingChange {
	t.Helper()
	w.settled(t)
	object := w.object(t)
	ready := w.ready(t)
	if ready.Status != metav1.ConditionFalse || ready.Reason != v1alpha1.ReasonWaitingForBackup || object.Status.PendingChange == nil {
		t.Fatalf("it does not wait: %+v, %+v", ready, object.Status.PendingChange)
	}
	for _, word := range words {
		if !strings.Contains(ready.Message, word) {
			t.Errorf("message %q does not say %q", ready.Message, word)
		}
	}
	if w.release(t).Generation != generation {
		t.Error("the HelmRelease was changed")
	}
	return object.Status.PendingChange
}

// isChanged checks that a change is made.
func (w *world) isChanged(t *testing.T, generation int64) {
	t.Helper()
	w.settled(t)
	if object := w.object(t); object.Status.Phase != string(v1alpha1.Ready) || object.Status.PendingChange != nil || w.release(t).Generation == generation {
		t.Errorf("the change is not made: %+v", object.Status)
	}
}

func TestChangeWaitsForBackups(t *testing.T) {
	w := installed(t)
	before := w.release(t).Generation
	there(t, backups("InProgress"))
	w.leaveOutPlugins(t)
	since := w.waits(t, before, "the change of the plugins is made as soon as backup nightly-1 is done, at the latest at").Since
	there(t, backups("Finalizing"))
	w.restart()
	if pending := w.waits(t, before, "backup nightly-1"); !pending.Since.Equal(&since) {
		t.Errorf("it waits since %s, and after a restart since %s", since, pending.Since)
	}
	there(t, backups("Completed"))
	w.isChanged(t, before)
}

// TestNobodyIsAskedWhenNothingChanges: the control plane is looked at only when a change is about to be made.
func TestNobodyIsAskedWhenNothingChanges(t *testing.T) {
	w := installed(t)
	there(t, backups("InProgress"))
	w.settled(t)
	w.restart()
	w.settled(t)
	if calls := theRemote.called(); calls > 0 {
		t.Errorf("%d calls", calls)
	}
}

// TestWaitIsBounded with the clock turned back in what is remembered.
func TestWaitIsBounded(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*testing.T)
		words   string
		bound   func(*v1alpha1.PendingChange)
	}{
		"backup": {func(t *testing.T) { there(t, backups("InProgress")) }, "nightly-1", func(pending *v1alpha1.PendingChange) {
			pending.Since = metav1.NewTime(time.Now().Add(-time.Hour))
		}},
		"unreachable": {goAway, "cannot be reached", func(pending *v1alpha1.PendingChange) {
			since := metav1.NewTime(time.Now().Add(-5 * time.Minute))
			pending.UnseenSince = &since
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := installed(t)
			before := w.release(t).Generation
			test.prepare(t)
			w.leaveOutPlugins(t)
			w.waits(t, before, test.words)
			object := w.object(t)
			test.bound(object.Status.PendingChange)
			if err := w.onboarding.Status().Update(t.Context(), object); err != nil {
				t.Fatal(err)
			}
			w.isChanged(t, before)
		})
	}
}

func TestChangeThatIsTakenBackWaitsNoMore(t *testing.T) {
	w := installed(t)
	before, plugins := w.release(t).Generation, w.input.Veleros[0].Plugins
	there(t, backups("InProgress"))
	w.leaveOutPlugins(t)
	w.waits(t, before)
	in := w.input.copy()
	in.Veleros[0].Plugins = plugins
	if err := w.apply(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	w.settled(t)
	if object := w.object(t); object.Status.Phase != string(v1alpha1.Ready) || object.Status.PendingChange != nil || w.release(t).Generation != before {
		t.Errorf("it still waits: %+v", object.Status)
	}
}

// TestPodTellsTheCause as soon as Flux has given up waiting, and no more when it runs.
func TestPodTellsTheCause(t *testing.T) {
	w := installed(t)
	there(t, map[string][]object{"pods": {{
		"kind": "Pod", "apiVersion": "v1", "metadata": object{"namespace": "velero--1", "name": "velero-1"},
		"status": object{"containerStatuses": []object{{"name": "velero", "state": object{"waiting": object{"reason": "ImagePullBackOff", "message": "from https://registry.internal"}}}}},
	}}})
	w.fail(t, "Helm upgrade failed: timeout waiting for: [Deployment/velero--1/velero status: 'InProgress']")
	for range 2 {
		if err := w.reconcile(t.Context()); err != nil {
			t.Fatal(err)
		}
		if ready := w.ready(t); ready.Reason != v1alpha1.ReasonImagePullFailed || !strings.Contains(ready.Message, "the image of the server cannot be pulled") {
			t.Errorf("it says %s: %s", ready.Reason, ready.Message)
		}
	}
	// The pods are not looked at by every reconcile.
	if calls := theRemote.called(); calls > 5 {
		t.Errorf("%d calls", calls)
	}
	w.settled(t)
	if ready := w.ready(t); ready.Reason != v1alpha1.ReasonReady {
		t.Errorf("Flux is content, and it says %s: %s", ready.Reason, ready.Message)
	}
}

// fail has Flux say that the server's release failed.
func (w *world) fail(t *testing.T, message string) {
	t.Helper()
	release := w.release(t)
	apimeta.SetStatusCondition(&release.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: helmv2.UpgradeFailedReason, Message: message, ObservedGeneration: release.Generation,
	})
	if err := w.platform.Status().Update(t.Context(), release); err != nil {
		t.Fatal(err)
	}
}
