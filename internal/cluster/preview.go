package cluster

import (
	"context"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// Change is one object that would be written or removed.
type Change struct {
	// Before is nil for an object that would be created, After for one that would be removed as soon as nothing uses it any more.
	Before, After client.Object
}

// Preview says what applying the wanted objects of one Velero would change, and writes nothing.
func (p *Platform) Preview(ctx context.Context, names plan.Names, wanted []client.Object) ([]Change, error) {
	observed, err := p.Observe(ctx, names)
	if err != nil {
		return nil, err
	}
	var changes []Change
	kept := map[string]bool{}
	for _, object := range wanted {
		kept[identityOf(object)] = true
		change, err := p.preview(ctx, names, observed, object)
		if err != nil {
			return nil, err
		}
		if change.Before != nil || change.After != nil {
			changes = append(changes, change)
		}
	}
	return append(changes, unused(observed, kept)...), nil
}

func (p *Platform) preview(ctx context.Context, names plan.Names, observed Observation, object client.Object) (Change, error) {
	var before, after client.Object
	switch wanted := object.(type) {
	case *corev1.Secret:
		return p.previewSecret(ctx, names, observed, wanted)
	case *sourcev1.OCIRepository:
		current := observed.Sources[wanted.Name]
		if current == nil {
			return Change{After: wanted}, nil
		}
		if changed := correctedSource(current, wanted); changed != nil {
			before, after = current, changed
		}
	case *helmv2.HelmRelease:
		current := observed.Releases[wanted.Name]
		if current == nil {
			return Change{After: wanted}, nil
		}
		if changed := corrected(current, wanted); changed != nil {
			before, after = current, changed
		}
	default:
		return Change{}, fmt.Errorf("nothing is known about changes of a %T", object)
	}
	return Change{Before: before, After: after}, nil
}

func (p *Platform) previewSecret(ctx context.Context, names plan.Names, observed Observation, wanted *corev1.Secret) (Change, error) {
	existing := observed.Secrets[wanted.Name]
	if existing == nil {
		return Change{After: wanted}, nil
	}
	if existing.Annotations[plan.SourcesAnnotation] == wanted.Annotations[plan.SourcesAnnotation] && plan.Untouched(existing) {
		return Change{}, nil
	}
	current := &corev1.Secret{}
	if err := p.reader.Get(ctx, key(names, wanted.Name), current); err != nil {
		return Change{}, wrap(err, "read", "Secret", wanted.Name)
	}
	if fixed(current, wanted) {
		return Change{Before: current, After: wanted}, nil
	}
	return Change{Before: current, After: correctedSecret(current, wanted)}, nil
}

// unused are the objects that Prune would remove.
func unused(observed Observation, kept map[string]bool) []Change {
	var changes []Change
	for _, source := range observed.Sources {
		if !kept[identityOf(source)] && source.DeletionTimestamp.IsZero() {
			changes = append(changes, Change{Before: source})
		}
	}
	for _, secret := range observed.Secrets {
		before := &corev1.Secret{ObjectMeta: secret.ObjectMeta}
		if !kept[identityOf(before)] && secret.DeletionTimestamp.IsZero() {
			changes = append(changes, Change{Before: before})
		}
	}
	return changes
}

// identityOf tells objects of different kinds in one namespace apart.
func identityOf(object client.Object) string { return fmt.Sprintf("%T %s", object, object.GetName()) }
