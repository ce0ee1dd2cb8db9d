package controller

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/openmcp-project/service-provider-velero/internal/status"
)

const serverInTrouble = types.UID("in trouble")

// looking checks whether to look at the pods of a server, and what is said until then.
func looking(t *testing.T, l *looks, generation int64, failed bool, told *status.Diagnosis, after time.Duration, want bool, said *status.Diagnosis) {
	t.Helper()
	found, look := l.begin(serverInTrouble, generation, failed, told, start.Add(after))
	if look != want || found != said {
		t.Fatalf("after %s: look %t, say %+v; want %t, %+v", after, look, found, want, said)
	}
}

func TestServersAreLookedAtWhenTheyTakeLong(t *testing.T) {
	l, trouble := &looks{}, &status.Diagnosis{Reason: "CrashLoop"}
	looking(t, l, 1, false, nil, 0, false, nil)
	looking(t, l, 1, false, nil, 59*time.Second, false, nil)
	looking(t, l, 1, false, nil, usual, true, nil)
	l.end(serverInTrouble, trouble, start.Add(usual))
	looking(t, l, 1, false, trouble, usual+lookAtPods-1, false, trouble)
	// That Flux has given up waiting is no reason to look at once, when somebody has looked already.
	looking(t, l, 1, true, trouble, usual+lookAtPods-1, false, trouble)
	looking(t, l, 1, true, trouble, usual+lookAtPods, true, trouble)
	l.end(serverInTrouble, nil, start.Add(usual+lookAtPods))
	looking(t, l, 1, true, nil, usual+lookAtPods+1, false, nil)
	// What is wanted now may have another fate.
	looking(t, l, 2, false, trouble, 5*time.Minute, false, nil)
	l.over(serverInTrouble)
	if again := l.again(serverInTrouble, start); again != 0 {
		t.Errorf("looks again after %s at what is over", again)
	}
}

func TestFailedServersAreLookedAtAtOnce(t *testing.T) {
	looking(t, &looks{}, 1, true, nil, 0, true, nil)
	l := &looks{}
	looking(t, l, 1, false, nil, 0, false, nil)
	looking(t, l, 1, true, nil, time.Second, true, nil)
}

// TestDiagnosisSurvivesARestart: it is looked at once, and until then nothing else is said.
func TestDiagnosisSurvivesARestart(t *testing.T) {
	told := &status.Diagnosis{Reason: "CrashLoop"}
	looking(t, &looks{}, 1, false, told, 0, true, told)
}

func TestLooksBecomeRare(t *testing.T) {
	l := &looks{}
	now := start
	var counted int
	for now.Before(start.Add(24 * time.Hour)) {
		if _, look := l.begin(serverInTrouble, 1, true, nil, now); look {
			counted++
			l.end(serverInTrouble, nil, now)
		}
		again := l.again(serverInTrouble, now)
		if again < lookAtPods || again > lookAtPodsLater {
			t.Fatalf("looks again after %s", again)
		}
		now = now.Add(again)
	}
	if counted > 310 {
		t.Errorf("%d looks in a day", counted)
	}
}
