package charts_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Whoever overrides values knows null as Helm's way to remove a default. What can do without gets rendered, what cannot is named.
func TestNullRemovesADefaultOrIsRefusedByName(t *testing.T) {
	h := newHelm(t)
	for _, chart := range []string{controlPlane, server} {
		for _, path := range defaultPaths(t, chart) {
			values := nested(path, nil)
			text, err := yaml.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			_, err = h.render(overlay(t, chart, string(text)))
			last := path[len(path)-1]
			if err != nil && !strings.Contains(err.Error(), "missing property '"+last+"'") {
				t.Errorf("%s: %s: null: %v", chart, strings.Join(path, "."), err)
			}
		}
	}
}

func nested(path []string, value any) any {
	for _, key := range slices.Backward(path) {
		value = map[string]any{key: value}
	}
	return value
}

// defaultPaths are the paths of all values in the chart's values.yaml, also of those that hold others.
func defaultPaths(t *testing.T, chart string) [][]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(content, &values); err != nil {
		t.Fatal(err)
	}
	return pathsOf(values, nil)
}

func pathsOf(values map[string]any, above []string) [][]string {
	var paths [][]string
	for _, key := range slices.Sorted(maps.Keys(values)) {
		path := append(slices.Clone(above), key)
		paths = append(paths, path)
		if below, ok := values[key].(map[string]any); ok {
			paths = append(paths, pathsOf(below, path)...)
		}
	}
	return paths
}
