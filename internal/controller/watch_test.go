package controller

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestWhatFailsIsTriedAtLeastEveryMinute(t *testing.T) {
	limiter, failing := retries(), reconcile.Request{}
	for attempt, before := 0, time.Duration(0); attempt < 40; attempt++ {
		wait := limiter.When(failing)
		if wait > time.Minute || wait < before {
			t.Fatalf("after %d failures the next attempt is %s later, before that %s", attempt+1, wait, before)
		}
		before = wait
	}
	limiter.Forget(failing)
	if wait := limiter.When(failing); wait > time.Second {
		t.Errorf("after a success the next attempt is %s later", wait)
	}
}
