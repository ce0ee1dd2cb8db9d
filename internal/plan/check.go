package plan

import (
	"slices"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// Trial is what every Velero of a ProviderConfig would be given: its Secrets are generated only to find out whether they can be.
type Trial struct {
	plan    Plan
	secrets []GeneratedSecret
}

// Check says why a ProviderConfig can be used for no Velero at all, as far as that can be said without contents; nil: the Trial says the rest.
// Sources has an entry for each of References(config) that exists.
func Check(config *v1alpha1.ProviderConfigSpec, sources map[Reference]Version) (Trial, *Blocked) {
	if len(offeredVersions(config, v1alpha1.ServerImageName)) == 0 {
		return Trial{}, block(v1alpha1.ReasonVersionNotOffered, "the platform offers no Velero version")
	}
	if blocked := missing(config, sources); blocked != nil {
		return Trial{}, blocked
	}
	controlPlane, server, blocked := extraValues(config)
	if blocked != nil {
		return Trial{}, blocked
	}
	trial := Trial{plan: Plan{config: config, sources: sources, controlPlane: controlPlane, server: server}}
	trial.secrets = append(trial.plan.chartSecrets(), trial.plan.serverValuesSecret())
	return trial, nil
}

// Fingerprint changes whenever the outcome may be another one.
func (t *Trial) Fingerprint() string {
	fingerprints := make([]any, 0, len(t.secrets))
	for _, secret := range t.secrets {
		fingerprints = append(fingerprints, secret.Fingerprint)
	}
	return fingerprint(fingerprints...)
}

// Sources are what Run needs the contents of, each once.
func (t *Trial) Sources() []Source {
	var sources []Source
	for _, secret := range t.secrets {
		for _, source := range secret.Sources {
			if !slices.Contains(sources, source) {
				sources = append(sources, source)
			}
		}
	}
	return sources
}

// Run says what cannot be used, in the words that each Velero's user reads, or nil.
func (t *Trial) Run(contents map[Source]Content) *Blocked {
	var problems []problem
	for _, secret := range t.secrets {
		_, blocked := t.plan.Generate(secret, contents)
		if blocked == nil {
			continue
		}
		if found := (problem{blocked.Reason, blocked.Message}); !slices.Contains(problems, found) {
			problems = append(problems, found)
		}
	}
	return blockedBy(problems)
}
