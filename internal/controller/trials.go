package controller

import (
	"sync"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// trials remembers for each ProviderConfig what came of the last look into what it refers to, so that contents are read only once after they
// changed. It is kept in memory only, and holds no contents. The zero value is ready to use.
type trials struct {
	mutex    sync.Mutex
	outcomes map[string]outcome
}

type outcome struct {
	fingerprint string
	problem     *plan.Blocked
}

// recall says what came of a trial, if it was the last one of that ProviderConfig.
func (t *trials) recall(config, fingerprint string) (problem *plan.Blocked, known bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	last, known := t.outcomes[config]
	return last.problem, known && last.fingerprint == fingerprint
}

func (t *trials) remember(config, fingerprint string, problem *plan.Blocked) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.outcomes == nil {
		t.outcomes = map[string]outcome{}
	}
	t.outcomes[config] = outcome{fingerprint, problem}
}

func (t *trials) forget(config string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	delete(t.outcomes, config)
}
