package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// Contents reads what the sources of a generated Secret hold. It is the only place that reads tenants' credentials, it does so past the
// cache so that none are kept, and only when a generated Secret is out of date.
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
		content := plan.Content{Data: make(map[string][]byte, len(configMap.Data))}
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
// copy. A Secret's type cannot be changed, so one of another type is made anew.
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
	if current.Type != wanted.Type {
		if err := p.delete(ctx, &current, "Secret"); err != nil {
			return err
		}
		return p.create(ctx, wanted, &corev1.Secret{}, "Secret")
	}
	return wrap(p.client.Update(ctx, correctedSecret(&current, wanted)), "update", "Secret", wanted.Name)
}

func correctedSecret(current, wanted *corev1.Secret) *corev1.Secret {
	changed := current.DeepCopy()
	changed.Data = wanted.Data
	adjustMetadata(changed, wanted)
	return changed
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
