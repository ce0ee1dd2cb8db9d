// Package render is pure: it turns a Velero and a ProviderConfig into the objects that the operator would write, through the operator's own
// plan and fluxgen, without writing anything.
package render

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/fluxgen"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// Input is everything that the objects of one Velero are made from.
type Input struct {
	Velero types.NamespacedName
	Spec   v1alpha1.VeleroSpec
	// Config is nil when there is no ProviderConfig.
	Config *v1alpha1.ProviderConfigSpec
	// Sources has an entry for each of plan.References(Config) that exists.
	Sources map[plan.Reference]plan.Version
	// Contents are those of Sources and of the credentials in Grants; the keys name no Key. When the credentials of the server are not among
	// them, the Secret with its identity holds Unknown in their place.
	Contents map[plan.Source]plan.Content
	Grants   plan.Grants
}

// Unknown stands for the credentials of a server whose access is not granted yet.
const Unknown = "known-when-access-is-granted"

// unknownIdentity is a kubeconfig of the form that ClusterProviders grant.
const unknownIdentity = `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c, user: u}}],
clusters: [{name: c, cluster: {server: "https://` + Unknown + `.invalid"}}], users: [{name: u, user: {token: ` + Unknown + `}}]}`

// Objects are what the operator writes for a Velero, in its order: Secrets, then for each release its source and its HelmRelease; or why a
// person must act first, in the operator's own words.
func Objects(input Input) ([]client.Object, *plan.Blocked, error) {
	resolved, blocked := plan.Resolve(plan.Request{Velero: input.Velero, Spec: input.Spec, Config: input.Config, Sources: input.Sources})
	if blocked != nil {
		return nil, blocked, nil
	}
	objects, blocked := secrets(resolved, input)
	if blocked != nil {
		return nil, blocked, nil
	}
	releases, err := resolved.Releases(input.Grants)
	if err != nil {
		return nil, nil, fmt.Errorf("describe releases: %w", err)
	}
	for _, release := range releases {
		source, helmRelease, err := fluxgen.Render(release)
		if err != nil {
			return nil, nil, fmt.Errorf("generate release %q: %w", release.Name, err)
		}
		objects = append(objects, source, helmRelease)
	}
	return objects, nil, nil
}

func secrets(resolved *plan.Plan, input Input) ([]client.Object, *plan.Blocked) {
	var objects []client.Object
	for _, wanted := range resolved.Secrets(input.Grants) {
		secret, blocked := resolved.Generate(wanted, contents(wanted, input.Contents))
		if blocked != nil {
			return nil, blocked
		}
		objects = append(objects, secret)
	}
	return objects, nil
}

func contents(wanted plan.GeneratedSecret, known map[plan.Source]plan.Content) map[plan.Source]plan.Content {
	found := make(map[plan.Source]plan.Content, len(wanted.Sources))
	for _, source := range wanted.Sources {
		content, exists := known[plan.Source{Reference: source.Reference, Tenant: source.Tenant}]
		if !exists && wanted.Identity() {
			content.Data = map[string][]byte{source.Key: []byte(unknownIdentity)}
		}
		found[source] = content
	}
	return found
}
