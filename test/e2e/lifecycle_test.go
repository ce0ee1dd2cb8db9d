package e2e

import (
	"testing"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// TestLifecycle is every state of a Velero's life, each with a tenant of its own. The name of each test says the state and, after the bar,
// how it has to end.
func TestLifecycle(t *testing.T) {
	for _, part := range lifecycle {
		// What a failed part left behind must not make others fail.
		changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) { *spec = offered().Spec })
		t.Run(part.topic, part.run)
	}
	everybodyLeft(t)
}

// lifecycle are the parts of TestLifecycle, in their order.
var lifecycle = []part{
	{"waves", waves},
	{"token", onboardingToken},
	{"upgrade", upgrades},
	{"failures", failures},
	{"secrets", secrets},
	{"canary", canary},
	{"flux", fluxIssues},
	{"paths", paths},
	// Last: it takes Flux's CRDs away from everybody for a while.
	{"deletion", deletions},
}

type part struct {
	topic string
	run   func(*testing.T)
}
