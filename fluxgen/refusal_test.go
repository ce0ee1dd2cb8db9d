package fluxgen_test

import (
	"strings"
	"testing"
	"time"

	"github.com/openmcp-project/service-provider-velero/fluxgen"
)

func TestRenderRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fluxgen.Release)
		want   string
	}{
		"no target":              {func(r *fluxgen.Release) { r.Target = fluxgen.Target{} }, `target: "" is not the name of a kubeconfig Secret`},
		"no name":                {func(r *fluxgen.Release) { r.Name = "" }, `release: name "" is not a DNS label`},
		"a name with dots":       {func(r *fluxgen.Release) { r.Name = "a.b" }, `release: name "a.b" is not a DNS label`},
		"a name of 51":           {func(r *fluxgen.Release) { r.Name = strings.Repeat("a", 51) }, "of at most 50 characters"},
		"no namespace":           {func(r *fluxgen.Release) { r.Namespace = "" }, `release: "" is not the name of a namespace`},
		"a bad label":            {func(r *fluxgen.Release) { r.Labels = map[string]string{"a": strings.Repeat("b", 64)} }, "is not a label"},
		"a bad label key":        {func(r *fluxgen.Release) { r.Labels = map[string]string{"a b": "c"} }, "is not a label"},
		"a bad shard":            {func(r *fluxgen.Release) { r.Shard = "a/b" }, "sharding.fluxcd.io/key"},
		"a bad values secret":    {func(r *fluxgen.Release) { r.ValuesSecrets = []string{"A"} }, `release: "A" is not the name of a Secret with values`},
		"no interval":            {func(r *fluxgen.Release) { r.Interval = 0 }, "interval 0s"},
		"a negative timeout":     {func(r *fluxgen.Release) { r.Timeout = -time.Second }, "timeout -1s"},
		"no repository":          {func(r *fluxgen.Release) { r.Chart.Repository = "" }, `chart: repository ""`},
		"a repository over http": {func(r *fluxgen.Release) { r.Chart.Repository = "https://registry.example/charts" }, "is not oci://HOST[:PORT][/PATH]"},
		"a slash at the end":     {func(r *fluxgen.Release) { r.Chart.Repository += "/" }, "is not oci://HOST[:PORT][/PATH]"},
		"a tag in the URL":       {func(r *fluxgen.Release) { r.Chart.Repository += ":v1" }, "is not oci://HOST[:PORT][/PATH]"},
		"credentials in the URL": {func(r *fluxgen.Release) { r.Chart.Repository = "oci://user:password@registry.example/charts" }, "is not oci://HOST[:PORT][/PATH]"},
		"no chart name":          {func(r *fluxgen.Release) { r.Chart.Name = "" }, `chart: "" is not the name of a chart`},
		"a path as chart name":   {func(r *fluxgen.Release) { r.Chart.Name = "../app" }, `chart: "../app" is not the name of a chart`},
		"no version":             {func(r *fluxgen.Release) { r.Chart.Version = "" }, `chart: version ""`},
		"a range":                {func(r *fluxgen.Release) { r.Chart.Version = ">=1.0.0" }, "is not one exact semantic version"},
		"a wildcard":             {func(r *fluxgen.Release) { r.Chart.Version = "1.2.x" }, "is not one exact semantic version"},
		"latest":                 {func(r *fluxgen.Release) { r.Chart.Version = "latest" }, "is not one exact semantic version"},
		"half a version":         {func(r *fluxgen.Release) { r.Chart.Version = "1.2" }, "is not one exact semantic version"},
		"a version of 129":       {func(r *fluxgen.Release) { r.Chart.Version = "1.2.3-" + strings.Repeat("a", 123) }, "is not one exact semantic version"},
		"a digest without name":  {func(r *fluxgen.Release) { r.Chart.Digest = strings.TrimPrefix(digest, "sha256:") }, "chart: digest"},
		"a digest of a tarball":  {func(r *fluxgen.Release) { r.Chart.Digest = "sha512:00" }, "chart: digest"},
		"a bad pull secret":      {func(r *fluxgen.Release) { r.Chart.PullSecret = "a/b" }, `chart: "a/b" is not the name of a Secret`},
		"a bad CA secret":        {func(r *fluxgen.Release) { r.Chart.CertSecret = "a/b" }, `chart: "a/b" is not the name of a Secret`},
		"a bad proxy secret":     {func(r *fluxgen.Release) { r.Chart.ProxySecret = "a/b" }, `chart: "a/b" is not the name of a Secret`},
		"a bad cosign secret":    {func(r *fluxgen.Release) { r.Chart.CosignSecret = "a/b" }, `chart: "a/b" is not the name of a Secret`},
		"values that are code":   {func(r *fluxgen.Release) { r.Values = map[string]any{"f": func() {}} }, "values cannot be written as JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			source, release, err := fluxgen.Render(with(test.change))
			if err == nil {
				t.Fatal("rendered")
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, want it to contain %q", err, test.want)
			}
			if source != nil || release != nil {
				t.Error("objects beside the error")
			}
		})
	}
}

func TestRenderNamesAllProblems(t *testing.T) {
	_, _, err := fluxgen.Render(fluxgen.Release{})
	if err == nil {
		t.Fatal("rendered")
	}
	for _, want := range []string{"kubeconfig Secret", "key", "repository", "chart", "version", "release: name", "interval"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in:\n%s", want, err)
		}
	}
}

func TestTargetsAreComplete(t *testing.T) {
	for name, test := range map[string]struct {
		secret, key, namespace string
		valid                  bool
	}{
		"complete":            {"tenant-kubeconfig", "kubeconfig", "app--1", true},
		"a dotted name":       {"tenant.kubeconfig", "value.yaml", "app", true},
		"no secret":           {"", "kubeconfig", "app", false},
		"no key":              {"tenant", "", "app", false},
		"no namespace":        {"tenant", "kubeconfig", "", false},
		"a secret elsewhere":  {"other/tenant", "kubeconfig", "app", false},
		"upper case":          {"Tenant", "kubeconfig", "app", false},
		"a path as key":       {"tenant", "../kubeconfig", "app", false},
		"a dotted namespace":  {"tenant", "kubeconfig", "app.1", false},
		"a namespace of 64":   {"tenant", "kubeconfig", strings.Repeat("a", 64), false},
		"a templated secret":  {"{{ tenant }}", "kubeconfig", "app", false},
		"white space in keys": {"tenant", "kube config", "app", false},
	} {
		t.Run(name, func(t *testing.T) {
			target, err := fluxgen.NewTarget(test.secret, test.key, test.namespace)
			if (err == nil) != test.valid {
				t.Fatalf("valid: %v, error: %v", test.valid, err)
			}
			_, _, err = fluxgen.Render(with(func(r *fluxgen.Release) { r.Target = target }))
			if (err == nil) != test.valid {
				t.Errorf("a target that NewTarget refuses must not be rendered: %v", err)
			}
			if test.valid && target.Namespace() != test.namespace {
				t.Errorf("namespace %q", target.Namespace())
			}
		})
	}
}
