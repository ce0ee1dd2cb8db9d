package plan_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/fluxgen"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/test/fluxschema"
)

// FuzzResolve looks for a request whose plan has something that the ProviderConfig does not offer.
func FuzzResolve(f *testing.F) {
	f.Add("v1.17.1", "aws", "v1.13.0", []byte(`{"availableImages":[{"name":"velero","versions":["v1.17.1"],"image":"velero/velero"},{"name":"aws","versions":["v1.13.0"],"image":"velero/aws"}]}`))
	f.Add("v1", "velero", "v1", []byte(`{"availableImages":[{"name":"velero","versions":["v1"],"image":"x"},{"name":"velero","versions":["v1"],"image":"y"}],"values":{"server":{"a":["{{"]}}}`))
	f.Add("sha256:0", "a", "sha256:0", []byte(`{"pollInterval":"0s","availableImages":[{"name":"velero","versions":["sha256:0"],"image":""},{"name":"a","versions":["sha256:0"],"image":""}],"charts":{"pullSecret":{"name":""}},"imagePullSecrets":[{"name":"x"},{"name":"x"}],"caBundleRef":{}}`))
	f.Add("", "", "", []byte(`{}`))
	f.Add("{{ evil }}", "{{ evil }}", "{{ evil }}", []byte(`{"availableImages":[{"name":"velero","versions":["v1"],"image":"velero/velero"}],"values":{"server":null,"controlPlane":{"image":1}}}`))
	oracle := newOracle(f)
	f.Fuzz(func(t *testing.T, version, plugin, pluginVersion string, configuration []byte) {
		var config v1alpha1.ProviderConfigSpec
		if json.Unmarshal(configuration, &config) != nil {
			return
		}
		asked := plan.Request{Velero: request(t, "guide").Velero, Config: &config, Sources: versions(&config, "1"), Spec: v1alpha1.VeleroSpec{
			Version: version, Plugins: plugins(plugin, pluginVersion),
		}}
		resolved, blocked := plan.Resolve(asked)
		if (resolved == nil) == (blocked == nil) {
			t.Fatal("neither a plan nor a reason, or both")
		}
		if blocked != nil {
			if blocked.Reason == "" || blocked.Message == "" || len(blocked.Message) > 1024 || !utf8.ValidString(blocked.Message) {
				t.Fatalf("%+v", blocked)
			}
			return
		}
		oracle.check(t, resolved, &config)
	})
}

// oracle knows what Flux's API accepts.
type oracle struct {
	sources, releases fluxschema.Schema
}

func newOracle(t testing.TB) oracle {
	t.Helper()
	modules := filepath.Join("..", "..", "test", "tools", "flux")
	sources, err := fluxschema.Load(modules, fluxschema.OCIRepository, "v1")
	if err != nil {
		t.Fatal(err)
	}
	releases, err := fluxschema.Load(modules, fluxschema.HelmRelease, "v2")
	if err != nil {
		t.Fatal(err)
	}
	return oracle{sources, releases}
}

func (o oracle) check(t *testing.T, resolved *plan.Plan, config *v1alpha1.ProviderConfigSpec) {
	t.Helper()
	all, err := resolved.Releases(grants())
	if err != nil {
		t.Fatal(err)
	}
	checkImages(t, all, config)
	for _, release := range all {
		// What the API server would have refused may be refused here; it must not be rendered.
		if source, helmRelease, err := fluxgen.Render(release); err == nil {
			o.checkObjects(t, source, helmRelease)
		}
	}
	for _, wanted := range resolved.Secrets(grants()) {
		if len(validation.IsDNS1123Subdomain(wanted.Name)) > 0 {
			t.Fatalf("Secret %q", wanted.Name)
		}
		if secret, blocked := resolved.Generate(wanted, nil); secret == nil && blocked == nil {
			t.Fatalf("%s: neither a Secret nor a reason", wanted.Name)
		}
	}
}

// checkImages: each image is one that the ProviderConfig offers.
func checkImages(t *testing.T, releases []fluxgen.Release, config *v1alpha1.ProviderConfigSpec) {
	t.Helper()
	images := map[string]bool{}
	for _, available := range config.AvailableImages {
		for _, version := range available.Versions {
			images[available.Image+":"+version], images[available.Image+"@"+version] = true, true
		}
	}
	var used []string
	for _, release := range releases {
		used = append(used, release.Values["image"].(string))
	}
	for _, plugin := range releases[1].Values["plugins"].([]any) {
		used = append(used, plugin.(map[string]any)["image"].(string))
	}
	for _, image := range used {
		if !images[image] {
			t.Fatalf("image %q is not offered", image)
		}
	}
}

// checkObjects: Flux's API accepts them, their names are within the limits, they go to a cluster that is named, and nothing in them is a
// template.
func (o oracle) checkObjects(t *testing.T, source *sourcev1.OCIRepository, release *helmv2.HelmRelease) {
	t.Helper()
	ofSource, err := o.sources.Violations(source)
	if err != nil {
		t.Fatal(err)
	}
	ofRelease, err := o.releases.Violations(release)
	if err != nil {
		t.Fatal(err)
	}
	if found := slices.Concat(ofSource, ofRelease); len(found) > 0 {
		t.Fatal(strings.Join(found, "\n"))
	}
	const helmLimit = 53
	if len(release.Spec.ReleaseName) > helmLimit || release.Spec.KubeConfig.SecretRef.Name == "" || !strings.HasPrefix(source.Spec.URL, "oci://") {
		t.Fatalf("%+v", release.Spec)
	}
	for _, name := range []string{source.Name, source.Namespace, release.Name, release.Namespace, release.Spec.TargetNamespace, release.Spec.StorageNamespace} {
		if len(validation.IsDNS1123Label(name)) > 0 {
			t.Fatalf("name %q", name)
		}
	}
	text, err := json.Marshal([]any{source, release})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "{{") {
		t.Fatalf("a template in %s", text)
	}
}

// FuzzGenerate: whatever the Secrets and the CA bundle of a ProviderConfig hold, there is a Secret or a reason, and the reason quotes nothing of it.
func FuzzGenerate(f *testing.F) {
	for _, data := range [][]byte{
		[]byte(`{"auths":{"https://registry.example/v2/":{"auth":"dTpw","username":"somebody","password":"something"}}}`),
		file(f, "ca.crt"), file(f, "cosign.pub"), []byte("http://somebody:something@proxy.example:3128"), grantedKubeconfig(f), nil,
	} {
		f.Add(data, string(corev1.SecretTypeDockerConfigJson))
		f.Add(data, string(corev1.SecretTypeDockercfg))
	}
	resolved := resolve(f, request(f, "full"))
	f.Fuzz(func(t *testing.T, data []byte, kind string) {
		for _, wanted := range resolved.Secrets(grants()) {
			all := map[plan.Source]plan.Content{}
			for _, source := range wanted.Sources {
				all[source] = filled(data, kind, source.Key)
			}
			secret, blocked := resolved.Generate(wanted, all)
			if (secret == nil) == (blocked == nil) {
				t.Fatalf("%s: neither a Secret nor a reason, or both", wanted.Name)
			}
			if blocked != nil {
				assertQuotesNothing(t, blocked.Message, string(data))
			}
		}
	})
}

// filled has the data under every key that is looked for.
func filled(data []byte, kind, key string) plan.Content {
	content := plan.Content{Type: corev1.SecretType(kind), Data: map[string][]byte{}}
	for _, name := range []string{key, kubeconfig, corev1.DockerConfigJsonKey, corev1.DockerConfigKey, "address", "username", "password", "key.pub"} {
		content.Data[name] = data
	}
	return content
}

// assertQuotesNothing looks for every part of a text that is too long to be there by chance.
func assertQuotesNothing(t *testing.T, message, text string) {
	t.Helper()
	const chance = 24
	for start := 0; start+chance <= len(text); start++ {
		if part := text[start : start+chance]; strings.Contains(message, part) {
			t.Fatalf("%q of the contents is quoted in %q", part, message)
		}
	}
}
