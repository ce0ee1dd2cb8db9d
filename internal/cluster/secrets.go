package cluster

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// Contents reads what the sources of generated Secrets hold. It is the only place that reads tenants' credentials, it does so past the cache
// so that none are kept, and only when a generated Secret is out of date or, for a ProviderConfig, when a source changed.
func (p *Platform) Contents(ctx context.Context, names plan.Names, sources []plan.Source) (map[plan.Source]plan.Content, error) {
	contents := make(map[plan.Source]plan.Content, len(sources))
	for _, source := range sources {
		namespace := p.namespace
		if source.Tenant {
			namespace = names.TenantNamespace
		}
		content, err := p.content(ctx, source.Kind, types.NamespacedName{Namespace: namespace, Name: source.Name})
		if err != nil {
			return nil, fmt.Errorf("read %s %q: %w", source.Kind, source.Name, err)
		}
		contents[source] = content
	}
	return contents, nil
}

func (p *Platform) content(ctx context.Context, kind plan.Kind, key types.NamespacedName) (plan.Content, error) {
	if kind == plan.ConfigMap {
		var configMap corev1.ConfigMap
		if err := p.reader.Get(ctx, key, &configMap); err != nil {
			return plan.Content{}, err
		}
		// kubectl puts a file into binaryData when not all of it is UTF-8, as a comment in a bundle of old may be. No key is in both.
		content := plan.Content{Data: make(map[string][]byte, len(configMap.Data)+len(configMap.BinaryData))}
		maps.Copy(content.Data, configMap.BinaryData)
		for name, value := range configMap.Data {
			content.Data[name] = []byte(value)
		}
		return content, nil
	}
	var secret corev1.Secret
	if err := p.reader.Get(ctx, key, &secret); err != nil {
		return plan.Content{}, err
	}
	return plan.Content{Type: secret.Type, Data: secret.Data}, nil
}

// ApplySecret creates or replaces a generated Secret: all of its data, so that a key that is gone from the source does not live on in the
// copy. One that cannot be changed is made anew.
func (p *Platform) ApplySecret(ctx context.Context, wanted *corev1.Secret) error {
	var current corev1.Secret
	err := p.reader.Get(ctx, client.ObjectKeyFromObject(wanted), &current)
	if client.IgnoreNotFound(err) != nil {
		return wrap(err, "read", "Secret", wanted.Name)
	}
	if err != nil {
		return p.create(ctx, wanted, &corev1.Secret{}, "Secret")
	}
	if current.Labels[plan.InstanceLabel] != wanted.Labels[plan.InstanceLabel] {
		return &ConflictError{Kind: "Secret", Name: wanted.Name}
	}
	if fixed(&current, wanted) {
		return p.remake(ctx, &current, wanted)
	}
	changed := correctedSecret(&current, wanted)
	if err := p.client.Update(ctx, changed, writer); err != nil {
		return wrap(err, "update", "Secret", wanted.Name)
	}
	if !plan.Untouched(changed) {
		// Writing what is there already changes no record of who wrote it, as after an edit that was undone: only a new Secret has a new one.
		return p.remake(ctx, changed, wanted)
	}
	return nil
}

// fixed says whether a Secret cannot become what is wanted.
func fixed(current, wanted *corev1.Secret) bool {
	return current.Type != wanted.Type || current.Immutable != nil && *current.Immutable
}

func correctedSecret(current, wanted *corev1.Secret) *corev1.Secret {
	changed := current.DeepCopy()
	changed.Data = wanted.Data
	adjustMetadata(changed, wanted)
	return changed
}

func (p *Platform) remake(ctx context.Context, current, wanted *corev1.Secret) error {
	if err := p.delete(ctx, current, "Secret"); err != nil {
		return err
	}
	return p.create(ctx, wanted, &corev1.Secret{}, "Secret")
}

// Prune removes what a Velero no longer uses: OCIRepositories and generated Secrets that are not named. The caller names what still runs.
func (p *Platform) Prune(ctx context.Context, observed Observation, sources, secrets map[string]bool) error {
	for name, source := range observed.Sources {
		if !sources[name] && source.DeletionTimestamp.IsZero() {
			if err := p.delete(ctx, source.DeepCopy(), source.Kind); err != nil {
				return err
			}
		}
	}
	for name, secret := range observed.Secrets {
		if !secrets[name] && secret.DeletionTimestamp.IsZero() {
			if err := p.delete(ctx, secret.DeepCopy(), "Secret"); err != nil {
				return err
			}
		}
	}
	return nil
}
