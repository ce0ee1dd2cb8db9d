package fluxgen_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openmcp-project/service-provider-velero/fluxgen"
)

func TestEveryDifferenceInWhatIsFetchedMakesAnotherSource(t *testing.T) {
	base := everything().Chart
	names := map[string]string{fluxgen.SourceName(base): "the base"}
	for what, change := range map[string]func(*fluxgen.Chart){
		"repository":    func(c *fluxgen.Chart) { c.Repository = "oci://mirror.example/charts" },
		"version":       func(c *fluxgen.Chart) { c.Version = "1.2.4" },
		"digest":        func(c *fluxgen.Chart) { c.Digest = strings.Replace(digest, "0", "f", 1) },
		"no digest":     func(c *fluxgen.Chart) { c.Digest = "" },
		"insecure":      func(c *fluxgen.Chart) { c.Insecure = false },
		"pull secret":   func(c *fluxgen.Chart) { c.PullSecret = "" },
		"CA secret":     func(c *fluxgen.Chart) { c.CertSecret = "" },
		"proxy secret":  func(c *fluxgen.Chart) { c.ProxySecret = "" },
		"cosign secret": func(c *fluxgen.Chart) { c.CosignSecret = "" },
		"swapped":       func(c *fluxgen.Chart) { c.PullSecret, c.CertSecret = c.CertSecret, c.PullSecret },
		"credentials":   func(c *fluxgen.Chart) { c.Credentials = "4712" },
		"chart":         func(c *fluxgen.Chart) { c.Name = "other" },
	} {
		chart := base
		change(&chart)
		name := fluxgen.SourceName(chart)
		if other, taken := names[name]; taken {
			t.Errorf("%s: the same name as %s: %s", what, other, name)
		}
		names[name] = what
	}
}

func TestSourceNamesArePredictable(t *testing.T) {
	if got, want := fluxgen.SourceName(minimal().Chart), fluxgen.SourceName(minimal().Chart); got != want {
		t.Errorf("%s and %s", got, want)
	}
	source, release, err := fluxgen.Render(everything())
	if err != nil {
		t.Fatal(err)
	}
	if want := fluxgen.SourceName(everything().Chart); source.Name != want || release.Spec.ChartRef.Name != want {
		t.Errorf("source %s, reference %s, want %s", source.Name, release.Spec.ChartRef.Name, want)
	}
}

func TestSourceNamesOfAnyChartAreLabels(t *testing.T) {
	for _, name := range []string{"a", "velero-control-plane", "a.b_c", strings.Repeat("a", 200), strings.Repeat("a", 51) + "-b"} {
		chart := minimal().Chart
		chart.Name = name
		if problems := validation.IsDNS1123Label(fluxgen.SourceName(chart)); len(problems) > 0 {
			t.Errorf("%s: %v", fluxgen.SourceName(chart), problems)
		}
	}
}

func TestTagsAreLookedUpMoreOftenThanDigests(t *testing.T) {
	pinned := everything()
	tagged := with(func(r *fluxgen.Release) { r.Chart.Digest = "" })
	for release, want := range map[*fluxgen.Release]time.Duration{&pinned: time.Hour, &tagged: 10 * time.Minute} {
		source, _, err := fluxgen.Render(*release)
		if err != nil {
			t.Fatal(err)
		}
		if source.Spec.Interval.Duration != want {
			t.Errorf("interval %s, want %s", source.Spec.Interval.Duration, want)
		}
	}
}

func TestTagsHaveNoPlus(t *testing.T) {
	for version, want := range map[string]string{"1.2.3": "1.2.3", "1.2.3+a.b": "1.2.3_a.b", "v1.2.3-rc.1+5": "v1.2.3-rc.1_5"} {
		chart := minimal().Chart
		chart.Version = version
		if chart.Tag() != want {
			t.Errorf("%s: %s, want %s", version, chart.Tag(), want)
		}
	}
}
