// Package property shows that what a Velero ends with does not depend on how it came there.
package property

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

var (
	seed  = flag.Uint64("seed", 1, "of the first path; each one after it has the next one")
	count = flag.Int("paths", 500, "how many paths to walk")
)

// lanes walk side by side.
const lanes = 4

// TestPathIndependence walks random paths of changes to the Velero, the ProviderConfig, the Secrets and the ConfigMap that it names, and the
// granted credentials, at a random pace. The end is compared with that of a Velero that was ordered with the last input.
//
// To see one path again: go test ./test/property -seed=N -paths=1.
func TestPathIndependence(t *testing.T) {
	for lane := range lanes {
		t.Run(fmt.Sprintf("lane %d", lane), func(t *testing.T) {
			t.Parallel()
			for number := lane; number < *count && !t.Failed(); number += lanes {
				walkOne(t, *seed+uint64(number))
			}
		})
	}
}

func walkOne(t *testing.T, seed uint64) {
	t.Helper()
	path := newPath(rand.New(rand.NewPCG(seed, 0)))
	if err := path.walk(t.Context()); err != nil {
		path, err = path.shrunk(t.Context(), err)
		t.Errorf("seed %d, minimised to\n%s%v", seed, path, err)
	}
}

// shrunk drops steps as long as the rest fails too.
func (p path) shrunk(ctx context.Context, failure error) (path, error) {
	for i := 0; i < len(p.steps); {
		fewer := path{everything: p.everything, steps: slices.Delete(slices.Clone(p.steps), i, i+1)}
		if err := fewer.walk(ctx); err != nil {
			p, failure, i = fewer, err, 0
			continue
		}
		i++
	}
	return p, failure
}

// String has one line for each step.
func (p path) String() string {
	lines := "  start with as little as possible\n"
	if p.everything {
		lines = "  start with everything\n"
	}
	for _, step := range p.steps {
		lines += "  " + step.String() + "\n"
	}
	return lines
}

// walk takes the path and says how its end differs from that of a fresh start.
func (p path) walk(ctx context.Context) error {
	begin := start(p.everything)
	walked, err := newWorld(ctx, begin)
	if err != nil {
		return err
	}
	if err := walked.settle(ctx); err != nil {
		return fmt.Errorf("at the start: %w", err)
	}
	for _, step := range p.steps {
		if step.restart {
			walked.restart()
		}
		changed := walked.input.copy()
		step.edit(&changed, &begin)
		if err := walked.take(ctx, changed, step.rounds); err != nil {
			return fmt.Errorf("after %q: %w", step.name, err)
		}
	}
	if err := walked.settle(ctx); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	ready, err := walked.sameVerdict(ctx)
	if err != nil {
		return err
	}
	if !ready {
		if err := walked.take(ctx, walked.input.mended(), settled); err != nil {
			return fmt.Errorf("mended: %w", err)
		}
	}
	return walked.sameState(ctx)
}

// take makes a change.
func (w *world) take(ctx context.Context, changed input, rounds int) error {
	if err := w.apply(ctx, changed); err != nil {
		return err
	}
	if rounds == settled {
		return w.settle(ctx)
	}
	for range rounds {
		if err := w.round(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sameVerdict compares what the user is told with what a fresh start is told, and says whether that is Ready.
func (w *world) sameVerdict(ctx context.Context) (bool, error) {
	told, ready, err := w.verdicts(ctx)
	if ready || err != nil {
		return ready, err
	}
	fresh, err := w.fresh(ctx)
	if err != nil {
		return false, err
	}
	want, _, err := fresh.verdicts(ctx)
	if err != nil {
		return false, err
	}
	for name, one := range told {
		if strings.Contains(one.Ready.Message, "waits for its turn") {
			// It is Ready as it was while the other one is not.
			delete(want, name)
			delete(told, name)
		}
	}
	if diff := cmp.Diff(want, told); diff != "" {
		return false, fmt.Errorf("another verdict than after a fresh start (-fresh +path):\n%s", diff)
	}
	return false, nil
}

// verdicts on all, and whether all are Ready.
func (w *world) verdicts(ctx context.Context) (map[string]verdict, bool, error) {
	all, ready := map[string]verdict{}, true
	for _, velero := range veleros {
		told, err := w.verdict(ctx, velero)
		if err != nil {
			return nil, false, err
		}
		all[velero.Name], ready = told, ready && told.Phase == string(v1alpha1.Ready)
	}
	return all, ready, nil
}

// sameState compares everything, once what is asked for can be had.
func (w *world) sameState(ctx context.Context) error {
	fresh, err := w.fresh(ctx)
	if err != nil {
		return err
	}
	told, ready, err := w.verdicts(ctx)
	if err != nil {
		return err
	}
	if !ready {
		return fmt.Errorf("not all are Ready: %+v", told)
	}
	want, err := fresh.state(ctx)
	if err != nil {
		return fmt.Errorf("after a fresh start: %w", err)
	}
	got, err := w.state(ctx)
	if err != nil {
		return err
	}
	if !maps.Equal(want, got) {
		return fmt.Errorf("another state than after a fresh start (-fresh +path):\n%s", cmp.Diff(want, got))
	}
	if err := w.check(ctx); err != nil {
		return err
	}
	return w.quiet(ctx)
}

// fresh is a new world with the same input.
func (w *world) fresh(ctx context.Context) (*world, error) {
	fresh, err := newWorld(ctx, w.input)
	if err != nil {
		return nil, err
	}
	if err := fresh.settle(ctx); err != nil {
		return nil, fmt.Errorf("a fresh start: %w", err)
	}
	return fresh, nil
}

// quiet: a reconcile when nothing changed writes nothing, not even after a restart.
func (w *world) quiet(ctx context.Context) error {
	before := w.writes()
	w.restart()
	for range 2 {
		if err := w.reconcile(ctx); err != nil {
			return err
		}
	}
	if w.writes() != before {
		return errors.New("a reconcile wrote although nothing changed")
	}
	return nil
}
