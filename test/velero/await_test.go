package velero

import (
	"context"
	"testing"
	"time"

	"github.com/openmcp-project/service-provider-velero/test/await"
)

const (
	// installed bounds what takes Flux, a new API server and the pull of images, on a busy machine.
	installed = 5 * time.Minute
	// done bounds what Velero does in seconds, on a busy machine.
	done = 2 * time.Minute
)

// eventually waits until check passes, and fails the test with what check said last.
func eventually(t *testing.T, limit time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	if err := await.Until(t.Context(), limit, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// must fails the test when setting it up failed.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
