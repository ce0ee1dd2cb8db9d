package landscape

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// together runs steps side by side. The first failure cancels the others and is the one returned.
func together(ctx context.Context, steps ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make(chan error)
	for _, step := range steps {
		go func() { results <- step(ctx) }()
	}
	var failures []error
	for range steps {
		if err := <-results; err != nil {
			failures = append(failures, err)
			cancel(err)
		}
	}
	if len(failures) == 0 {
		return nil
	}
	for _, err := range failures {
		if !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return failures[0]
}

// inOrder makes one step of several.
func inOrder(steps ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, step := range steps {
			if err := step(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// lock keeps two callers from bringing up the same landscape. It lies beside the state, which comes and goes.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("create the directory of the landscape: %w", err)
	}
	file, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the landscape: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock the landscape: %w", err)
	}
	return func() { file.Close() }, nil
}
