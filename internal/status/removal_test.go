package status

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// TestRemoval goes through a deletion: each condition is as it was until the deletion comes to it.
func TestRemoval(t *testing.T) {
	velero, observed := healthy(t)
	withInventory(&observed)
	velero.Status = Compute(velero, observed, earlier)
	velero.DeletionTimestamp = &later
	tests := []struct {
		step                            string
		controlPlane, server, granted   string
		platform, onControlPlane, nodes int
	}{
		{v1alpha1.ReasonUserResourcesExist, "Installed", "Installed", "Granted", 4, 3, 2},
		{v1alpha1.ReasonRemovingServer, "Installed", "RemovingServer", "Granted", 4, 3, 2},
		{v1alpha1.ReasonRemovingWorkloadNamespace, "Installed", "RemovingWorkloadNamespace", "Granted", 3, 3, 0},
		{v1alpha1.ReasonRemovingControlPlane, "RemovingControlPlane", "RemovingServer", "Granted", 3, 3, 0},
		{v1alpha1.ReasonRemovingCRDs, "RemovingCRDs", "RemovingServer", "Granted", 2, 2, 0},
		{v1alpha1.ReasonRemovingPlatformObjects, "RemovingControlPlane", "RemovingServer", "Granted", 2, 0, 0},
		{v1alpha1.ReasonReleasingAccess, "RemovingControlPlane", "RemovingServer", "ReleasingAccess", 0, 0, 0},
	}
	for _, test := range tests {
		for _, problem := range []string{v1alpha1.ReasonTargetUnreachable, ""} {
			message := fmt.Sprintf("at %s, problem: %q", test.step, problem)
			velero.Status = Compute(velero, Observation{Removal: &Removal{Reason: test.step, Message: message, Problem: problem}}, later)
			reason := problem
			if reason == "" {
				reason = test.step
			}
			outcome{metav1.ConditionFalse, reason, v1alpha1.Terminating, []string{message}}.check(t, velero.Status, v1alpha1.ConditionReady)
		}
		got := []string{find(velero.Status.Status, "ControlPlaneInstalled").Reason, find(velero.Status.Status, "ServerInstalled").Reason, find(velero.Status.Status, "AccessGranted").Reason}
		if diff := cmp.Diff([]string{test.controlPlane, test.server, test.granted}, got); diff != "" {
			t.Errorf("%s: %s", test.step, diff)
		}
		count := map[v1alpha1.ResourceLocation]int{}
		for _, resource := range velero.Status.Resources {
			count[resource.Location]++
			if terminating := test.step != v1alpha1.ReasonUserResourcesExist; terminating != (resource.Phase == v1alpha1.Terminating) {
				t.Errorf("%s: %s %s is %s", test.step, resource.Kind, resource.Name, resource.Phase)
			}
		}
		if got, want := [3]int{count[v1alpha1.Platform], count[v1alpha1.ManagedControlPlane], count[v1alpha1.WorkloadCluster]}, [3]int{test.platform, test.onControlPlane, test.nodes}; got != want {
			t.Errorf("%s: resources per cluster %v, want %v", test.step, got, want)
		}
		again := Compute(velero, Observation{Removal: &Removal{Reason: test.step, Message: find(velero.Status.Status, "Ready").Message}}, metav1.NewTime(later.Add(1)))
		if diff := cmp.Diff(velero.Status, again); diff != "" {
			t.Errorf("%s flaps: %s", test.step, diff)
		}
	}
}

// TestRemovalOfWhatNeverWas: a Velero may be deleted before anything was said about it, and before the deletion has begun.
func TestRemovalOfWhatNeverWas(t *testing.T) {
	velero, observed := healthy(t)
	velero.DeletionTimestamp = &later
	got := Compute(velero, observed, later)
	outcome{metav1.ConditionFalse, v1alpha1.ReasonRemovingServer, v1alpha1.Terminating, []string{"server"}}.check(t, got, v1alpha1.ConditionReady)
	if len(got.Conditions) != 2 || got.Resources != nil {
		t.Errorf("conditions %v, resources %v", got.Conditions, got.Resources)
	}
}
