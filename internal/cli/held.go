package cli

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// held is what Secrets and ConfigMaps hold, by where they are.
type held struct {
	operatorNamespace string
	versions          map[place]plan.Version
	contents          map[place]plan.Content
}

type place struct {
	namespace string
	plan.Reference
}

// hold takes the Secrets and ConfigMaps of manifests. One without a namespace is in the operator's; one with a UID and a resource version, as
// kubectl prints them, stands for exactly this state.
func (m *manifests) hold(operatorNamespace string) (*held, error) {
	all := &held{operatorNamespace: operatorNamespace, versions: map[place]plan.Version{}, contents: map[place]plan.Content{}}
	for i := range m.secrets {
		if err := all.add(plan.Secret, m.secrets[i].ObjectMeta, contentOf(&m.secrets[i])); err != nil {
			return nil, err
		}
	}
	for i := range m.configMaps {
		content := plan.Content{Data: map[string][]byte{}}
		for key, value := range m.configMaps[i].Data {
			content.Data[key] = []byte(value)
		}
		if err := all.add(plan.ConfigMap, m.configMaps[i].ObjectMeta, content); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// contentOf is what the API server stores of a Secret.
func contentOf(secret *corev1.Secret) plan.Content {
	content := plan.Content{Type: secret.Type, Data: map[string][]byte{}}
	if content.Type == "" {
		content.Type = corev1.SecretTypeOpaque
	}
	for key, value := range secret.Data {
		content.Data[key] = value
	}
	for key, value := range secret.StringData {
		content.Data[key] = []byte(value)
	}
	return content
}

func (h *held) add(kind plan.Kind, meta metav1.ObjectMeta, content plan.Content) error {
	at := place{meta.Namespace, plan.Reference{Kind: kind, Name: meta.Name}}
	if at.namespace == "" {
		at.namespace = h.operatorNamespace
	}
	if _, twice := h.versions[at]; twice {
		return fmt.Errorf("%s %q of namespace %q was given twice", kind, at.Name, at.namespace)
	}
	h.versions[at] = plan.Version{UID: meta.UID, ResourceVersion: meta.ResourceVersion}
	h.contents[at] = content
	return nil
}

// references are those of a ProviderConfig that are there.
func (h *held) references(references []plan.Reference) map[plan.Reference]plan.Version {
	found := map[plan.Reference]plan.Version{}
	for _, reference := range references {
		if version, exists := h.versions[place{h.operatorNamespace, reference}]; exists {
			found[reference] = version
		}
	}
	return found
}

// granted completes grants with the versions of the Secrets that are there.
func (h *held) granted(grants plan.Grants, names plan.Names) plan.Grants {
	for _, grant := range []*plan.Grant{&grants.ControlPlane, &grants.Server, &grants.Workload} {
		grant.Version = h.versions[place{names.TenantNamespace, plan.Reference{Kind: plan.Secret, Name: grant.Secret}}]
	}
	return grants
}

// of is everything that one Velero may use.
func (h *held) of(names plan.Names) map[plan.Source]plan.Content {
	contents := map[plan.Source]plan.Content{}
	for at, content := range h.contents {
		switch at.namespace {
		case names.TenantNamespace:
			contents[plan.Source{Reference: at.Reference, Tenant: true}] = content
		case h.operatorNamespace:
			contents[plan.Source{Reference: at.Reference}] = content
		}
	}
	return contents
}
