package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const crd = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    controller-gen.kubebuilder.io/version: v0.16.5
  name: backups.velero.io
spec:
  group: velero.io
`

const want = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  annotations:
    helm.sh/resource-policy: keep
    controller-gen.kubebuilder.io/version: v0.16.5
  name: backups.velero.io
  labels:
    {{- include "velero-control-plane.labels" . | nindent 4 }}
spec:
  group: velero.io
`

func TestImportReplacesTheCRDs(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, "config/crd/v1/bases/velero.io_backups.yaml"), crd)
	write(t, filepath.Join(to, "velero.io_gone.yaml"), "stale")
	write(t, filepath.Join(to, "namespace.yaml"), "ours")
	if err := importAll(from, to); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(to, "velero.io_backups.yaml"))
	if err != nil || string(got) != want {
		t.Errorf("template %q, %v", got, err)
	}
	if left, _ := filepath.Glob(filepath.Join(to, "*")); len(left) != 2 {
		t.Errorf("templates %v, want the imported one and namespace.yaml", left)
	}
}

func TestImportRefuses(t *testing.T) {
	for name, test := range map[string]struct{ content, message string }{
		"text Helm would evaluate": {strings.Replace(crd, "velero.io\n", "{{ x }}\n", 1), "Helm would evaluate"},
		"other YAML":               {"kind: Namespace\n", "no metadata.annotations"},
	} {
		if _, err := asTemplate(test.content); err == nil || !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s: %v", name, err)
		}
	}
	to := t.TempDir()
	write(t, filepath.Join(to, "velero.io_backups.yaml"), "kept")
	if err := importAll(t.TempDir(), to); err == nil || !strings.Contains(err.Error(), "-from") {
		t.Errorf("empty tree: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(to, "*")); len(left) != 1 {
		t.Error("an empty tree removed the CRDs")
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
