package cluster

import (
	"context"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
}

// RemoveRelease uninstalls a release through Flux. When the target cluster is gone there is nothing to uninstall from, and Flux, which
// would try forever, is told to let go.
func (p *Platform) RemoveRelease(ctx context.Context, names plan.Names, name string, targetGone bool) (Progress, error) {
	release := &helmv2.HelmRelease{}
	if err := p.reader.Get(ctx, key(names, name), release); err != nil {
		return Progress{Done: apierrors.IsNotFound(err)}, wrap(client.IgnoreNotFound(err), "read", helmv2.HelmReleaseKind, name)
	}
	if release.Labels[plan.InstanceLabel] != names.Instance {
		return Progress{Done: true}, nil
	}
	// A suspended HelmRelease is dropped by Flux without an uninstall: a trap when the target lives, the way out when it does not.
	if release.Spec.Suspend != targetGone {
		before := release.DeepCopy()
		release.Spec.Suspend = targetGone
		if err := p.patch(ctx, before, release, helmv2.HelmReleaseKind); err != nil {
			return Progress{}, err
		}
	}
	if !release.DeletionTimestamp.IsZero() {
		return uninstalling(release), nil
	}
	if !targetGone {
		if missing, err := p.credentialsMissing(ctx, release); missing || err != nil {
			return Progress{Failed: true, Detail: "the credentials that are needed to uninstall it are missing"}, err
		}
	}
	return Progress{}, p.delete(ctx, release, helmv2.HelmReleaseKind)
}

// RemovalBegun says whether a release is gone already or on its way.
func (p *Platform) RemovalBegun(ctx context.Context, names plan.Names, name string) (bool, error) {
	release := &helmv2.HelmRelease{}
	if err := p.reader.Get(ctx, key(names, name), release); err != nil {
		return apierrors.IsNotFound(err), wrap(client.IgnoreNotFound(err), "read", helmv2.HelmReleaseKind, name)
	}
	return !release.DeletionTimestamp.IsZero(), nil
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
	if ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason == helmv2.UninstallFailedReason {
		return Progress{Detail: "the last attempt to uninstall it failed; it is tried again"}
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
		return Progress{}, fmt.Errorf("read the server's namespace: %w", err)
	}
	if namespace.DeletionTimestamp.IsZero() {
		err = remote.Delete(ctx, namespace, client.Preconditions{UID: &namespace.UID})
	}
	return Progress{}, client.IgnoreNotFound(err)
}

// RemoveCRDs deletes the CRDs that our release installed, unless a user's object is left: then they all stay. CRDs of others always stay.
func RemoveCRDs(ctx context.Context, remote client.Client, names plan.Names) (Progress, error) {
	for _, kind := range userKinds {
		if instances, err := instancesOf(ctx, remote, kind); err != nil || len(instances) > 0 {
			return Progress{Done: err == nil}, err
		}
	}
	var list apiextensionsv1.CustomResourceDefinitionList
	if err := remote.List(ctx, &list); err != nil {
		return Progress{}, fmt.Errorf("list CRDs: %w", err)
	}
	var ours []*apiextensionsv1.CustomResourceDefinition
	for i := range list.Items {
		if crd := &list.Items[i]; crd.Spec.Group == veleroGroup && installedBy(crd, names) {
			ours = append(ours, crd)
		}
	}
	for _, crd := range ours {
		if err := remote.Delete(ctx, crd, client.Preconditions{UID: &crd.UID}); client.IgnoreNotFound(err) != nil {
			return Progress{}, fmt.Errorf("delete CRD %q: %w", crd.Name, err)
		}
	}
	return Progress{Done: len(ours) == 0}, nil
}

func installedBy(crd *apiextensionsv1.CustomResourceDefinition, names plan.Names) bool {
	return crd.Annotations["meta.helm.sh/release-name"] == plan.ControlPlaneRelease &&
		crd.Annotations["meta.helm.sh/release-namespace"] == names.ControlPlaneNamespace
}

// RemoveObjects deletes the sources and generated Secrets of a Velero, whatever they are called.
func (p *Platform) RemoveObjects(ctx context.Context, names plan.Names) (Progress, error) {
	ours := []client.ListOption{client.InNamespace(names.TenantNamespace), client.MatchingLabels{plan.ManagedByLabel: plan.ProviderName}}
	var sources sourcev1.OCIRepositoryList
	if err := p.reader.List(ctx, &sources, ours...); err != nil && !apimeta.IsNoMatchError(err) {
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
