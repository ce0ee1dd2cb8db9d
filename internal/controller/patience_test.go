package controller

import (
	"testing"
	"time"
)

// TestPatience: quick at first, rare in the end, and quick again when something changed.
func TestPatience(t *testing.T) {
	start := time.Unix(1000, 0)
	tests := map[string]struct {
		user         bool
		waited, next time.Duration
	}{
		"Cluster, first look":        {false, 0, 2 * time.Second},
		"Cluster, after seconds":     {false, 20 * time.Second, 10 * time.Second},
		"Cluster, after minutes":     {false, 5 * time.Minute, time.Minute},
		"User, first look":           {true, 0, 2 * time.Second},
		"User, after minutes":        {true, 5 * time.Minute, 8 * time.Second},
		"User, just within the hour": {true, time.Hour - time.Second, 8 * time.Second},
		"User, after an hour":        {true, time.Hour, time.Minute},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var subject patience
			looks := 0
			for now := start; ; looks++ {
				next := subject.next("a", "reason", test.user, now)
				if now.Sub(start) >= test.waited {
					if next = subject.next("a", "reason", test.user, start.Add(test.waited)); next != test.next {
						t.Errorf("after %s: %s, want %s", test.waited, next, test.next)
					}
					break
				}
				now = now.Add(next)
			}
			end := start.Add(test.waited)
			if next := subject.next("b", "reason", test.user, end); next != lookAgain {
				t.Errorf("another Velero: %s", next)
			}
			if next := subject.next("a", "another", test.user, end); next != lookAgain {
				t.Errorf("for another reason: %s", next)
			}
		})
	}
}

func TestPatienceForgets(t *testing.T) {
	var subject patience
	start := time.Unix(1000, 0)
	subject.next("a", "reason", false, start)
	subject.next("b", "reason", false, start.Add(forgotten+time.Second))
	if len(subject.waits) != 1 {
		t.Errorf("it remembers %v", subject.waits)
	}
}
