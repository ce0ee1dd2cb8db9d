package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

func TestTransition(t *testing.T) {
	on := func(status metav1.ConditionStatus, reason string) *metav1.Condition {
		one := condition(v1alpha1.ConditionServerInstalled, status, reason, "m", 1)
		return &one
	}
	tests := map[string]struct {
		before *metav1.Condition
		after  *metav1.Condition
		want   string
	}{
		"InstalledAtLast":      {on("False", "Installing"), on("True", "Installed"), "Normal"},
		"NothingNew":           {on("True", "Installed"), on("True", "Installed"), ""},
		"FirstWait":            {nil, on("False", "WaitingForCRDs"), ""},
		"FirstUnknown":         {nil, on("Unknown", "TargetUnreachable"), ""},
		"OtherWait":            {on("False", "WaitingForCRDs"), on("False", "FetchingChart"), ""},
		"WaitAfterSuccess":     {on("True", "Granted"), on("False", "WaitingForControlPlane"), "Normal"},
		"WaitAfterFailure":     {on("False", "ChartNotFound"), on("False", "FetchingChart"), ""},
		"Installing":           {on("False", "FetchingChart"), on("False", "Installing"), "Normal"},
		"Failure":              {on("False", "Installing"), on("False", "InstallFailed"), "Warning"},
		"FirstFailure":         {nil, on("False", "VersionNotOffered"), "Warning"},
		"OtherFailure":         {on("False", "InstallFailed"), on("False", "Stalled"), "Warning"},
		"SameFailure":          {on("False", "InstallFailed"), on("False", "InstallFailed"), ""},
		"Unreachable":          {on("True", "Installed"), on("Unknown", "TargetUnreachable"), "Warning"},
		"SameReasonWorse":      {on("False", "TargetUnreachable"), on("Unknown", "TargetUnreachable"), "Warning"},
		"Removing":             {on("True", "Installed"), on("False", "RemovingServer"), "Normal"},
		"BlockedRemoval":       {on("True", "Installed"), on("False", v1alpha1.ReasonUserResourcesExist), "Warning"},
		"ControlPlaneDeleting": {on("True", "Granted"), on("False", "ControlPlaneDeleting"), "Normal"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var before []metav1.Condition
			if test.before != nil {
				before = append(before, *test.before)
			}
			got := Transitions(before, []metav1.Condition{*test.after})
			var want []Event
			if test.want != "" {
				want = []Event{{test.want, test.after.Reason, "m"}}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSummaryIsNoNews: Ready repeats what another condition says; that is one event.
func TestSummaryIsNoNews(t *testing.T) {
	velero, observed := stored(t)
	attempt("UpgradeFailed", "timeout waiting for: x")(observed.Server.HelmRelease)
	got := Compute(velero, observed, later)
	events := Transitions(velero.Status.Conditions, got.Conditions)
	if len(events) != 1 || events[0].Type != "Warning" || events[0].Reason != v1alpha1.ReasonUpgradeFailed {
		t.Errorf("events %v", events)
	}
	back := Transitions(got.Conditions, velero.Status.Conditions)
	want := []Event{
		{"Normal", "Installed", "the Velero server is installed (chart version 0.1.0)"},
		{"Normal", "Ready", "Velero v1.17.1 is installed"},
	}
	if diff := cmp.Diff(want, back); diff != "" {
		t.Error(diff)
	}
}
