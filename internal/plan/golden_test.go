package plan_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/openmcp-project/service-provider-velero/fluxgen"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// objects are all objects that are applied for a request, in order: Secrets, then for each release its source and its HelmRelease.
func objects(t testing.TB, request plan.Request) []any {
	t.Helper()
	resolved := resolve(t, request)
	secrets := resolved.Secrets(grants())
	held := contents(t, secrets)
	var all []any
	for _, wanted := range secrets {
		secret, blocked := resolved.Generate(wanted, held)
		if blocked != nil {
			t.Fatalf("blocked: %+v", blocked)
		}
		all = append(all, secret)
	}
	releases, err := resolved.Releases(grants())
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range releases {
		source, helmRelease, err := fluxgen.Render(release)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, source, helmRelease)
	}
	return all
}

func manifests(t testing.TB, objects []any) []byte {
	t.Helper()
	documents := make([][]byte, 0, len(objects))
	for _, object := range objects {
		if secret, isSecret := object.(*corev1.Secret); isSecret {
			object = readable(secret)
		}
		document, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, document)
	}
	return bytes.Join(documents, []byte("---\n"))
}

// readable shows what a Secret holds.
func readable(secret *corev1.Secret) *corev1.Secret {
	shown := secret.DeepCopy()
	shown.StringData, shown.Data = map[string]string{}, nil
	for key, value := range secret.Data {
		shown.StringData[key] = string(value)
	}
	return shown
}

func TestPlansAreAsRecorded(t *testing.T) {
	for _, name := range []string{"guide", "full"} {
		t.Run(name, func(t *testing.T) {
			got := manifests(t, objects(t, request(t, name)))
			path := filepath.Join("testdata", name, "golden.yaml")
			if *update {
				if err := os.WriteFile(path, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(file(t, name, "golden.yaml")), string(got)); diff != "" {
				t.Errorf("not as in %s (run with -update if that is right):\n%s", path, diff)
			}
		})
	}
}

func TestNoSecretIsInlineInAHelmRelease(t *testing.T) {
	for _, name := range []string{"guide", "full"} {
		resolved := resolve(t, request(t, name))
		releases, err := resolved.Releases(grants())
		if err != nil {
			t.Fatal(err)
		}
		for _, release := range releases {
			source, helmRelease, err := fluxgen.Render(release)
			if err != nil {
				t.Fatal(err)
			}
			text := string(manifests(t, []any{source, helmRelease}))
			for _, forbidden := range []string{secretText, "evil", "password", "token:", "pullSecrets:", "caBundle", "proxy:", "kubeconfig:"} {
				if strings.Contains(text, forbidden) {
					t.Errorf("%s: %q is in\n%s", name, forbidden, text)
				}
			}
		}
	}
}
