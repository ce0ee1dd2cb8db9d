package status

import (
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// pendingSince is a change that waits since so long before later; unseen none when it is zero.
func pendingSince(waited, unseen time.Duration) *v1alpha1.PendingChange {
	pending := &v1alpha1.PendingChange{Since: metav1.NewTime(later.Add(-waited))}
	if unseen > 0 {
		since := metav1.NewTime(later.Add(-unseen))
		pending.UnseenSince = &since
	}
	return pending
}

func TestGate(t *testing.T) {
	work := []string{"backup daily-1"}
	for name, test := range map[string]struct {
		pending *v1alpha1.PendingChange
		ongoing []string
		unseen  bool
		message string // empty: it does not wait
	}{
		"nothing runs":           {nil, nil, false, ""},
		"nothing runs any more":  {pendingSince(time.Minute, 0), nil, false, ""},
		"one runs":               {nil, work, false, "version v1.18.3 is installed as soon as backup daily-1 is done, at the latest at 05:04 UTC"},
		"it goes on":             {pendingSince(30*time.Minute, 0), work, false, "version v1.18.3 is installed as soon as backup daily-1 is done, at the latest at 04:34 UTC"},
		"several run":            {nil, []string{"backup a", "backup b", "restore c"}, false, "version v1.18.3 is installed as soon as backup a and 2 more are done, at the latest at 05:04 UTC"},
		"almost too long":        {pendingSince(longestWait-time.Second, 0), work, false, "version v1.18.3 is installed as soon as backup daily-1 is done, at the latest at 04:04 UTC"},
		"too long":               {pendingSince(longestWait, 0), work, false, ""},
		"unseen":                 {nil, nil, true, "version v1.18.3 is installed as soon as no backup or restore runs, at the latest at 04:09 UTC: the control plane cannot be reached to see whether any does"},
		"unseen after a while":   {pendingSince(30*time.Minute, 0), nil, true, "version v1.18.3 is installed as soon as no backup or restore runs, at the latest at 04:09 UTC: the control plane cannot be reached to see whether any does"},
		"unseen near the end":    {pendingSince(58*time.Minute, 0), nil, true, "version v1.18.3 is installed as soon as no backup or restore runs, at the latest at 04:06 UTC: the control plane cannot be reached to see whether any does"},
		"unseen for too long":    {pendingSince(10*time.Minute, longestBlindWait), nil, true, ""},
		"seen again":             {pendingSince(10*time.Minute, 4*time.Minute), work, false, "version v1.18.3 is installed as soon as backup daily-1 is done, at the latest at 04:54 UTC"},
		"seen again, none there": {pendingSince(10*time.Minute, 4*time.Minute), nil, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			hold := Gate(test.pending, test.ongoing, test.unseen, later.Time)
			if hold == nil {
				if test.message != "" {
					t.Fatalf("it does not wait; want %q", test.message)
				}
				return
			}
			hold.Change = "version v1.18.3 is installed"
			if got := hold.verdict(); got.message != test.message || got.reason != v1alpha1.ReasonWaitingForBackup || got.person {
				t.Errorf("%+v, want %q", got, test.message)
			}
			if again := hold.Again(later.Time); again < time.Second || again > longestLook {
				t.Errorf("looks again after %s", again)
			}
		})
	}
}

// TestWaitTakesAnHourAtMost whatever is seen, and however often the operator is restarted: all that it remembers is in the status.
func TestWaitTakesAnHourAtMost(t *testing.T) {
	for name, unseen := range map[string]func(look int) bool{
		"seen":         func(int) bool { return false },
		"unseen":       func(int) bool { return true },
		"now and then": func(look int) bool { return look%3 > 0 },
	} {
		t.Run(name, func(t *testing.T) {
			var pending *v1alpha1.PendingChange
			now := later.Time
			for look := 0; ; look++ {
				blind := unseen(look)
				hold := Gate(pending, []string{"backup daily-1"}, blind, now)
				if hold == nil {
					break
				}
				pending = &hold.PendingChange
				now = now.Add(hold.Again(now))
			}
			want := longestWait
			if name == "unseen" {
				want = longestBlindWait
			}
			if waited := now.Sub(later.Time); waited < want || waited > want+time.Second {
				t.Errorf("it waited for %s, want %s", waited, want)
			}
		})
	}
}

func TestInterrupts(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*helmv2.HelmRelease)
		want   bool
	}{
		"it runs":                   {func(*helmv2.HelmRelease) {}, true},
		"it was never installed":    {func(hr *helmv2.HelmRelease) { hr.Status.History = nil }, false},
		"the last attempt failed":   {func(hr *helmv2.HelmRelease) { hr.Status.History[0].Status = "failed" }, false},
		"Flux has a change already": {func(hr *helmv2.HelmRelease) { hr.Generation++ }, false},
		"Flux corrects drift":       {ready(metav1.ConditionUnknown, "Progressing", "correcting cluster drift"), true},
	} {
		t.Run(name, func(t *testing.T) {
			release := fixture(t, "velero-server", "0.1.0").HelmRelease
			test.change(release)
			if got := Interrupts(release); got != test.want {
				t.Errorf("a change interrupts: %t, want %t", got, test.want)
			}
		})
	}
}

// held is a Velero whose user wants another version while a backup runs.
func held(t *testing.T) (*v1alpha1.Velero, Observation) {
	t.Helper()
	velero, observed := stored(t)
	velero.Spec.Version = "v1.18.3"
	observed.Server.Wanted.Values["image"] = "velero/velero:v1.18.3"
	observed.Hold = Gate(nil, []string{"backup daily-1"}, false, later.Time)
	observed.Hold.Change = "version v1.18.3 is installed"
	return velero, observed
}

func TestWhoeverWaitsIsNotReady(t *testing.T) {
	velero, observed := held(t)
	want := outcome{metav1.ConditionFalse, v1alpha1.ReasonWaitingForBackup, v1alpha1.Progressing, []string{"backup daily-1", "at the latest at 05:04 UTC"}}
	velero.Status = Compute(velero, observed, later)
	want.check(t, velero.Status, v1alpha1.ConditionServerInstalled)
	want.check(t, velero.Status, v1alpha1.ConditionReady)
	if pending := velero.Status.PendingChange; pending == nil || !pending.Since.Equal(&later) {
		t.Errorf("the wait is remembered as %+v", pending)
	}
	for range 3 {
		ready(metav1.ConditionUnknown, "Progressing", "correcting cluster drift")(observed.Server.HelmRelease)
		if again := Compute(velero, observed, metav1.NewTime(later.Add(time.Minute))); Changed(velero.Status, again) {
			t.Errorf("the status moves:\n%+v\n%+v", velero.Status, again)
		}
	}
}

func TestWhatIsRememberedOfAWait(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Observation)
		kept   bool
	}{
		"it goes on": {func(*Observation) {}, true},
		"it is over": {func(o *Observation) { o.Hold = nil }, false},
		"access is not there": {func(o *Observation) {
			o.Hold, o.Server.Wanted, o.Access = nil, nil, Access{Reason: "WaitingForControlPlane"}
		}, true},
		"the platform is unreachable": {func(o *Observation) { o.Hold, o.Obstacle = nil, ObstacleOf(v1alpha1.ReasonPlatformUnavailable, "") }, true},
		"the Velero is deleted": {func(o *Observation) {
			o.Hold, o.Server.Wanted, o.Removal = nil, nil, &Removal{Reason: v1alpha1.ReasonRemovingServer}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			velero, observed := held(t)
			velero.Status = Compute(velero, observed, later)
			before := velero.Status.PendingChange.DeepCopy()
			test.change(&observed)
			after := Compute(velero, observed, later).PendingChange
			if (after != nil) != test.kept || test.kept && !after.Since.Equal(&before.Since) {
				t.Errorf("it was %+v, and is %+v", before, after)
			}
		})
	}
}

func TestSuspendedServerIsToldAsSuch(t *testing.T) {
	velero, observed := held(t)
	observed.Server.HelmRelease.Spec.Suspend = true
	outcome{metav1.ConditionFalse, v1alpha1.ReasonSuspended, v1alpha1.Failed, nil}.check(t, Compute(velero, observed, later), v1alpha1.ConditionServerInstalled)
}
