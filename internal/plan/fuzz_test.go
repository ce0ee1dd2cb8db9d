package plan_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/fluxgen"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// FuzzResolve looks for a request whose plan has something that the ProviderConfig does not offer.
func FuzzResolve(f *testing.F) {
	f.Add("v1.17.1", "aws", "v1.13.0", []byte(`{"availableImages":[{"name":"velero","versions":["v1.17.1"],"image":"velero/velero"},{"name":"aws","versions":["v1.13.0"],"image":"velero/aws"}]}`))
	f.Add("v1", "velero", "v1", []byte(`{"availableImages":[{"name":"velero","versions":["v1"],"image":"x"},{"name":"velero","versions":["v1"],"image":"y"}],"values":{"server":{"a":["{{"]}}}`))
	f.Add("sha256:0", "a", "sha256:0", []byte(`{"pollInterval":"0s","availableImages":[{"name":"velero","versions":["sha256:0"],"image":""},{"name":"a","versions":["sha256:0"],"image":""}],"charts":{"pullSecret":{"name":""}},"imagePullSecrets":[{"name":"x"},{"name":"x"}],"caBundleRef":{}}`))
	f.Add("", "", "", []byte(`{}`))
	f.Add("{{ evil }}", "{{ evil }}", "{{ evil }}", []byte(`{"availableImages":[{"name":"velero","versions":["v1"],"image":"velero/velero"}],"values":{"server":null,"controlPlane":{"image":1}}}`))
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
		checkPlan(t, resolved, &config)
	})
}

func checkPlan(t *testing.T, resolved *plan.Plan, config *v1alpha1.ProviderConfigSpec) {
	t.Helper()
	images := map[string]bool{}
	for _, available := range config.AvailableImages {
		for _, version := range available.Versions {
			images[available.Image+":"+version], images[available.Image+"@"+version] = true, true
		}
	}
	all, err := resolved.Releases(grants())
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range all {
		if !images[release.Values["image"].(string)] {
			t.Fatalf("image %q is not offered", release.Values["image"])
		}
		// What the API server would have refused may be refused here; it must not be rendered.
		source, helmRelease, err := fluxgen.Render(release)
		if err == nil && (helmRelease.Spec.KubeConfig.SecretRef.Name == "" || !strings.HasPrefix(source.Spec.URL, "oci://")) {
			t.Fatalf("%+v", helmRelease.Spec)
		}
	}
	for _, plugin := range all[1].Values["plugins"].([]any) {
		if image := plugin.(map[string]any)["image"].(string); !images[image] {
			t.Fatalf("image %q is not offered", image)
		}
	}
	for _, wanted := range resolved.Secrets(grants()) {
		if secret, blocked := resolved.Generate(wanted, nil); secret == nil && blocked == nil {
			t.Fatalf("%s: neither a Secret nor a reason", wanted.Name)
		}
	}
}
