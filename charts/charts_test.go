// Package charts_test renders the charts with the real helm and checks what Flux would apply.
package charts_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	controlPlane = "velero-control-plane"
	server       = "velero-server"
)

// cases lists the directories testdata/<chart>/<case>.
func cases(t *testing.T, chart string) []string {
	t.Helper()
	values, err := filepath.Glob(filepath.Join("testdata", chart, "*", "values.yaml"))
	if err != nil || len(values) == 0 {
		t.Fatalf("no cases of %s: %v", chart, err)
	}
	var dirs []string
	for _, path := range values {
		dirs = append(dirs, filepath.Dir(path))
	}
	return dirs
}

// caseRelease reads a case: values.yaml, and optionally flags (of helm template) and chart-version.
func caseRelease(t *testing.T, chart, dir string) release {
	t.Helper()
	return release{
		chart:   chart,
		version: strings.TrimSpace(optional(t, filepath.Join(dir, "chart-version"))),
		values:  []string{filepath.Join(dir, "values.yaml")},
		flags:   strings.Fields(optional(t, filepath.Join(dir, "flags"))),
	}
}

func optional(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(content)
}

func TestLintIsStrictlyClean(t *testing.T) {
	h := newHelm(t)
	for _, chart := range []string{controlPlane, server} {
		if out, err := h.run("lint", "--strict", chart, "--values", minimalValues(chart)); err != nil {
			t.Errorf("lint %s: %v\n%s", chart, err, out)
		}
	}
}

func TestRenderedObjectsAreGolden(t *testing.T) {
	h := newHelm(t)
	for _, chart := range []string{controlPlane, server} {
		for _, dir := range cases(t, chart) {
			t.Run(filepath.Join(chart, filepath.Base(dir)), func(t *testing.T) {
				compareGolden(t, filepath.Join(dir, "golden.yaml"), h.mustRender(t, caseRelease(t, chart, dir)))
			})
		}
	}
}

func compareGolden(t *testing.T, path string, objects []object) {
	t.Helper()
	got := goldenText(t, objects)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (create it with -update)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is stale, -update rewrites it (-want +got):\n%s", path, diff)
	}
}

// goldenText leaves out the schemas of the CRDs: they are Velero's, and a hundred times as long as all the rest.
func goldenText(t *testing.T, objects []object) string {
	t.Helper()
	var text strings.Builder
	for _, o := range objects {
		if spec, ok := o["spec"].(map[string]any); ok && o.kind() == "CustomResourceDefinition" {
			delete(spec, "versions")
		}
		out, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		text.WriteString("---\n" + string(out))
	}
	return text.String()
}
