package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// Everything in this file reads past the caches: a stale "not found" would let the next step delete what this step still needs.

// Progress of one step of a removal.
type Progress struct {
	Done bool
	// Detail says why it is not done when that is worth telling; it is for the user.
	Detail string
	// Failed: a person must act.
	Failed bool
	// Failure is what Flux wrote about an attempt that failed. It is not for the user.
	Failure string
}

// ErrCredentials says that the credentials for a cluster are missing or of no use.
var ErrCredentials = errors.New("no usable credentials")

// RemoveRelease uninstalls a release through Flux. When the target cluster is gone there is nothing to uninstall from, and Flux, which
// would try forever, is told to let go.
func (p *Platform) RemoveRelease(ctx context.Context, names plan.Names, name string, targetGone bool) (Progress, error) {
	release, err := p.release(ctx, names, name)
	if err != nil || release == nil {
		return Progress{Done: err == nil}, err
	}
	// A suspended HelmRelease is dropped by Flux without an uninstall: a trap when the target lives, the way out when it does not. Whoever
	// suspends one that is being deleted already wants it dropped.
	if release.Spec.Suspend != targetGone && (targetGone || release.DeletionTimestamp.IsZero()) {
		before := release.DeepCopy()
		release.Spec.Suspend = targetGone
		if err := p.patch(ctx, before, release, helmv2.HelmReleaseKind); err != nil {
			return Progress{}, err
		}
	}
	if !release.DeletionTimestamp.IsZero() {
		return uninstalling(release), nil
	}
	return Progress{}, p.uninstall(ctx, release, targetGone)
}

func (p *Platform) uninstall(ctx context.Context, release *helmv2.HelmRelease, targetGone bool) error {
	if !targetGone {
		if missing, err := p.credentialsMissing(ctx, release); missing || err != nil {
			return cmp.Or(err, fmt.Errorf("uninstall %s %q: %w", helmv2.HelmReleaseKind, release.Name, ErrCredentials))
		}
	}
	return p.delete(ctx, release, helmv2.HelmReleaseKind)
}

// release reads a release of a Velero; nil when there is none, or one of somebody else.
func (p *Platform) release(ctx context.Context, names plan.Names, name string) (*helmv2.HelmRelease, error) {
	release := &helmv2.HelmRelease{}
	if err := p.reader.Get(ctx, key(names, name), release); err != nil {
		return nil, wrap(ignoreAbsent(err), "read", helmv2.HelmReleaseKind, name)
	}
	if release.Labels[plan.InstanceLabel] != names.Instance {
		return nil, nil
	}
	return release, nil
}

// removalAnnotation is on the releases of a Velero, with its UID, from right before the server's is deleted. That a release is being deleted, or is
// not there, tells nothing: somebody may want it installed anew, and there may never have been one.
const removalAnnotation = plan.ProviderName + "/removal"

// BeginRemoval takes note that the releases of a Velero are being removed from now on, also of those that are being deleted already. The server's is
// the last: a process that ends in between has begun nothing as long as the server is there.
func (p *Platform) BeginRemoval(ctx context.Context, names plan.Names, velero types.UID) error {
	for _, name := range []string{plan.ControlPlaneRelease, plan.ServerRelease} {
		release, err := p.release(ctx, names, name)
		if err != nil {
			return err
		}
		if release == nil || removing(release, velero) {
			continue
		}
		before := release.DeepCopy()
		metav1.SetMetaDataAnnotation(&release.ObjectMeta, removalAnnotation, string(velero))
		if err := p.patch(ctx, before, release, helmv2.HelmReleaseKind); err != nil {
			return err
		}
	}
	return nil
}

func removing(release *helmv2.HelmRelease, velero types.UID) bool {
	return release != nil && release.Annotations[removalAnnotation] == string(velero)
}

// RemovalBegun says whether there is no way back: the server is being removed for that Velero, or was, or nothing is installed at all.
func (p *Platform) RemovalBegun(ctx context.Context, names plan.Names, velero types.UID) (bool, error) {
	server, err := p.release(ctx, names, plan.ServerRelease)
	if err != nil || server != nil && server.DeletionTimestamp.IsZero() {
		return false, err
	}
	controlPlane, err := p.release(ctx, names, plan.ControlPlaneRelease)
	if err != nil {
		return false, err
	}
	return server == nil && controlPlane == nil || removing(server, velero) || removing(controlPlane, velero), nil
}

// Target is the grant that a release was installed with; empty when there is no such release.
func (p *Platform) Target(ctx context.Context, names plan.Names, name string) (plan.Grant, error) {
	release, err := p.release(ctx, names, name)
	if err != nil || release == nil || release.Spec.KubeConfig == nil || release.Spec.KubeConfig.SecretRef == nil {
		return plan.Grant{}, err
	}
	return plan.Grant{Secret: release.Spec.KubeConfig.SecretRef.Name, Key: release.Spec.KubeConfig.SecretRef.Key}, nil
}

// absent: without its CRD there is no object either. The API server has deleted all of them, in their usual order, before it let the CRD go.
func absent(err error) bool { return apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) }

func ignoreAbsent(err error) error {
	if absent(err) {
		return nil
	}
	return err
}

// credentialsMissing: without its kubeconfig Secret Flux would drop the release without uninstalling it.
func (p *Platform) credentialsMissing(ctx context.Context, release *helmv2.HelmRelease) (bool, error) {
	if release.Spec.KubeConfig == nil || release.Spec.KubeConfig.SecretRef == nil {
		return true, nil
	}
	secret := metadata("Secret")
	err := p.reader.Get(ctx, client.ObjectKey{Namespace: release.Namespace, Name: release.Spec.KubeConfig.SecretRef.Name}, secret)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, wrap(err, "read", "Secret", release.Spec.KubeConfig.SecretRef.Name)
}

func uninstalling(release *helmv2.HelmRelease) Progress {
	ready := apimeta.FindStatusCondition(release.Status.Conditions, fluxmeta.ReadyCondition)
	switch {
	case ready == nil:
	case ready.Status == metav1.ConditionFalse && ready.Reason == helmv2.UninstallFailedReason:
		return Progress{Failure: ready.Message}
	case ready.Status == metav1.ConditionUnknown && ready.Reason == fluxmeta.ProgressingReason:
		return Progress{Detail: fmt.Sprintf("Flux first finishes what it is doing, which takes %s at most", release.GetTimeout().Duration)}
	}
	return Progress{}
}

// RemoveNamespace deletes a namespace on another cluster with everything in it.
func RemoveNamespace(ctx context.Context, remote client.Client, name string) (Progress, error) {
	namespace := &corev1.Namespace{}
	err := remote.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) {
		return Progress{Done: true}, nil
	}
	if err != nil {
		return Progress{}, remoteError(fmt.Errorf("read the server's namespace: %w", err))
	}
	if namespace.DeletionTimestamp.IsZero() {
		err = remote.Delete(ctx, namespace, client.Preconditions{UID: &namespace.UID})
	}
	return Progress{}, remoteError(client.IgnoreNotFound(err))
}

// leftAnnotation marks the CRDs that a deletion left behind because a user's object came too late for it; a later one removes them.
const leftAnnotation = plan.ProviderName + "/left"

// RemoveCRDs deletes the CRDs that came with a Velero ordered at that time, unless a user's object is left: then they all stay. CRDs of others
// always stay.
func RemoveCRDs(ctx context.Context, remote client.Client, names plan.Names, ordered metav1.Time) (Progress, error) {
	progress, err := removeCRDs(ctx, remote, names, ordered)
	return progress, remoteError(err)
}

func removeCRDs(ctx context.Context, remote client.Client, names plan.Names, ordered metav1.Time) (Progress, error) {
	var list apiextensionsv1.CustomResourceDefinitionList
	if err := remote.List(ctx, &list); err != nil {
		return Progress{}, fmt.Errorf("list CRDs: %w", err)
	}
	var ours []*apiextensionsv1.CustomResourceDefinition
	for i := range list.Items {
		if crd := &list.Items[i]; crd.Spec.Group == veleroGroup && installedBy(crd, names, ordered) {
			ours = append(ours, crd)
		}
	}
	for _, kind := range userKinds {
		instances, err := instancesOf(ctx, remote, kind)
		if err != nil {
			return Progress{}, err
		}
		if len(instances) > 0 {
			err := leave(ctx, remote, ours)
			return Progress{Done: err == nil}, err
		}
	}
	return deleteCRDs(ctx, remote, ours)
}

// deleteCRDs is done when none is left. The detail names those that were deleted before and are still there: an object that cannot go keeps
// its CRD, and only its owner can let it go. They are deleted again: an API server under load can lose sight of a CRD that is being deleted, and
// looks at it again after minutes, or when a second call changes it.
func deleteCRDs(ctx context.Context, remote client.Client, crds []*apiextensionsv1.CustomResourceDefinition) (Progress, error) {
	var terminating []string
	for _, crd := range crds {
		if !crd.DeletionTimestamp.IsZero() {
			terminating = append(terminating, crd.Name)
		}
		if err := remote.Delete(ctx, crd, client.Preconditions{UID: &crd.UID}); client.IgnoreNotFound(err) != nil {
			return Progress{}, fmt.Errorf("delete CRD %q: %w", crd.Name, err)
		}
	}
	if len(terminating) == 0 {
		return Progress{Done: len(crds) == 0}, nil
	}
	slices.Sort(terminating)
	return Progress{Detail: fmt.Sprintf("%s still being deleted; an object of that kind that has a finalizer may keep it",
		strings.Join(terminating[:min(len(terminating), maxExamples)], ", "))}, nil
}

// installedBy says whether a CRD came with a Velero. The release adopts CRDs that were there before and annotates them as its own, so one that
// is older than the Velero is not.
func installedBy(crd *apiextensionsv1.CustomResourceDefinition, names plan.Names, ordered metav1.Time) bool {
	return crd.Annotations["meta.helm.sh/release-name"] == plan.ControlPlaneRelease &&
		crd.Annotations["meta.helm.sh/release-namespace"] == names.ControlPlaneNamespace &&
		(!crd.CreationTimestamp.Before(&ordered) || crd.Annotations[leftAnnotation] != "")
}

func leave(ctx context.Context, remote client.Client, crds []*apiextensionsv1.CustomResourceDefinition) error {
	for _, crd := range crds {
		before := crd.DeepCopy()
		metav1.SetMetaDataAnnotation(&crd.ObjectMeta, leftAnnotation, "true")
		if err := remote.Patch(ctx, crd, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("mark CRD %q: %w", crd.Name, err)
		}
	}
	return nil
}

// RemoveObjects deletes the sources and generated Secrets of a Velero, whatever they are called.
func (p *Platform) RemoveObjects(ctx context.Context, names plan.Names) (Progress, error) {
	ours := []client.ListOption{client.InNamespace(names.TenantNamespace), client.MatchingLabels{plan.ManagedByLabel: plan.ProviderName}}
	var sources sourcev1.OCIRepositoryList
	if err := p.reader.List(ctx, &sources, ours...); ignoreAbsent(err) != nil {
		return Progress{}, fmt.Errorf("list OCIRepositories: %w", err)
	}
	for i := range sources.Items {
		if err := p.delete(ctx, &sources.Items[i], sourcev1.OCIRepositoryKind); err != nil {
			return Progress{}, err
		}
	}
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := p.reader.List(ctx, secrets, ours...); err != nil {
		return Progress{}, fmt.Errorf("list Secrets: %w", err)
	}
	for i := range secrets.Items {
		if err := p.delete(ctx, &secrets.Items[i], "Secret"); err != nil {
			return Progress{}, err
		}
	}
	return Progress{Done: len(sources.Items) == 0}, nil
}
