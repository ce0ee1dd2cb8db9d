package admission_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/openmcp-project/service-provider-velero/internal/admission"
)

const (
	header = "apiVersion: velero.services.openmcp.cloud/v1alpha1\n"
	offer  = "availableImages: [{name: velero, versions: [v1], image: velero/velero}]"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	read := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(text), &read.Object); err != nil {
		t.Fatal(err)
	}
	return read
}

func schemas(t *testing.T) *admission.Schemas {
	t.Helper()
	compiled, err := admission.New()
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func TestDefaultsAreSet(t *testing.T) {
	config := object(t, header+"kind: ProviderConfig\nmetadata: {name: default}\nspec: {"+offer+", charts: {}, rollout: {}}\nstatus: {phase: 7}\n")
	if err := schemas(t).Admit(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	want := object(t, "{"+offer+`, pollInterval: 10m, charts: {repository: "oci://ghcr.io/openmcp-project/charts"}, rollout: {maxConcurrent: 10}}`).Object
	got := config.Object["spec"].(map[string]any)
	got["rollout"].(map[string]any)["maxConcurrent"] = float64(10)
	want["rollout"].(map[string]any)["maxConcurrent"] = float64(10)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if _, exists := config.Object["status"]; exists {
		t.Error("it keeps a status that somebody wrote")
	}
}

// TestMistakesAreRefused has one of each kind; test/integration compares the messages with those of a real API server.
func TestMistakesAreRefused(t *testing.T) {
	velero := func(spec string) string {
		return header + "kind: Velero\nmetadata: {name: test-mcp, namespace: default}\nspec: " + spec
	}
	tests := map[string]struct {
		text  string
		names []string
	}{
		"Rule":         {velero(`{version: v1, plugins: [{name: velero, version: v1}]}`), []string{`Velero.velero.services.openmcp.cloud "test-mcp" is invalid`, "spec.plugins[0].name", "reserved"}},
		"Required":     {velero(`{}`), []string{"spec.version: Required value"}},
		"Type":         {velero(`{version: 1.17}`), []string{"spec.version", "must be of type string"}},
		"Duplicate":    {velero(`{version: v1, plugins: [{name: a, version: v1}, {name: a, version: v1}]}`), []string{"spec.plugins[1]: Duplicate value"}},
		"UnknownField": {velero(`{version: v1, plugin: []}`), []string{`strict decoding error: unknown field "spec.plugin"`}},
		"Name":         {header + "kind: Velero\nmetadata: {name: Test, namespace: default}\nspec: {version: v1}", []string{"metadata.name", "RFC 1123"}},
		"NoName":       {header + "kind: ProviderConfig\nspec: {" + offer + "}", []string{"metadata.name", "Required"}},
		"Namespace":    {header + "kind: ProviderConfig\nmetadata: {name: a, namespace: b}\nspec: {" + offer + "}", []string{"metadata.namespace"}},
		"Kind":         {header + "kind: Valero\nmetadata: {name: a}", []string{`no matches for kind "Valero"`}},
		"Version":      {"apiVersion: velero.services.openmcp.cloud/v1\nkind: Velero\nmetadata: {name: a}", []string{`in version "velero.services.openmcp.cloud/v1"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := schemas(t).Admit(t.Context(), object(t, test.text))
			if err == nil {
				t.Fatal("it is accepted")
			}
			for _, name := range test.names {
				if !strings.Contains(err.Error(), name) {
					t.Errorf("%q does not name %q", err, name)
				}
			}
		})
	}
}
