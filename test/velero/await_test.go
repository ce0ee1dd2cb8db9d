package velero

import (
	"context"
	"errors"
	"testing"
	"time"
)

const (
	// installed bounds what takes Flux, a new API server and the pull of images, on a busy machine.
	installed = 5 * time.Minute
	// done bounds what Velero does in seconds, on a busy machine.
	done = 2 * time.Minute
	// look is the time between two looks.
	look = 200 * time.Millisecond
)

// eventually waits until check passes, and fails the test with what check said last.
func eventually(t *testing.T, limit time.Duration, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	last := errors.New("never looked")
	for {
		err := check(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v", what, limit, last)
		case <-time.After(look):
		}
	}
}

// must fails the test when setting it up failed.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
