// Package await waits in tests for what others bring about.
package await

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// look is the time between two looks.
const look = 100 * time.Millisecond

// Until waits until check passes, and returns what check said last when it does not within limit.
func Until(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	last := errors.New("never looked")
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %w", limit, last)
		case <-time.After(look):
		}
	}
}
