package mirror

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/errgroup"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// jobs is how many parts of one manifest are copied at the same time.
const jobs = 4

// Copy says what is copied, from where to where.
type Copy struct {
	Artifacts []plan.Artifact
	// FromLayout is nil when the artifacts are where the ProviderConfig says; else they are taken from a mirror.
	FromLayout *Layout
	From       Access
	ToLayout   Layout
	To         Access
	// Platforms limits what is copied of an index; empty: all of it.
	Platforms []v1.Platform
	// Parallel is how many artifacts are copied at the same time.
	Parallel int
	// DryRun only looks.
	DryRun bool
	// Updates, if it is not nil, is told how many bytes of how many, as far as it is known, are there. Nothing is sent after Run returned.
	Updates chan<- v1.Update
}

// Result is what became of one artifact.
type Result struct {
	plan.Artifact
	Source, Target string
	Digest         string
	// Present: the target had it already.
	Present bool
	// Attached are how many signatures and other referrers belong to it, Added how many of them the target did not have.
	Attached, Added int
}

// run is one Copy that runs.
type run struct {
	Copy
	from, to *side
	pusher   *remote.Pusher
	// referring has one writer at a time add referrers to a repository: where a registry keeps their list in a tag, two would lose some.
	referring sync.Map
}

// Run copies everything that is not in the target yet. An artifact that fails does not hold up the others; the error names each.
func (c Copy) Run(ctx context.Context) ([]Result, error) {
	all, err := places(c.Artifacts, c.FromLayout, c.ToLayout)
	if err != nil {
		return nil, err
	}
	running := &run{Copy: c}
	if err := running.connect(ctx); err != nil {
		return nil, err
	}
	results, problems := make([]Result, len(all)), make([]error, len(all))
	group := errgroup.Group{}
	group.SetLimit(max(c.Parallel, 1))
	for i, place := range all {
		group.Go(func() error {
			results[i], problems[i] = running.artifact(ctx, place)
			if problems[i] != nil {
				problems[i] = fmt.Errorf("%s: %w", place.source, problems[i])
			}
			return nil
		})
	}
	_ = group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("stopped; start it again and it goes on with what is missing: %w", err)
	}
	var done []Result
	for i, result := range results {
		if problems[i] == nil {
			done = append(done, result)
		}
	}
	return done, errors.Join(problems...)
}

func (r *run) connect(ctx context.Context) error {
	var err error
	if r.from, err = r.From.connect(ctx); err != nil {
		return err
	}
	if r.to, err = r.To.connect(ctx); err != nil {
		return err
	}
	options := append([]remote.Option{remote.WithJobs(jobs), remote.WithNondistributable}, r.to.options...)
	if r.Updates != nil {
		options = append(options, remote.WithProgress(r.Updates))
	}
	r.pusher, err = remote.NewPusher(options...)
	return err
}

func (r *run) artifact(ctx context.Context, place place) (Result, error) {
	result := Result{Artifact: place.Artifact, Source: place.source, Target: place.target}
	source, err := r.from.reference(place.source)
	if err != nil {
		return result, err
	}
	target, err := r.to.reference(place.target)
	if err != nil {
		return result, err
	}
	wanted, err := r.wanted(ctx, source)
	if err != nil {
		return result, err
	}
	digest, err := wanted.Digest()
	if err != nil {
		return result, err
	}
	result.Digest = digest.String()
	if result.Present, err = r.push(ctx, target, wanted); err != nil {
		return result, err
	}
	digests, err := subjects(wanted)
	if err != nil {
		return result, err
	}
	result.Attached, result.Added, err = r.attachments(ctx, source.Context(), target.Context(), digests)
	return result, err
}

// wanted is what is copied of what a reference leads to.
func (r *run) wanted(ctx context.Context, source name.Reference) (content, error) {
	found, err := r.from.puller.Get(ctx, source)
	if err != nil {
		return nil, err
	}
	if _, pinned := source.(name.Digest); pinned && len(r.Platforms) > 0 && found.MediaType.IsIndex() {
		return nil, errors.New("it is pinned to the digest of all its platforms, so none can be left out")
	}
	return contentOf(found, r.Platforms)
}

// push writes a manifest and all that it consists of, unless the target has it. The library reads every blob with its digest checked, writes
// what the registry does not have, and the manifest last: so one that is there is complete.
func (r *run) push(ctx context.Context, target name.Reference, wanted content) (present bool, err error) {
	digest, err := wanted.Digest()
	if err != nil {
		return false, err
	}
	there, err := r.to.head(ctx, target)
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", target, err)
	}
	if there != nil && there.Digest == digest {
		return true, nil
	}
	if r.DryRun {
		return false, nil
	}
	if err := r.pusher.Push(ctx, target, wanted); err != nil {
		return false, err
	}
	there, err = r.to.head(ctx, target)
	if err != nil {
		return false, fmt.Errorf("look at %s: %w", target, err)
	}
	if there == nil || there.Digest != digest {
		return false, fmt.Errorf("%s is not what was written: %s", target, digest)
	}
	return false, nil
}

// attachments copies what belongs to manifests, and what belongs to that in turn.
func (r *run) attachments(ctx context.Context, source, target name.Repository, digests []v1.Hash) (attached, added int, err error) {
	seen := map[v1.Hash]bool{}
	for len(digests) > 0 {
		subject := digests[0]
		digests = digests[1:]
		if seen[subject] {
			continue
		}
		seen[subject] = true
		found, err := r.from.attached(ctx, source, subject)
		if err != nil {
			return attached, added, err
		}
		for _, attachment := range found {
			present, err := r.attachment(ctx, source, target, attachment)
			if err != nil {
				return attached, added, fmt.Errorf("copy %s, which belongs to %s: %w", attachment.digest, subject, err)
			}
			attached++
			if !present {
				added++
			}
			digests = append(digests, attachment.digest)
		}
	}
	return attached, added, nil
}

func (r *run) attachment(ctx context.Context, source, target name.Repository, attachment attachment) (present bool, err error) {
	found, err := r.from.puller.Get(ctx, source.Digest(attachment.digest.String()))
	if err != nil {
		return false, err
	}
	wanted, err := contentOf(found, nil)
	if err != nil {
		return false, err
	}
	if attachment.tag != "" {
		return r.push(ctx, target.Tag(attachment.tag), wanted)
	}
	lock, _ := r.referring.LoadOrStore(target.String(), &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	return r.push(ctx, target.Digest(attachment.digest.String()), wanted)
}
