// Package fluxschema checks objects of Flux against the schemas of the CRDs that the project is tested with.
package fluxschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// The CRDs that the operator has to do with.
const (
	OCIRepository = "source.toolkit.fluxcd.io_ocirepositories"
	HelmRelease   = "helm.toolkit.fluxcd.io_helmreleases"
)

// Schema is that of the spec of one kind.
type Schema struct {
	spec apiextensionsv1.JSONSchemaProps
}

// Load reads the schema of a version of a CRD from the Flux controllers; their API modules have none. modules is the directory of the go.mod that
// requires them.
func Load(modules, crd, version string) (Schema, error) {
	command := exec.Command("go", "mod", "download", "-json", "github.com/fluxcd/source-controller", "github.com/fluxcd/helm-controller")
	command.Dir = modules
	output, err := command.Output()
	if err != nil {
		return Schema{}, fmt.Errorf("find the modules of Flux: %w: %s", err, output)
	}
	for decoder := json.NewDecoder(bytes.NewReader(output)); decoder.More(); {
		var module struct{ Dir string }
		if err := decoder.Decode(&module); err != nil {
			return Schema{}, fmt.Errorf("find the modules of Flux: %w", err)
		}
		data, err := fs.ReadFile(os.DirFS(module.Dir), "config/crd/bases/"+crd+".yaml")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := errors.Join(err, yaml.UnmarshalStrict(data, &definition)); err != nil {
			return Schema{}, fmt.Errorf("read CRD %s: %w", crd, err)
		}
		for _, candidate := range definition.Spec.Versions {
			if candidate.Name == version {
				return Schema{candidate.Schema.OpenAPIV3Schema.Properties["spec"]}, nil
			}
		}
	}
	return Schema{}, fmt.Errorf("no CRD %s of version %s", crd, version)
}

// Violations are what the API server would refuse, drop or add to an object's spec. The schemas' CEL rules are left to the tests on real API
// servers.
func (s Schema) Violations(object runtime.Object) ([]string, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("convert %T: %w", object, err)
	}
	return violations(s.spec, content["spec"], "spec"), nil
}

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
		found = append(found, textViolations(schema, value, path)...)
	}
	if written, _ := json.Marshal(value); len(schema.Enum) > 0 && !slices.ContainsFunc(schema.Enum, func(allowed apiextensionsv1.JSON) bool { return bytes.Equal(allowed.Raw, written) }) {
		found = append(found, fmt.Sprintf("%s: %s is not one of the allowed values", path, written))
	}
	return found
}

func textViolations(schema apiextensionsv1.JSONSchemaProps, value, path string) []string {
	var found []string
	if schema.Pattern != "" && !regexp.MustCompile(schema.Pattern).MatchString(value) {
		found = append(found, fmt.Sprintf("%s: %q does not match %s", path, value, schema.Pattern))
	}
	if schema.MaxLength != nil && int64(len(value)) > *schema.MaxLength || schema.MinLength != nil && int64(len(value)) < *schema.MinLength {
		found = append(found, fmt.Sprintf("%s: the length of %q is not allowed", path, value))
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
