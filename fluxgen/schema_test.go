package fluxgen_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/openmcp-project/service-provider-velero/fluxgen"
)

// schemaOf reads the schema of a spec from the CRDs of the Flux controllers that the project is tested with. Their API modules have none.
func schemaOf(t *testing.T, crd, version string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	command := exec.Command("go", "mod", "download", "-json", "github.com/fluxcd/source-controller", "github.com/fluxcd/helm-controller")
	command.Dir = filepath.Join("..", "test", "tools", "flux")
	output, err := command.Output()
	if err != nil {
		t.Fatalf("find the modules of Flux: %v\n%s", err, output)
	}
	for modules := json.NewDecoder(bytes.NewReader(output)); modules.More(); {
		var module struct{ Dir string }
		if err := modules.Decode(&module); err != nil {
			t.Fatal(err)
		}
		data, err := fs.ReadFile(os.DirFS(module.Dir), "config/crd/bases/"+crd+".yaml")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := errors.Join(err, yaml.UnmarshalStrict(data, &definition)); err != nil {
			t.Fatal(err)
		}
		for _, candidate := range definition.Spec.Versions {
			if candidate.Name == version {
				return candidate.Schema.OpenAPIV3Schema.Properties["spec"]
			}
		}
	}
	t.Fatalf("no CRD %s of version %s", crd, version)
	return apiextensionsv1.JSONSchemaProps{}
}

// violations are what the API server would refuse, drop or add. The schemas' CEL rules are left to the tests on real API servers.
func violations(schema apiextensionsv1.JSONSchemaProps, value any, path string) []string {
	var found []string
	switch value := value.(type) {
	case map[string]any:
		found = append(found, objectViolations(schema, value, path)...)
	case []any:
		for i, element := range value {
			found = append(found, violations(*schema.Items.Schema, element, fmt.Sprintf("%s[%d]", path, i))...)
		}
	case string:
		if schema.Pattern != "" && !regexp.MustCompile(schema.Pattern).MatchString(value) {
			found = append(found, fmt.Sprintf("%s: %q does not match %s", path, value, schema.Pattern))
		}
		if schema.MaxLength != nil && int64(len(value)) > *schema.MaxLength || schema.MinLength != nil && int64(len(value)) < *schema.MinLength {
			found = append(found, fmt.Sprintf("%s: the length of %q is not allowed", path, value))
		}
	}
	if written, _ := json.Marshal(value); len(schema.Enum) > 0 && !slices.ContainsFunc(schema.Enum, func(allowed apiextensionsv1.JSON) bool { return bytes.Equal(allowed.Raw, written) }) {
		found = append(found, fmt.Sprintf("%s: %s is not one of the allowed values", path, written))
	}
	return found
}

func objectViolations(schema apiextensionsv1.JSONSchemaProps, object map[string]any, path string) []string {
	var found []string
	for _, name := range schema.Required {
		if _, present := object[name]; !present {
			found = append(found, fmt.Sprintf("%s.%s: required", path, name))
		}
	}
	for name, property := range schema.Properties {
		if _, present := object[name]; !present && property.Default != nil {
			found = append(found, fmt.Sprintf("%s.%s: the API server would set %s, so that every comparison finds a difference", path, name, property.Default.Raw))
		}
	}
	for name, value := range object {
		property, known := schema.Properties[name]
		switch {
		case known:
			found = append(found, violations(property, value, path+"."+name)...)
		case schema.XPreserveUnknownFields == nil && schema.AdditionalProperties == nil:
			found = append(found, fmt.Sprintf("%s.%s: no such field", path, name))
		}
	}
	return found
}

func spec(t *testing.T, object runtime.Object) map[string]any {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	return content["spec"].(map[string]any)
}

func TestObjectsAreWhatFluxAccepts(t *testing.T) {
	sources := schemaOf(t, "source.toolkit.fluxcd.io_ocirepositories", "v1")
	releases := schemaOf(t, "helm.toolkit.fluxcd.io_helmreleases", "v2")
	for name, release := range cases() {
		t.Run(name, func(t *testing.T) {
			source, helmRelease, err := fluxgen.Render(release)
			if err != nil {
				t.Fatal(err)
			}
			found := append(violations(sources, spec(t, source), "OCIRepository"), violations(releases, spec(t, helmRelease), "HelmRelease")...)
			if len(found) > 0 {
				t.Error(strings.Join(found, "\n"))
			}
		})
	}
}

func TestTheSchemaCheckFindsWhatIsWrong(t *testing.T) {
	schema := schemaOf(t, "helm.toolkit.fluxcd.io_helmreleases", "v2")
	broken := map[string]any{
		"interval":   "soon",
		"install":    map[string]any{"crds": "Sometimes"},
		"uninstall":  map[string]any{},
		"valuesFrom": []any{map[string]any{"kind": "Secret"}},
		"typo":       true,
	}
	found := violations(schema, broken, "spec")
	slices.Sort(found)
	want := []string{
		`spec.install.crds: "Sometimes" is not one of the allowed values`,
		`spec.interval: "soon" does not match ^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`,
		`spec.typo: no such field`,
		`spec.uninstall.deletionPropagation: the API server would set "background", so that every comparison finds a difference`,
		`spec.valuesFrom[0].name: required`,
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Error(diff)
	}
}
