package mirror_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/mirror"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

func TestPlaceInTheMirror(t *testing.T) {
	tests := map[string]struct {
		mirror string
		scoped bool
		source string
		want   string
	}{
		"DockerHub":         {"registry.internal/path", false, "velero/velero", "registry.internal/path/velero/velero"},
		"DockerHubByName":   {"registry.internal/path", false, "docker.io/velero/velero", "registry.internal/path/velero/velero"},
		"DockerHubOfficial": {"registry.internal", false, "busybox", "registry.internal/library/busybox"},
		"NoPath":            {"registry.internal", false, "ghcr.io/org/charts/velero-server", "registry.internal/org/charts/velero-server"},
		"Ports":             {"localhost:5000/a/b", false, "127.0.0.1:5001/velero", "localhost:5000/a/b/velero"},
		"Scheme":            {"oci://registry.internal/path/", false, "quay.io/velero", "registry.internal/path/velero"},
		"Scoped":            {"registry.internal/path", true, "Quay.io:443/velero/velero", "registry.internal/path/quay.io-443/velero/velero"},
		"ScopedDockerHub":   {"registry.internal", true, "velero/velero", "registry.internal/index.docker.io/velero/velero"},
		"ScopedIPv6":        {"registry.internal", true, "[fd00::1]:5000/velero", "registry.internal/fd00--1-5000/velero"},
		"ToIPv6":            {"[::1]:5000/m", false, "velero/velero", "[::1]:5000/m/velero/velero"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			layout, err := mirror.NewLayout(test.mirror, test.scoped)
			must(t, err)
			got, err := layout.Repository(test.source)
			must(t, err)
			if got != test.want {
				t.Errorf("it is %s, want %s", got, test.want)
			}
		})
	}
}

func TestNoPlaceForAMirror(t *testing.T) {
	for _, place := range []string{"", "registry/path", "/path", "https://registry.internal", "registry.internal/Path", "registry.internal/path:v1", "user:pw@registry.internal"} {
		if _, err := mirror.NewLayout(place, false); err == nil {
			t.Errorf("%q is accepted", place)
		}
	}
}

func TestList(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	config := &v1alpha1.ProviderConfigSpec{AvailableImages: []v1alpha1.AvailableImage{
		{Name: "velero", Versions: []string{"v1", "v1@" + digest, digest}, Image: "velero/velero"},
		{Name: "aws", Versions: []string{"v1"}, Image: "reg.example:5000/aws"},
		{Name: "aws-again", Versions: []string{"v1"}, Image: "reg.example:5000/aws"},
	}}
	to, err := mirror.NewLayout("mirror.internal/m", false)
	must(t, err)
	got, err := mirror.List(plan.Artifacts(config), nil, &to)
	must(t, err)
	const charts = "openmcp-project/charts/"
	want := []mirror.Entry{
		{"chart", "velero-control-plane", plan.ChartVersion, "ghcr.io/" + charts + "velero-control-plane:" + plan.ChartVersion, "mirror.internal/m/" + charts + "velero-control-plane:" + plan.ChartVersion},
		{"chart", "velero-server", plan.ChartVersion, "ghcr.io/" + charts + "velero-server:" + plan.ChartVersion, "mirror.internal/m/" + charts + "velero-server:" + plan.ChartVersion},
		{"image", "velero", "v1", "docker.io/velero/velero:v1", "mirror.internal/m/velero/velero:v1"},
		{"image", "velero", "v1@" + digest, "docker.io/velero/velero@" + digest, "mirror.internal/m/velero/velero:v1"},
		{"image", "velero", digest, "docker.io/velero/velero@" + digest, "mirror.internal/m/velero/velero@" + digest},
		{"image", "aws", "v1", "reg.example:5000/aws:v1", "mirror.internal/m/aws:v1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

func TestEqualPathsOfTwoRegistries(t *testing.T) {
	config := &v1alpha1.ProviderConfigSpec{AvailableImages: []v1alpha1.AvailableImage{
		{Name: "velero", Versions: []string{"v1"}, Image: "velero/velero"}, {Name: "other", Versions: []string{"v1"}, Image: "quay.io/velero/velero"},
	}}
	for scoped, accepted := range map[bool]bool{false: false, true: true} {
		to, err := mirror.NewLayout("mirror.internal", scoped)
		must(t, err)
		_, err = mirror.List(plan.Artifacts(config), nil, &to)
		if accepted != (err == nil) || err != nil && !strings.Contains(err.Error(), "--scoped") {
			t.Errorf("scoped %v: error %v", scoped, err)
		}
	}
}

func TestCredentials(t *testing.T) {
	keychain, err := mirror.NewKeychain([]byte(`{"auths": {
		"https://index.docker.io/v1/": {"auth": "aHViOnB3"},
		"reg.example:5000": {"username": "whole", "password": "pw"},
		"reg.example:5000/team/velero": {"username": "part", "password": "pw"}}}`))
	must(t, err)
	for repository, want := range map[string]string{
		"velero/velero": "hub", "reg.example:5000/other": "whole", "reg.example:5000/team/velerox": "whole",
		"reg.example:5000/team/velero": "part", "reg.example:5000/team/velero/plugin": "part", "reg.example/team": "", "quay.io/velero": "",
	} {
		target, err := name.NewRepository(repository)
		must(t, err)
		found, err := keychain.Resolve(target)
		must(t, err)
		got, err := found.Authorization()
		must(t, err)
		if got.Username != want {
			t.Errorf("%s: user %q, want %q", repository, got.Username, want)
		}
	}
	if text := keychain.(interface{ String() string }).String(); strings.Contains(text, "pw") {
		t.Errorf("it tells a password: %s", text)
	}
}
