package node

import (
	"context"
	"errors"
	"runtime"
)

// Remove takes away what the nodes of the landscape in dir leave outside of it. Their processes must have ended. It works
// after a crash as well, and where there never were nodes.
func Remove(ctx context.Context, dir string) error {
	if runtime.GOOS != "linux" {
		return nil
	}
	return errors.Join(unplug(ctx, dir), removeCgroups("/"+Identity(dir)))
}
