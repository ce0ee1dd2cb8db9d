package render

import (
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Diff shows how an object changes: a unified diff of the two manifests. Either may be nil.
func Diff(kind string, before, after client.Object, showSecrets bool) (string, error) {
	name := ""
	for _, object := range []client.Object{after, before} {
		if name == "" && object != nil {
			name = kind + " " + object.GetName()
		}
	}
	sides, err := texts(kind, before, after, showSecrets)
	if err != nil {
		return "", err
	}
	return udiff.Unified(label("before", name, before), label("after", name, after), sides[0], sides[1]), nil
}

func label(when, name string, object client.Object) string {
	if object == nil {
		return "(none)"
	}
	return when + " " + name
}

// texts are both manifests as text. A masked value that changes says so, since its size may be the same.
func texts(kind string, before, after client.Object, showSecrets bool) ([2]string, error) {
	var both [2]string
	var data [2]map[string]string
	for i, object := range []client.Object{before, after} {
		if object == nil {
			continue
		}
		manifest, err := Manifest(object, true)
		if err != nil {
			return both, err
		}
		manifest["kind"] = kind
		if kind == "Secret" && !showSecrets {
			manifest["apiVersion"] = "v1"
			data[i], _, _ = unstructured.NestedStringMap(manifest, "data")
			mask(manifest)
			if i == 1 && before != nil {
				markChanges(manifest, data[0], data[1])
			}
		}
		text, err := YAML(clean(manifest))
		if err != nil {
			return both, err
		}
		both[i] = string(text) + "\n"
	}
	return both, nil
}

func markChanges(manifest map[string]any, before, after map[string]string) {
	masked := manifest["stringData"].(map[string]any)
	for key, value := range after {
		if old, existed := before[key]; existed && old != value {
			masked[key] = strings.TrimSuffix(fmt.Sprint(masked[key]), ")") + ", changed)"
		}
	}
}

// clean leaves out what the API server or Flux writes.
func clean(manifest map[string]any) map[string]any {
	for _, field := range []string{"uid", "resourceVersion", "generation", "managedFields", "finalizers", "ownerReferences", "selfLink"} {
		unstructured.RemoveNestedField(manifest, "metadata", field)
	}
	return manifest
}
