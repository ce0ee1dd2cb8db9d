package await

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestUntilSaysWhatWasSeenLast(t *testing.T) {
	looks := 0
	err := Until(t.Context(), 3*look/2, func(ctx context.Context) error {
		looks++
		if looks > 1 {
			<-ctx.Done()
			return errors.New("the wait is over")
		}
		return errors.New("not yet")
	})
	if err == nil || !strings.Contains(err.Error(), "not yet") || looks != 2 {
		t.Errorf("error %v after %d looks", err, looks)
	}
}

func TestUntilEndsWhenTheCheckPasses(t *testing.T) {
	looks := 0
	err := Until(t.Context(), time.Minute, func(context.Context) error {
		looks++
		if looks < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || looks != 3 {
		t.Errorf("error %v after %d looks", err, looks)
	}
}
