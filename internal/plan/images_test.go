package plan_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestImagesAreMadeFromRepositoryAndVersion(t *testing.T) {
	for _, test := range []struct{ repository, version, want string }{
		{"velero/velero", "v1.18.3", "velero/velero:v1.18.3"},
		{"velero/velero", "1.18.3", "velero/velero:1.18.3"},
		{"velero/velero", "v1.18.3-rc.1", "velero/velero:v1.18.3-rc.1"},
		{"velero/velero", "v1.18.3_vmware.1", "velero/velero:v1.18.3_vmware.1"},
		{"velero/velero", "latest", "velero/velero:latest"},
		{"velero/velero", digest, "velero/velero@" + digest},
		{"velero/velero", "v1.18.3@" + digest, "velero/velero:v1.18.3@" + digest},
		{"docker.io/velero/velero", "v1", "docker.io/velero/velero:v1"},
		{"localhost:5000/velero", "v1", "localhost:5000/velero:v1"},
		{"10.20.20.150:6690/velero/velero-plugin-for-aws", digest, "10.20.20.150:6690/velero/velero-plugin-for-aws@" + digest},
		{"[fd00::1]:5000/x", "v1", "[fd00::1]:5000/x:v1"},
		{"reg.io/team_x/a.b/velero", "v1", "reg.io/team_x/a.b/velero:v1"},
		{"harbor.internal/proxy/docker.io/velero/velero", "v1", "harbor.internal/proxy/docker.io/velero/velero:v1"},
	} {
		asked := plan.Request{
			Velero: request(t, "guide").Velero,
			Spec:   v1alpha1.VeleroSpec{Version: test.version},
			Config: &v1alpha1.ProviderConfigSpec{AvailableImages: []v1alpha1.AvailableImage{{Name: "velero", Versions: []string{test.version}, Image: test.repository}}},
		}
		if got := resolve(t, asked).Image; got != test.want {
			t.Errorf("%s and %s: got %s, want %s", test.repository, test.version, got, test.want)
		}
	}
}

// A version is a key. What looks like the offered version to a person is another key, and is refused with what is offered.
func TestVersionsAreTakenAsTheyAreWritten(t *testing.T) {
	for _, version := range []string{
		"", "1.17.1", " v1.17.1 ", "V1.17.1", "v1.17", "v1.17.1+vmware.1", "latest", "main", "v1.17.1@", "v1.17.1 ", "{{ .Version }}", strings.Repeat("1", 129), "v1.17.1\n",
	} {
		asked := request(t, "guide")
		asked.Spec.Version = version
		_, blocked := plan.Resolve(asked)
		if blocked == nil || blocked.Reason != v1alpha1.ReasonVersionNotOffered || !strings.HasSuffix(blocked.Message, "offered: v1.17.1") {
			t.Errorf("%q: %+v", version, blocked)
		}
	}
}

func TestPluginNamesAreTakenAsTheyAreWritten(t *testing.T) {
	for _, name := range []string{"", "AWS", "aws ", "velero.io/aws", "velero", "my_plugin", "äws", strings.Repeat("a", 64), "{{ aws }}"} {
		asked := request(t, "guide")
		asked.Spec.Plugins = plugins(name, "v1.13.0")
		_, blocked := plan.Resolve(asked)
		if blocked == nil || blocked.Reason != v1alpha1.ReasonPluginNotOffered || !strings.HasSuffix(blocked.Message, "offered: aws") {
			t.Errorf("%q: %+v", name, blocked)
		}
	}
}

// The API server refuses a component that is listed twice; a file that render reads may have one.
func TestAComponentThatIsListedTwiceOffersBoth(t *testing.T) {
	asked := request(t, "guide")
	asked.Config.AvailableImages = append(asked.Config.AvailableImages, v1alpha1.AvailableImage{Name: "velero", Versions: []string{"v1.17.1", "v1.18.3"}, Image: "mirror.example/velero"})
	for version, want := range map[string]string{"v1.17.1": "velero/velero:v1.17.1", "v1.18.3": "mirror.example/velero:v1.18.3"} {
		asked.Spec.Version = version
		if got := resolve(t, asked).Image; got != want {
			t.Errorf("%s: got %s, want %s", version, got, want)
		}
	}
}

func TestTheOrderOfListsHasNoMeaning(t *testing.T) {
	asked := request(t, "full")
	first := resolve(t, asked)
	asked.Spec.Plugins[0], asked.Spec.Plugins[1] = asked.Spec.Plugins[1], asked.Spec.Plugins[0]
	asked.Spec.Plugins = append(asked.Spec.Plugins, asked.Spec.Plugins[0])
	asked.Config.ImagePullSecrets[0], asked.Config.ImagePullSecrets[1] = asked.Config.ImagePullSecrets[1], asked.Config.ImagePullSecrets[0]
	images := asked.Config.AvailableImages
	images[0], images[2] = images[2], images[0]
	second := resolve(t, asked)
	if diff := cmp.Diff(first, second, cmpopts.IgnoreUnexported(plan.Plan{}, plan.Names{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(first.Secrets(grants()), second.Secrets(grants())); diff != "" {
		t.Error(diff)
	}
	if one, other := manifests(t, objects(t, request(t, "full"))), manifests(t, objects(t, asked)); !bytes.Equal(one, other) {
		t.Error(cmp.Diff(string(one), string(other)))
	}
}

func TestAnyNumberOfPlugins(t *testing.T) {
	asked := request(t, "guide")
	for number := range 21 {
		asked.Spec.Plugins = nil
		asked.Config.AvailableImages = asked.Config.AvailableImages[:1]
		for i := range number {
			name := string(rune('a' + (number+i)%26))
			asked.Spec.Plugins = append(asked.Spec.Plugins, plugins(name, "v1")...)
			asked.Config.AvailableImages = append(asked.Config.AvailableImages, v1alpha1.AvailableImage{Name: name, Versions: []string{"v1"}, Image: "plugins/" + name})
		}
		resolved := resolve(t, asked)
		if len(resolved.Plugins) != number {
			t.Fatalf("%d plugins of %d", len(resolved.Plugins), number)
		}
		for i := 1; i < number; i++ {
			if resolved.Plugins[i-1].Name >= resolved.Plugins[i].Name {
				t.Fatalf("not sorted: %v", resolved.Plugins)
			}
		}
	}
}

// TestPinnedVersionsAreAskedForWithoutTheirDigest: a platform can pin what it offers, and nobody has to change a Velero.
func TestPinnedVersionsAreAskedForWithoutTheirDigest(t *testing.T) {
	other := strings.Replace(digest, "0123", "3210", 1)
	tests := map[string]struct {
		offered []string
		asked   string
		want    string
	}{
		"Pinned":      {[]string{"v1@" + digest, "v2"}, "v1", "velero/velero:v1@" + digest},
		"InFull":      {[]string{"v1@" + digest}, "v1@" + digest, "velero/velero:v1@" + digest},
		"PlainWins":   {[]string{"v1@" + digest, "v1"}, "v1", "velero/velero:v1"},
		"Ambiguous":   {[]string{"v1@" + digest, "v1@" + other}, "v1", ""},
		"OtherDigest": {[]string{"v1@" + digest}, "v1@" + other, ""},
		"OnlyDigest":  {[]string{"v1@" + digest}, digest, ""},
		"Prefix":      {[]string{"v1.1@" + digest}, "v1", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			asked := request(t, "guide")
			asked.Spec = v1alpha1.VeleroSpec{Version: test.asked}
			asked.Config.AvailableImages = []v1alpha1.AvailableImage{{Name: "velero", Versions: test.offered, Image: "velero/velero"}}
			resolved, blocked := plan.Resolve(asked)
			if (blocked == nil) != (test.want != "") {
				t.Fatalf("blocked: %+v", blocked)
			}
			if blocked == nil && resolved.Image != test.want {
				t.Errorf("got %s, want %s", resolved.Image, test.want)
			}
		})
	}
}

func TestArtifacts(t *testing.T) {
	config := request(t, "full").Config
	config.AvailableImages = []v1alpha1.AvailableImage{{Name: "velero", Versions: []string{"v1", "v2@" + digest, digest}, Image: "localhost:5000/velero"}}
	config.Charts = &v1alpha1.Charts{Repository: "oci://reg.example:5000/charts", Version: "0.1.0+build", Digests: &v1alpha1.ChartDigests{Server: digest}}
	var got []string
	for _, artifact := range plan.Artifacts(config) {
		got = append(got, artifact.Name+" "+artifact.Version+" "+artifact.Reference())
	}
	want := []string{
		"velero-control-plane 0.1.0+build reg.example:5000/charts/velero-control-plane:0.1.0_build",
		"velero-server 0.1.0+build reg.example:5000/charts/velero-server:0.1.0_build@" + digest,
		"velero v1 localhost:5000/velero:v1",
		"velero v2@" + digest + " localhost:5000/velero:v2@" + digest,
		"velero " + digest + " localhost:5000/velero@" + digest,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("artifacts (-want +got):\n%s", diff)
	}
}

// TestArtifactsAreWhatIsInstalled: what is mirrored is what the releases refer to.
func TestArtifactsAreWhatIsInstalled(t *testing.T) {
	for _, name := range []string{"guide", "full"} {
		asked := request(t, name)
		known := map[string]bool{}
		for _, artifact := range plan.Artifacts(asked.Config) {
			known[artifact.Reference()] = true
		}
		resolved := resolve(t, asked)
		used := []string{resolved.Image}
		for _, plugin := range resolved.Plugins {
			used = append(used, plugin.Image)
		}
		for _, image := range used {
			if !known[image] {
				t.Errorf("%s: %s is used and not among the artifacts", name, image)
			}
		}
	}
}
