package fluxgen_test

import (
	"bytes"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/openmcp-project/service-provider-velero/fluxgen"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// manifests is the objects of a release as YAML documents.
func manifests(t *testing.T, release fluxgen.Release) []byte {
	t.Helper()
	source, helmRelease, err := fluxgen.Render(release)
	if err != nil {
		t.Fatal(err)
	}
	return documents(t, source, helmRelease)
}

func documents(t *testing.T, objects ...any) []byte {
	t.Helper()
	var all [][]byte
	for _, object := range objects {
		document, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, document)
	}
	return bytes.Join(all, []byte("---\n"))
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name, "golden.yaml")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := fs.ReadFile(os.DirFS("testdata"), name+"/golden.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("not as in %s (run with -update if that is right):\n%s", path, diff)
	}
}

func TestReleasesRenderAsRecorded(t *testing.T) {
	for name, release := range cases() {
		t.Run(name, func(t *testing.T) {
			golden(t, name, manifests(t, release))
		})
	}
}

func TestValuesSecretsRenderAsRecorded(t *testing.T) {
	secret, err := fluxgen.ValuesSecret("values", "mcp--1", map[string]string{"a": "b"}, map[string]string{"c": "d"}, map[string]any{
		"token": "t", "pullSecrets": []any{map[string]any{"name": "n"}}, "caBundle": "line 1\nline 2\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "values-secret", documents(t, secret))
}

func TestValuesSecretDoesNotQuoteValuesItCannotWrite(t *testing.T) {
	_, err := fluxgen.ValuesSecret("values", "mcp--1", nil, nil, map[string]any{"token": "s3cr3t", "bad": func() {}})
	if err == nil {
		t.Fatal("no error")
	}
	if want := "values cannot be written as YAML"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestTheSameReleaseRendersTheSameBytes(t *testing.T) {
	first := manifests(t, everything())
	for range 50 {
		if again := manifests(t, everything()); !bytes.Equal(first, again) {
			t.Fatal(cmp.Diff(string(first), string(again)))
		}
	}
}

func TestRenderDoesNotShareMapsWithTheRelease(t *testing.T) {
	release := everything()
	source, helmRelease, err := fluxgen.Render(release)
	if err != nil {
		t.Fatal(err)
	}
	source.Labels["x"], helmRelease.Labels["y"] = "1", "2"
	if diff := cmp.Diff(everything().Labels, release.Labels); diff != "" {
		t.Error("the release changed with its objects:", diff)
	}
	if _, leaked := source.Labels["y"]; leaked {
		t.Error("the two objects share their labels")
	}
}
