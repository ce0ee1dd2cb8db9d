// Package cluster is all reading and writing of a Velero's objects on the platform cluster, and the ordered removal of everything.
package cluster

import (
	"context"
	"fmt"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// Platform is the platform cluster. It is safe for concurrent use.
type Platform struct {
	client    client.Client
	reader    client.Reader
	namespace string
}

// New takes a client that reads from caches, a reader that does not, and the operator's namespace, where the ProviderConfig's Secrets are.
func New(cached client.Client, uncached client.Reader, namespace string) *Platform {
	return &Platform{client: cached, reader: uncached, namespace: namespace}
}

// Versions looks up the objects that a ProviderConfig refers to, in the cache and without their contents. Missing ones have no entry.
func (p *Platform) Versions(ctx context.Context, references []plan.Reference) (map[plan.Reference]plan.Version, error) {
	versions := make(map[plan.Reference]plan.Version, len(references))
	for _, reference := range references {
		object := metadata(string(reference.Kind))
		err := p.client.Get(ctx, types.NamespacedName{Namespace: p.namespace, Name: reference.Name}, object)
		if apierrors.IsNotFound(err) || err == nil && !object.DeletionTimestamp.IsZero() {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look up %s %q: %w", reference.Kind, reference.Name, err)
		}
		versions[reference] = plan.Version{UID: object.UID, ResourceVersion: object.ResourceVersion}
	}
	return versions, nil
}

// Observation is what exists on the platform for one Velero.
type Observation struct {
	// Releases by name.
	Releases map[string]*helmv2.HelmRelease
	// Sources by name.
	Sources map[string]*sourcev1.OCIRepository
	// Secrets are the generated ones, without their contents, by name.
	Secrets map[string]*metav1.PartialObjectMetadata
}

// Observe lists a Velero's objects from the caches. They must not be modified.
func (p *Platform) Observe(ctx context.Context, names plan.Names) (Observation, error) {
	observed := Observation{
		Releases: map[string]*helmv2.HelmRelease{},
		Sources:  map[string]*sourcev1.OCIRepository{},
		Secrets:  map[string]*metav1.PartialObjectMetadata{},
	}
	ours := []client.ListOption{client.InNamespace(names.TenantNamespace), client.MatchingLabels{plan.ManagedByLabel: plan.ProviderName}}
	var releases helmv2.HelmReleaseList
	if err := p.client.List(ctx, &releases, ours...); err != nil {
		return observed, fmt.Errorf("list HelmReleases: %w", err)
	}
	for i := range releases.Items {
		observed.Releases[releases.Items[i].Name] = &releases.Items[i]
	}
	var sources sourcev1.OCIRepositoryList
	if err := p.client.List(ctx, &sources, ours...); err != nil {
		return observed, fmt.Errorf("list OCIRepositories: %w", err)
	}
	for i := range sources.Items {
		observed.Sources[sources.Items[i].Name] = &sources.Items[i]
	}
	secrets := &metav1.PartialObjectMetadataList{}
	secrets.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := p.client.List(ctx, secrets, ours...); err != nil {
		return observed, fmt.Errorf("list Secrets: %w", err)
	}
	for i := range secrets.Items {
		observed.Secrets[secrets.Items[i].Name] = &secrets.Items[i]
	}
	return observed, nil
}

// Trim takes off what the caches need not hold: the records of who wrote which field, which are most of a small object. Generated Secrets
// keep them, see plan.Untouched.
func Trim(object any) (any, error) {
	metadata, err := apimeta.Accessor(object)
	if err != nil {
		// What the caches say of an object that they saw go only later; there is nothing to take off.
		return object, nil //nolint:nilerr // as said above
	}
	if _, generated := metadata.GetAnnotations()[plan.SourcesAnnotation]; !generated && metadata.GetManagedFields() != nil {
		metadata.SetManagedFields(nil)
	}
	return object, nil
}

func metadata(kind string) *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	return object
}
