package render

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Manifest is an object as it is printed: what somebody wants, without what only a cluster knows. Unless they are to be shown, the values of
// a Secret are replaced by their sizes.
func Manifest(object client.Object, showSecrets bool) (map[string]any, error) {
	manifest, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("write %s %q: %w", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
	}
	unstructured.RemoveNestedField(manifest, "status")
	unstructured.RemoveNestedField(manifest, "metadata", "creationTimestamp")
	if isSecret(manifest) && !showSecrets {
		mask(manifest)
	}
	return manifest, nil
}

// YAML is a manifest as one document.
func YAML(manifest map[string]any) ([]byte, error) {
	document, err := yaml.Marshal(manifest)
	return bytes.TrimSuffix(document, []byte("\n")), err
}

func isSecret(manifest map[string]any) bool {
	return manifest["kind"] == "Secret" && manifest["apiVersion"] == "v1"
}

// mask shows which keys there are and how much they hold. A hash would let short secrets be guessed.
func mask(manifest map[string]any) {
	data, _, _ := unstructured.NestedStringMap(manifest, "data")
	masked := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		masked[key] = fmt.Sprintf("(masked: %d characters of base64)", len(data[key]))
	}
	delete(manifest, "data")
	manifest["stringData"] = masked
}
