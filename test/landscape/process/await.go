package process

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Await waits until check succeeds, at most for limit. When the process ends before, or time runs out, the error holds
// the reason and the end of the log.
func (r Record) Await(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if !r.Alive() {
			return fmt.Errorf("%s has ended; %s", r.Name, LogTail(r.Log))
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return fmt.Errorf("%s is not ready after %s: %w; %s", r.Name, limit, err, LogTail(r.Log))
		case <-time.After(100 * time.Millisecond):
		}
	}
}
