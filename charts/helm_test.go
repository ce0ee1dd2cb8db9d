package charts_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/openmcp-project/service-provider-velero/test/landscape/programs"
)

// helm runs the real program, away from the user's own Helm files and clusters.
type helm struct {
	path string
	home string
}

var findHelm = sync.OnceValues(func() (string, error) { return programs.Find(context.Background(), "helm") })

func newHelm(t *testing.T) helm {
	t.Helper()
	path, err := findHelm()
	if err != nil {
		t.Fatalf("find helm: %v", err)
	}
	return helm{path: path, home: t.TempDir()}
}

func (h helm) run(args ...string) (string, error) {
	cmd := exec.Command(h.path, args...)
	cmd.Env = []string{"HOME=" + h.home, "KUBECONFIG=" + filepath.Join(h.home, "none")}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("helm %s: %w: %s", args[0], err, stderr.String())
	}
	return stdout.String(), nil
}

// release is one way to render a chart.
type release struct {
	chart   string
	version string   // of the chart, when it is not its own
	values  []string // files, later ones win
	flags   []string
}

var releaseNamespace = map[string]string{
	controlPlane: "velero",
	server:       "velero--3f2a",
}

// render returns the objects of the release in Helm's order.
func (h helm) render(r release) ([]object, error) {
	chart, err := h.chart(r)
	if err != nil {
		return nil, err
	}
	args := []string{"template", r.chart, chart, "--namespace", releaseNamespace[r.chart]}
	for _, file := range r.values {
		args = append(args, "--values", file)
	}
	out, err := h.run(append(args, r.flags...)...)
	if err != nil {
		return nil, err
	}
	return parseObjects(out)
}

func (h helm) mustRender(t *testing.T, r release) []object {
	t.Helper()
	objects, err := h.render(r)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// chart is the directory of the chart, or a package of it with the version wanted.
func (h helm) chart(r release) (string, error) {
	if r.version == "" {
		return r.chart, nil
	}
	_, err := h.run("package", r.chart, "--version", r.version, "--destination", h.home)
	return filepath.Join(h.home, fmt.Sprintf("%s-%s.tgz", r.chart, r.version)), err
}

// object is a rendered Kubernetes object.
type object map[string]any

func parseObjects(manifests string) ([]object, error) {
	var objects []object
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		var o object
		if err := yaml.UnmarshalStrict([]byte(document), &o); err != nil {
			return nil, fmt.Errorf("parse a rendered object: %w\n%s", err, document)
		}
		if len(o) > 0 {
			objects = append(objects, o)
		}
	}
	return objects, nil
}

func (o object) kind() string { return fmt.Sprint(o["kind"]) }

func (o object) metadata(field string) map[string]any {
	metadata, _ := o["metadata"].(map[string]any)
	entries, _ := metadata[field].(map[string]any)
	return entries
}

func (o object) name() string {
	metadata, _ := o["metadata"].(map[string]any)
	return fmt.Sprint(metadata["name"])
}

// text is the object as JSON, for searching.
func (o object) text(t *testing.T) string {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(o); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// find decodes the only object of the kind with that name; unknown fields are errors.
func find[T any](t *testing.T, objects []object, kind, name string) T {
	t.Helper()
	for _, o := range objects {
		if o.kind() == kind && o.name() == name {
			return decode[T](t, o)
		}
	}
	t.Fatalf("no %s %s", kind, name)
	panic("unreachable")
}

func decode[T any](t *testing.T, o object) T {
	t.Helper()
	var typed T
	decoder := json.NewDecoder(strings.NewReader(o.text(t)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&typed); err != nil {
		t.Fatalf("decode %s %s: %v", o.kind(), o.name(), err)
	}
	return typed
}

func minimalValues(chart string) string {
	return filepath.Join("testdata", chart, "minimal", "values.yaml")
}

// overlay is the minimal release of the chart with values on top, given as YAML.
func overlay(t *testing.T, chart, values string) release {
	t.Helper()
	path := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(path, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	return release{chart: chart, values: []string{minimalValues(chart), path}}
}
