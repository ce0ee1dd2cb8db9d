package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// TestAPIServersAcceptTheCharts: Flux applies what Helm renders on the server's side, where a field that does not exist is an error.
func TestAPIServersAcceptTheCharts(t *testing.T) {
	files, err := filepath.Glob("../../charts/testdata/*/*/golden.yaml")
	must(t, err)
	if len(files) == 0 {
		t.Fatal("nothing is rendered")
	}
	for _, namespace := range []string{"velero", "velero--3f2a"} {
		must(t, ensure(t.Context(), workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	}
	strict := client.WithFieldValidation(workload, metav1.FieldValidationStrict)
	for _, file := range files {
		t.Run(strings.TrimPrefix(filepath.Dir(file), "../../charts/testdata/"), func(t *testing.T) {
			for _, object := range objectsIn(t, file) {
				// The CRDs of the one come with the Prometheus operator; of the others the files have only the names, and every control plane has them.
				if strings.HasPrefix(object.GetAPIVersion(), "monitoring.coreos.com/") || object.GetKind() == "CustomResourceDefinition" {
					continue
				}
				options := []client.ApplyOption{client.FieldOwner("helm"), client.ForceOwnership, client.DryRunAll}
				if err := strict.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), options...); err != nil {
					t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
				}
			}
		})
	}
}

func objectsIn(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(file)
	must(t, err)
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(strings.TrimPrefix(string(content), "---\n"), "\n---\n") {
		object := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(document), &object.Object))
		if object.Object != nil {
			objects = append(objects, object)
		}
	}
	return objects
}
