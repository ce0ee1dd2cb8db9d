package e2e

import "testing"

// TestLifecycle is every state of a Velero's life, each with a tenant of its own. The name of each test says the state and, after the bar,
// how it has to end.
func TestLifecycle(t *testing.T) {
	for _, part := range lifecycle {
		t.Run(part.topic, part.run)
	}
}

// lifecycle are the parts of TestLifecycle, in their order.
var lifecycle = []part{
	{"waves", waves},
	{"token", onboardingToken},
	{"upgrade", upgrades},
	{"secrets", secrets},
	{"canary", canary},
	{"paths", paths},
	// Last: it takes Flux's CRDs away from everybody for a while.
	{"deletion", deletions},
}

type part struct {
	topic string
	run   func(*testing.T)
}
