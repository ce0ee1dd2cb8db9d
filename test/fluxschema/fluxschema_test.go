package fluxschema

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func load(t *testing.T) Schema {
	t.Helper()
	schema, err := Load(filepath.Join("..", "tools", "flux"), HelmRelease, "v2")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestTheSchemaCheckFindsWhatIsWrong(t *testing.T) {
	schema := load(t)
	broken := map[string]any{
		"interval":   "soon",
		"install":    map[string]any{"crds": "Sometimes"},
		"uninstall":  map[string]any{},
		"valuesFrom": []any{map[string]any{"kind": "Secret"}},
		"typo":       true,
	}
	found := violations(schema.spec, broken, "spec")
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
