package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// sensitiveKeys of the server chart's values are never inline: everybody who may read a HelmRelease would see them, and inline values win over
// those of a Secret.
var sensitiveKeys = []string{"kubeconfig", "token", "pullSecrets", "caBundle", "proxy"}

// extraValues are the ProviderConfig's values for the two charts.
func extraValues(config *v1alpha1.ProviderConfigSpec) (controlPlane, server map[string]any, blocked *Blocked) {
	if config.Values == nil {
		return nil, nil, nil
	}
	if controlPlane, blocked = parseValues(config.Values.ControlPlane, "spec.values.controlPlane"); blocked != nil {
		return nil, nil, blocked
	}
	if server, blocked = parseValues(config.Values.Server, "spec.values.server"); blocked != nil {
		return nil, nil, blocked
	}
	return controlPlane, server, nil
}

func parseValues(values *apiextensionsv1.JSON, field string) (map[string]any, *Blocked) {
	if values == nil || len(values.Raw) == 0 {
		return nil, nil
	}
	var parsed any
	// Integers stay integers: as floating point numbers, large ones would be written differently.
	err := utiljson.Unmarshal(values.Raw, &parsed)
	object, isObject := parsed.(map[string]any)
	if err != nil || !isObject {
		return nil, block(v1alpha1.ReasonValuesInvalid, fmt.Sprintf("%s of the ProviderConfig is not an object", field))
	}
	if place, found := findTemplate(object, field); found {
		return nil, block(v1alpha1.ReasonValuesInvalid, fmt.Sprintf("%s of the ProviderConfig has %q; values are not templates", shortened(place, maxListLength), "{{"))
	}
	return object, nil
}

// findTemplate finds the first text or key that looks like a template. Our charts evaluate none, and must never begin to.
func findTemplate(value any, place string) (string, bool) {
	switch value := value.(type) {
	case string:
		return place, strings.Contains(value, "{{")
	case []any:
		for i, element := range value {
			if found, ok := findTemplate(element, fmt.Sprintf("%s[%d]", place, i)); ok {
				return found, true
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if strings.Contains(key, "{{") {
				return place, true
			}
			if found, ok := findTemplate(value[key], place+"."+key); ok {
				return found, true
			}
		}
	}
	return "", false
}

func (p *Plan) controlPlaneValues() map[string]any {
	values := copied(p.controlPlane)
	values["image"] = p.Image
	return values
}

// serverValues are the values that everybody may see.
func (p *Plan) serverValues() map[string]any {
	values := copied(p.server)
	for _, key := range sensitiveKeys {
		delete(values, key)
	}
	plugins := make([]any, 0, len(p.Plugins))
	for _, plugin := range p.Plugins {
		plugins = append(plugins, map[string]any{"name": plugin.Name, "image": plugin.Image})
	}
	pullSecrets := make([]any, 0, len(p.config.ImagePullSecrets))
	for _, name := range p.imagePullSecrets() {
		pullSecrets = append(pullSecrets, map[string]any{"name": name})
	}
	values["image"] = p.Image
	values["plugins"] = plugins
	values["controlPlane"] = map[string]any{"namespace": p.Names.ControlPlaneNamespace}
	values["imagePullSecrets"] = pullSecrets
	return values
}

// extraSensitive are the sensitive values that the ProviderConfig gives itself; they go where the generated ones go, and lose against them.
func (p *Plan) extraSensitive() map[string]any {
	values := copied(p.server)
	maps.DeleteFunc(values, func(key string, _ any) bool {
		// The identity is generated apart.
		return !slices.Contains(sensitiveKeys, key) || key == "kubeconfig" || key == "token"
	})
	return values
}

// imagePullSecrets are the names of the pull secrets, sorted and each once.
func (p *Plan) imagePullSecrets() []string {
	names := make([]string, 0, len(p.config.ImagePullSecrets))
	for _, secret := range p.config.ImagePullSecrets {
		names = append(names, secret.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func copied(values map[string]any) map[string]any {
	if values == nil {
		return map[string]any{}
	}
	return runtime.DeepCopyJSON(values)
}
