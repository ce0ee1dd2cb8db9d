package access

import (
	"context"
	"errors"
	"fmt"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// ErrDenied says that the platform denied access that was requested.
var ErrDenied = errors.New("the platform denied access")

// Restore brings back an AccessRequest that somebody deleted although a HelmRelease still needs it for its uninstallation, and says whether
// there is access: nobody else can make the request, and without it neither Flux nor a person gets any further. Of a request that stands it asks
// no more than that it was granted once; what it granted before it was denied may still be good. One that was denied and never granted is ErrDenied.
func (a *Access) Restore(ctx context.Context, velero types.NamespacedName, id string) (bool, error) {
	names, err := plan.NamesOf(velero)
	if err != nil {
		return false, err
	}
	request := &clustersv1alpha1.AccessRequest{}
	err = a.reader.Get(ctx, requestKey(velero, names, id), request)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read access %q: %w", id, err)
	}
	if err == nil && request.DeletionTimestamp.IsZero() {
		return a.stands(ctx, request, names, id)
	}
	if terminating, err := a.terminating(ctx, names.TenantNamespace); terminating || err != nil {
		// Nothing can be created there any more. What is left of the credentials has to do.
		return terminating, err
	}
	if err == nil {
		return false, a.finish(ctx, request, names, id)
	}
	if _, err := a.write(ctx, velero, id); err != nil {
		return false, fmt.Errorf("restore access %q: %w", id, err)
	}
	return false, nil
}

// stands says whether a request that stands gives access.
func (a *Access) stands(ctx context.Context, request *clustersv1alpha1.AccessRequest, names plan.Names, id string) (bool, error) {
	switch {
	case request.Status.SecretRef != nil && request.Status.SecretRef.Name != "":
		return true, a.keep(ctx, names, request.Status.SecretRef.Name)
	case denied(request):
		return false, fmt.Errorf("restore access %q: %w", id, ErrDenied)
	default:
		return false, nil
	}
}

// finish lets a request go that somebody deleted although it is needed, so that it can be made anew.
func (a *Access) finish(ctx context.Context, request *clustersv1alpha1.AccessRequest, names plan.Names, id string) error {
	if request.DeletionTimestamp.IsZero() || !ours(request, names) {
		return nil
	}
	if _, err := a.lastFinalizer(ctx, request); err != nil {
		return fmt.Errorf("restore access %q: %w", id, err)
	}
	return nil
}

// finishCached finishes a request that the cache has as deleted, while its Velero lives. The request may be gone by now, and another one of its
// name in use, so it is read again. In a namespace that is being deleted nothing comes again.
func (a *Access) finishCached(ctx context.Context, key types.NamespacedName, names plan.Names, id string) error {
	if terminating, err := a.terminating(ctx, names.TenantNamespace); terminating || err != nil {
		return err
	}
	request := &clustersv1alpha1.AccessRequest{}
	if err := a.reader.Get(ctx, key, request); err != nil {
		return client.IgnoreNotFound(err)
	}
	return a.finish(ctx, request, names, id)
}

// keep guards the Secret of a grant during a deletion. One that is being deleted stays as it is: for a last uninstall it is good enough.
func (a *Access) keep(ctx context.Context, names plan.Names, name string) error {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	if err := a.reader.Get(ctx, types.NamespacedName{Namespace: names.TenantNamespace, Name: name}, secret); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := secret.DeepCopy()
	if !secret.DeletionTimestamp.IsZero() || !guarded(secret, names) {
		return nil
	}
	return client.IgnoreNotFound(a.client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// terminating says whether a namespace is being deleted with everything in it.
func (a *Access) terminating(ctx context.Context, name string) (bool, error) {
	namespace := &corev1.Namespace{}
	if err := a.reader.Get(ctx, types.NamespacedName{Name: name}, namespace); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, fmt.Errorf("look whether the namespace is being deleted: %w", err)
	}
	return !namespace.DeletionTimestamp.IsZero(), nil
}

// Users are the names of the HelmReleases that refer to the credentials of a Velero, whosever they seem to be: without the credentials Flux
// would drop them without uninstalling anything.
func (a *Access) Users(ctx context.Context, velero types.NamespacedName) ([]string, error) {
	names, err := plan.NamesOf(velero)
	if err != nil {
		return nil, err
	}
	guarded, err := a.guardedSecrets(ctx, names)
	if err != nil {
		return nil, fmt.Errorf("list the credentials: %w", err)
	}
	secrets := make([]string, 0, len(guarded)+len(ids))
	for i := range guarded {
		secrets = append(secrets, guarded[i].Name)
	}
	for _, id := range ids {
		request := &clustersv1alpha1.AccessRequest{}
		if err := a.reader.Get(ctx, requestKey(velero, names, id), request); client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("read access %q: %w", id, err)
		}
		if request.Status.SecretRef != nil {
			secrets = append(secrets, request.Status.SecretRef.Name)
		}
	}
	releases, err := a.releasesWith(ctx, names.TenantNamespace, secrets)
	var users []string
	for i := range releases {
		users = append(users, releases[i].Name)
	}
	return users, err
}

// releasesWith are the HelmReleases of a namespace whose kubeconfig is one of the Secrets. Without its CRD there are none.
func (a *Access) releasesWith(ctx context.Context, namespace string, secrets []string) ([]helmv2.HelmRelease, error) {
	var releases helmv2.HelmReleaseList
	if err := a.reader.List(ctx, &releases, client.InNamespace(namespace)); err != nil {
		if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list HelmReleases: %w", err)
	}
	return slices.DeleteFunc(releases.Items, func(release helmv2.HelmRelease) bool {
		return release.Spec.KubeConfig == nil || release.Spec.KubeConfig.SecretRef == nil || !slices.Contains(secrets, release.Spec.KubeConfig.SecretRef.Name)
	}), nil
}

// guardedSecrets are those with our finalizer, whatever their labels: only we can take it off.
func (a *Access) guardedSecrets(ctx context.Context, names plan.Names) ([]metav1.PartialObjectMetadata, error) {
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := a.reader.List(ctx, secrets, client.InNamespace(names.TenantNamespace)); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(secrets.Items, func(secret metav1.PartialObjectMetadata) bool {
		return !controllerutil.ContainsFinalizer(&secret, plan.Finalizer)
	}), nil
}
