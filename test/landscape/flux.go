package landscape

import (
	"context"
	"fmt"
)

// CrashHelmController kills helm-controller, as a crash does, and starts it again.
func (l *Landscape) CrashHelmController(ctx context.Context) error {
	const name = "helm-controller"
	record, found, err := l.site.Processes().Lookup(name)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%s does not run", name)
	}
	if err := l.site.Processes().Kill(ctx, name); err != nil {
		return err
	}
	_, err = l.site.Start(record.Spec)
	return err
}
