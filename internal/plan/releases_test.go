package plan_test

import (
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/openmcp-project/service-provider-velero/fluxgen"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

func releases(t testing.TB, request plan.Request) (controlPlane, server fluxgen.Release) {
	t.Helper()
	all, err := resolve(t, request).Releases(grants())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Name != plan.ControlPlaneRelease || all[1].Name != plan.ServerRelease {
		t.Fatalf("releases: %v", all)
	}
	return all[0], all[1]
}

func TestTheChartsAreThoseThatTheBinaryIsReleasedWith(t *testing.T) {
	for _, name := range []string{plan.ControlPlaneRelease, plan.ServerRelease} {
		data, err := fs.ReadFile(os.DirFS("../../charts"), name+"/Chart.yaml")
		if err != nil {
			t.Fatal(err)
		}
		var chart struct{ Name, Version string }
		if err := yaml.Unmarshal(data, &chart); err != nil {
			t.Fatal(err)
		}
		if chart.Name != name || chart.Version != plan.ChartVersion {
			t.Errorf("chart %s %s, want %s %s", chart.Name, chart.Version, name, plan.ChartVersion)
		}
	}
	controlPlane, server := releases(t, request(t, "guide"))
	for _, release := range []fluxgen.Release{controlPlane, server} {
		want := fluxgen.Chart{Repository: plan.ChartRepository, Name: release.Name, Version: plan.ChartVersion}
		if diff := cmp.Diff(want, release.Chart); diff != "" {
			t.Error(diff)
		}
	}
}

func TestThePollIntervalIsTheInterval(t *testing.T) {
	asked := request(t, "guide")
	for _, test := range []struct {
		set  *metav1.Duration
		want time.Duration
	}{{nil, 10 * time.Minute}, {&metav1.Duration{Duration: 30 * time.Second}, 30 * time.Second}} {
		asked.Config.PollInterval = test.set
		controlPlane, server := releases(t, asked)
		if controlPlane.Interval != test.want || server.Interval != test.want {
			t.Errorf("%v: %s and %s", test.set, controlPlane.Interval, server.Interval)
		}
	}
}

// On the control plane, which is the tenant's own, Velero may be already; the workload cluster is shared.
func TestOnlyTheControlPlaneIsAdopted(t *testing.T) {
	controlPlane, server := releases(t, request(t, "guide"))
	if diff := cmp.Diff(fluxgen.Policy{CreateNamespace: true, Adopt: true}, controlPlane.Policy); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(fluxgen.Policy{Wait: true}, server.Policy); diff != "" {
		t.Error(diff)
	}
}

func TestGeneratedValuesWinAndSensitiveOnesAreNotInline(t *testing.T) {
	asked := request(t, "guide")
	serverValues(&asked, `{"image":"evil","plugins":"evil","controlPlane":"evil","imagePullSecrets":"evil","kubeconfig":"evil","token":"evil",
		"pullSecrets":"evil","caBundle":"mine","proxy":{"http":"mine"},"resources":{"limits":{"cpu":2,"memory":1.5}}}`)
	_, server := releases(t, asked)
	want := map[string]any{
		"image":            "velero/velero:v1.17.1",
		"plugins":          []any{map[string]any{"name": "aws", "image": "velero/velero-plugin-for-aws:v1.13.0"}},
		"controlPlane":     map[string]any{"namespace": "velero"},
		"imagePullSecrets": []any{map[string]any{"name": "privateregcred"}},
		"resources":        map[string]any{"limits": map[string]any{"cpu": int64(2), "memory": 1.5}},
	}
	if diff := cmp.Diff(want, server.Values); diff != "" {
		t.Error(diff)
	}

	resolved := resolve(t, asked)
	wanted := resolved.Secrets(grants())[1]
	secret, blocked := resolved.Generate(wanted, contents(t, []plan.GeneratedSecret{wanted}))
	if blocked != nil {
		t.Fatal(blocked)
	}
	var sensitive map[string]any
	if err := yaml.Unmarshal(secret.Data[fluxgen.ValuesKey], &sensitive); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"token": nil, "kubeconfig": nil, "caBundle": "mine", "proxy": map[string]any{"http": "mine"}} {
		if diff := cmp.Diff(want, sensitive[key]); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
	if len(sensitive) != 3 || sensitive["pullSecrets"] == "evil" {
		t.Errorf("values %v", sensitive)
	}
}

func TestReleasesDoNotShareValuesWithThePlan(t *testing.T) {
	resolved := resolve(t, request(t, "full"))
	first, err := resolved.Releases(grants())
	if err != nil {
		t.Fatal(err)
	}
	first[1].Values["resources"].(map[string]any)["limits"] = "changed"
	second, err := resolved.Releases(grants())
	if err != nil {
		t.Fatal(err)
	}
	if second[1].Values["resources"].(map[string]any)["limits"] == "changed" {
		t.Error("a change of one result shows in the next")
	}
}

func TestWithoutAGrantThereIsNoRelease(t *testing.T) {
	for name, change := range map[string]func(*plan.Grants){
		"no control plane":    func(g *plan.Grants) { g.ControlPlane = plan.Grant{} },
		"no workload":         func(g *plan.Grants) { g.Workload = plan.Grant{} },
		"a grant with no key": func(g *plan.Grants) { g.Workload.Key = "" },
	} {
		granted := grants()
		change(&granted)
		if all, err := resolve(t, request(t, "guide")).Releases(granted); err == nil || all != nil {
			t.Errorf("%s: %v, %v", name, all, err)
		}
	}
}
