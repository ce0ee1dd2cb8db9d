package programs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLdflagsCarryTheVersionOfTheModule(t *testing.T) {
	shelf := checkoutWith(t, "v1.36.3")
	p, err := lookup("kube-apiserver")
	if err != nil {
		t.Fatal(err)
	}
	got, err := ldflags(shelf.Checkout, p)
	if err != nil {
		t.Fatal(err)
	}
	want := "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 " +
		"-X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ldflags (-want +got):\n%s", diff)
	}
}

func TestKeyChangesWithWhateverDecidesTheBinary(t *testing.T) {
	key := func(shelf Shelf, name string) string {
		t.Helper()
		p, err := lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		k, err := shelf.key(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	shelf := checkoutWith(t, "v1.36.3")
	first := key(shelf, "kubectl")
	if second := key(shelf, "kubectl"); second != first {
		t.Errorf("the key moved without a change: %s, then %s", first, second)
	}
	if !strings.HasPrefix(first, "kubernetes-") {
		t.Errorf("key %s does not start with the name of its module", first)
	}
	if other := key(checkoutWith(t, "v1.36.4"), "kubectl"); other == first {
		t.Error("the key ignores the version of the module")
	}
	write(t, filepath.Join(shelf.Checkout, "test/tools/kubernetes/go.sum"), "changed")
	if changed := key(shelf, "kubectl"); changed == first {
		t.Error("the key ignores go.sum")
	}
}

func TestProvidedDirectoryMustHoldEveryProgram(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "etcd"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	shelf := Shelf{Provided: dir}
	path, err := shelf.Find(t.Context(), "etcd")
	if err != nil || path != filepath.Join(dir, "etcd") {
		t.Errorf("Find(etcd) = %q, %v", path, err)
	}
	_, err = shelf.All(t.Context(), "etcd", "helm", "kwok")
	if err == nil || !strings.Contains(err.Error(), "lacks helm, kwok") {
		t.Errorf("the error does not name what is missing: %v", err)
	}
}

func TestUnknownProgramIsRefused(t *testing.T) {
	shelf := checkoutWith(t, "v1.36.3")
	if _, err := shelf.Find(t.Context(), "docker"); err == nil || !strings.Contains(err.Error(), "kube-apiserver") {
		t.Errorf("the error does not say which programs there are: %v", err)
	}
}

func TestEveryProgramHasAToolsModule(t *testing.T) {
	checkout, err := Checkout()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range slices.Concat(catalog, nodeCatalog, veleroCatalog) {
		content, err := os.ReadFile(filepath.Join(checkout, "test/tools", p.tool, "go.mod"))
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(content), p.path) {
			t.Errorf("test/tools/%s/go.mod does not name the tool %s", p.tool, p.path)
		}
	}
}

// checkoutWith is a checkout whose only tools module is one for the given version of Kubernetes.
func checkoutWith(t *testing.T, version string) Shelf {
	t.Helper()
	dir := t.TempDir()
	tools := filepath.Join(dir, "test/tools/kubernetes")
	if err := os.MkdirAll(tools, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(tools, "go.mod"), "module example.com/tools\n\ngo 1.26.0\n\nrequire (\n\tk8s.io/kubernetes "+version+"\n)\n")
	write(t, filepath.Join(tools, "go.sum"), "")
	return Shelf{Checkout: dir, Cache: t.TempDir()}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestVersionIsThatOfTheModule(t *testing.T) {
	checkout, err := Checkout()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"velero": "v1.18.3", "velero-1.14": "v1.14.0", "velero-plugin-for-aws": "v1.14.3", "kubelet": "v1.36.3"} {
		if got, err := Version(checkout, name); got != want || err != nil {
			t.Errorf("Version(%s) = %q, %v, want %s", name, got, err, want)
		}
	}
}
