package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

func trial(t *testing.T, asked plan.Request) plan.Trial {
	t.Helper()
	trial, blocked := plan.Check(asked.Config, asked.Sources)
	if blocked != nil {
		t.Fatal(blocked)
	}
	return trial
}

// tried is the outcome for the ProviderConfig of a request when its sources hold something.
func tried(t *testing.T, asked plan.Request, held map[plan.Source]plan.Content) *plan.Blocked {
	t.Helper()
	trial := trial(t, asked)
	return trial.Run(held)
}

func TestUsableContentsHaveNoProblem(t *testing.T) {
	for _, name := range []string{"guide", "full"} {
		asked := request(t, name)
		if blocked := tried(t, asked, contents(t, resolve(t, asked).Secrets(grants()))); blocked != nil {
			t.Errorf("%s: %+v", name, blocked)
		}
	}
}

func TestAllUnusableContentsAreNamedOnce(t *testing.T) {
	asked := request(t, "full")
	held := contents(t, resolve(t, asked).Secrets(grants()))
	for source := range held {
		if source.Name == "chartcred" || source.Name == "custom-ca" {
			held[source] = plan.Content{}
		}
	}
	want := &plan.Blocked{Reason: v1alpha1.ReasonSecretInvalid, Message: `Secret "chartcred" of the ProviderConfig cannot be used: ` +
		`its type must be kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg; ` +
		`ConfigMap "custom-ca" of the ProviderConfig cannot be used: it has no key "ca-bundle.crt"`}
	if diff := cmp.Diff(want, tried(t, asked, held)); diff != "" {
		t.Error(diff)
	}
}

func TestATrialIsMadeAgainOnlyWhenItsSourcesChanged(t *testing.T) {
	first := trial(t, request(t, "full"))
	for name, test := range map[string]struct {
		change func(*plan.Request)
		again  bool
	}{
		"nothing":   {func(*plan.Request) {}, false},
		"the offer": {func(r *plan.Request) { r.Config.AvailableImages[0].Versions = []string{"v9.9.9"} }, false},
		"a secret": {func(r *plan.Request) {
			r.Sources[plan.Reference{Kind: plan.Secret, Name: "legacy"}] = plan.Version{UID: "uid", ResourceVersion: "2"}
		}, true},
		"the CA": {func(r *plan.Request) {
			r.Sources[plan.Reference{Kind: plan.ConfigMap, Name: "custom-ca"}] = plan.Version{UID: "other", ResourceVersion: "1"}
		}, true},
		"another key": {func(r *plan.Request) { r.Config.CABundleRef.Key = "other" }, true},
	} {
		asked := request(t, "full")
		test.change(&asked)
		next := trial(t, asked)
		if again := next.Fingerprint() != first.Fingerprint(); again != test.again {
			t.Errorf("%s changed: tried again: %v", name, again)
		}
	}
	seen := map[plan.Source]bool{}
	for _, source := range first.Sources() {
		if seen[source] {
			t.Errorf("%v is to be read twice", source)
		}
		seen[source] = true
	}
	if len(seen) != len(plan.References(request(t, "full").Config)) {
		t.Errorf("the contents of %v are read", first.Sources())
	}
}
