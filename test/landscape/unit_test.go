package landscape

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAuditEventsAreFilteredByTimeAndContent(t *testing.T) {
	log := strings.Join([]string{
		`{"verb":"list","user":{"username":"early"},"requestReceivedTimestamp":"2026-01-01T00:00:00.000000Z"}`,
		`{"verb":"create","user":{"username":"operator"},"objectRef":{"resource":"secrets","namespace":"a","name":"b"},` +
			`"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-01-01T00:00:02.000000Z"}`,
		`{"verb":"get","user":{"username":"operator"},"requestReceivedTimestamp":"2026-01-01T00:00:03.000000Z"}`,
		`{"verb":"create","user":{"usern`,
	}, "\n")
	since := time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC)
	all, err := auditEvents(strings.NewReader(log), since, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 {
		t.Errorf("%d events since the given time, want 2: %+v", len(all), all)
	}
	writes, err := auditEvents(strings.NewReader(log), since, AuditEvent.Writes)
	if err != nil {
		t.Fatal(err)
	}
	if len(writes) != 1 || writes[0].Object.Resource != "secrets" || writes[0].Response.Code != 201 || writes[0].User.Username != "operator" {
		t.Errorf("writes: %+v", writes)
	}
}

func TestDumpWithholdsSecrets(t *testing.T) {
	secret := &unstructured.Unstructured{Object: map[string]any{"kind": "Secret", "data": map[string]any{"token": "c2VjcmV0"}}}
	withhold(secret)
	want := map[string]any{"kind": "Secret", "data": map[string]any{"token": "(8 characters)"}}
	if diff := cmp.Diff(want, secret.Object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	other := &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "data": map[string]any{"key": "value"}}}
	withhold(other)
	if got, _, _ := unstructured.NestedString(other.Object, "data", "key"); got != "value" {
		t.Errorf("a ConfigMap lost its value: %s", got)
	}
}

func TestTogetherReturnsTheFailureAndNotWhatItCaused(t *testing.T) {
	broken := errors.New("broken")
	err := together(t.Context(),
		func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		func(context.Context) error { return broken },
		func(context.Context) error { return nil },
	)
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestStateDirectory(t *testing.T) {
	t.Setenv(StateVariable, "/from/environment")
	tests := map[string]struct {
		options Options
		want    string
	}{
		"Default": {Options{}, "/from/environment/default"},
		"Named":   {Options{Name: "mine"}, "/from/environment/mine"},
		"Option":  {Options{Name: "mine", State: "/chosen"}, "/chosen/mine"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := test.options.dir()
			if err != nil || got != filepath.FromSlash(test.want) {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

func TestTokenLifetimeBelowWhatTheAPIGrantsIsRefused(t *testing.T) {
	_, err := Up(t.Context(), Options{State: t.TempDir(), TokenLifetime: time.Minute})
	if err == nil || !strings.Contains(err.Error(), "10m0s at least") {
		t.Errorf("got %v", err)
	}
}

func TestLandscapeThatIsNotThere(t *testing.T) {
	options := Options{State: t.TempDir()}
	if _, err := Open(options); err == nil {
		t.Error("opened a landscape that does not exist")
	}
	if err := Down(t.Context(), options); err != nil {
		t.Errorf("taking down what is not there: %v", err)
	}
}
