package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/fluxgen"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// ConflictError says that an object of a name that we need exists and is not ours. It is never adopted.
type ConflictError struct {
	Kind, Name string
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s %q exists already and does not have the labels of this Velero", e.Kind, e.Name)
}

// writer is what the API server records as the writer of what we write; edits of others are recognised by it.
const writer = client.FieldOwner(plan.UserAgent)

// ApplySource creates the OCIRepository, or corrects it when it differs from what is wanted, and returns it as it is then.
func (p *Platform) ApplySource(ctx context.Context, current, wanted *sourcev1.OCIRepository) (*sourcev1.OCIRepository, error) {
	if current == nil {
		return wanted, p.create(ctx, wanted, &sourcev1.OCIRepository{}, sourcev1.OCIRepositoryKind)
	}
	changed := correctedSource(current, wanted)
	if changed == nil {
		return current, nil
	}
	return changed, p.patch(ctx, current, changed, sourcev1.OCIRepositoryKind)
}

// correctedSource is an OCIRepository with what is wanted; nil when nothing differs, or when it is being deleted. spec.suspend is the SREs'.
func correctedSource(current, wanted *sourcev1.OCIRepository) *sourcev1.OCIRepository {
	if !current.DeletionTimestamp.IsZero() {
		return nil
	}
	changed := current.DeepCopy()
	changed.Spec = wanted.Spec
	changed.Spec.Suspend = current.Spec.Suspend
	adjustMetadata(changed, wanted)
	if equality.Semantic.DeepEqual(current, changed) {
		return nil
	}
	return changed
}

// ApplyRelease creates the HelmRelease, or corrects it when it differs from what is wanted, and returns it as it is then.
func (p *Platform) ApplyRelease(ctx context.Context, current, wanted *helmv2.HelmRelease) (*helmv2.HelmRelease, error) {
	if current == nil {
		return wanted, p.create(ctx, wanted, &helmv2.HelmRelease{}, helmv2.HelmReleaseKind)
	}
	changed := corrected(current, wanted)
	if changed == nil {
		return current, nil
	}
	return changed, p.patch(ctx, current, changed, helmv2.HelmReleaseKind)
}

// Differs says whether ApplyRelease would change an existing HelmRelease.
func Differs(current, wanted *helmv2.HelmRelease) bool { return corrected(current, wanted) != nil }

// Restarts says whether a change of a HelmRelease may restart what it installed: one of the chart or of the values.
func Restarts(current, wanted *helmv2.HelmRelease) bool {
	return !equality.Semantic.DeepEqual(current.Spec.ChartRef, wanted.Spec.ChartRef) || !sameJSON(current.Spec.Values, wanted.Spec.Values)
}

// corrected is a HelmRelease with what is wanted; nil when nothing differs, or when it is being deleted. spec.suspend is left as it is:
// suspending is how an SRE holds a release while working on it.
func corrected(current, wanted *helmv2.HelmRelease) *helmv2.HelmRelease {
	if !current.DeletionTimestamp.IsZero() {
		return nil
	}
	changed := current.DeepCopy()
	changed.Spec = wanted.Spec
	changed.Spec.Suspend = current.Spec.Suspend
	if sameJSON(current.Spec.Values, wanted.Spec.Values) {
		// The API server stores JSON in an order of its own.
		changed.Spec.Values = current.Spec.Values
	}
	adjustMetadata(changed, wanted)
	if equality.Semantic.DeepEqual(current, changed) {
		return nil
	}
	return changed
}

// create makes an object. When there is one of that name already, it is a conflict; or ours and not in the cache yet, and then the cache's
// next event brings us back; or ours without the label that the cache selects by, which it gets again.
func (p *Platform) create(ctx context.Context, wanted, existing client.Object, kind string) error {
	err := p.client.Create(ctx, wanted, writer)
	if !apierrors.IsAlreadyExists(err) {
		return wrap(err, "create", kind, wanted.GetName())
	}
	if err := p.reader.Get(ctx, client.ObjectKeyFromObject(wanted), existing); err != nil {
		return wrap(client.IgnoreNotFound(err), "read", kind, wanted.GetName())
	}
	if existing.GetLabels()[plan.InstanceLabel] != wanted.GetLabels()[plan.InstanceLabel] {
		return &ConflictError{Kind: kind, Name: wanted.GetName()}
	}
	if existing.GetLabels()[plan.ManagedByLabel] == plan.ProviderName {
		return nil
	}
	labelled := existing.DeepCopyObject().(client.Object)
	labelled.SetLabels(merged(labelled.GetLabels(), wanted.GetLabels()))
	return p.patch(ctx, existing, labelled, kind)
}

func (p *Platform) patch(ctx context.Context, current, changed client.Object, kind string) error {
	if current.GetLabels()[plan.InstanceLabel] != changed.GetLabels()[plan.InstanceLabel] {
		return &ConflictError{Kind: kind, Name: current.GetName()}
	}
	return wrap(p.client.Patch(ctx, changed, client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{})), "update", kind, current.GetName())
}

// delete removes exactly the object that was seen. Waiting until it is gone is the caller's.
func (p *Platform) delete(ctx context.Context, object client.Object, kind string) error {
	uid := object.GetUID()
	return wrap(client.IgnoreNotFound(p.client.Delete(ctx, object, client.Preconditions{UID: &uid})), "delete", kind, object.GetName())
}

// adjustMetadata adds the wanted labels and annotations. Others stay: Flux's own annotations, and what SREs put there. The shard is not among
// them: an object that keeps the label after the shards are gone is reconciled by nobody.
func adjustMetadata(changed, wanted client.Object) {
	labels := merged(changed.GetLabels(), wanted.GetLabels())
	if _, sharded := wanted.GetLabels()[fluxgen.ShardLabel]; !sharded {
		delete(labels, fluxgen.ShardLabel)
	}
	changed.SetLabels(labels)
	changed.SetAnnotations(merged(changed.GetAnnotations(), wanted.GetAnnotations()))
}

func merged(current, wanted map[string]string) map[string]string {
	if len(wanted) == 0 {
		return current
	}
	result := maps.Clone(current)
	if result == nil {
		result = map[string]string{}
	}
	maps.Copy(result, wanted)
	return result
}

func sameJSON(a, b *apiextensionsv1.JSON) bool {
	if a == nil || b == nil {
		return a == b
	}
	var left, right any
	return json.Unmarshal(a.Raw, &left) == nil && json.Unmarshal(b.Raw, &right) == nil && equality.Semantic.DeepEqual(left, right)
}

func wrap(err error, verb, kind, name string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s %q: %w", verb, kind, name, err)
}

// key of an object in a tenant namespace.
func key(names plan.Names, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: names.TenantNamespace, Name: name}
}
