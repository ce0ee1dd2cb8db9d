package controller

import (
	"testing"
	"time"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/internal/status"
)

// TestNextLookHasPatience with a Secret that nobody makes: it may stay away for days.
func TestNextLookHasPatience(t *testing.T) {
	var subject Reconciler
	waiting := status.Observation{Access: status.Access{Reason: v1alpha1.ReasonWaitingForControlPlane, Unwatched: true}}
	now := time.Unix(1000, 0)
	look := func(observation status.Observation) time.Duration {
		return subject.nextLook("velero", observation, now).RequeueAfter
	}
	if next := look(waiting); next != lookAgain {
		t.Errorf("the first look is followed by one after %s", next)
	}
	looks := 0
	for end := now.Add(time.Hour); now.Before(end); looks++ {
		now = now.Add(look(waiting))
	}
	if looks > 80 {
		t.Errorf("%d looks in an hour", looks)
	}
	if next := look(status.Observation{Access: status.Access{Granted: true}}); next < resync/2 {
		t.Errorf("what is granted is looked at again after %s", next)
	}
	if next := look(waiting); next != lookAgain {
		t.Errorf("the next wait begins with %s", next)
	}
}

func TestWhatBelongsToOthersIsLookedAtAgain(t *testing.T) {
	for name, observation := range map[string]status.Observation{
		"an object of ours":   {Access: status.Access{Granted: true}, Blocked: &plan.Blocked{Reason: v1alpha1.ReasonNameConflict}},
		"a request of access": {Access: status.Access{Reason: v1alpha1.ReasonNameConflict, Failed: true}},
	} {
		var subject Reconciler
		if next := subject.nextLook("velero", observation, time.Now()).RequeueAfter; next != lookAgain {
			t.Errorf("%s: looked at again after %s", name, next)
		}
	}
}
