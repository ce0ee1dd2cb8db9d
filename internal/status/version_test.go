package status

import (
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/fluxgen"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// TestReadyNeedsTheWantedVersion: a HelmRelease that is Ready says nothing about which chart and values it runs.
func TestReadyNeedsTheWantedVersion(t *testing.T) {
	tests := map[string]struct {
		change func(*Release)
		ready  bool
	}{
		"AsWanted":                    {func(*Release) {}, true},
		"LeadingV":                    {func(r *Release) { history(r, "v0.1.0+aaaaaaaaaaaa") }, true},
		"WithoutDigestInTheVersion":   {func(r *Release) { history(r, "0.1.0") }, true},
		"OlderVersionRuns":            {func(r *Release) { history(r, "0.0.9+aaaaaaaaaaaa") }, false},
		"PrereleaseRuns":              {func(r *Release) { history(r, "0.1.0-rc.1+aaaaaaaaaaaa") }, false},
		"OtherChartRuns":              {func(r *Release) { r.HelmRelease.Status.History[0].ChartName = "velero" }, false},
		"LastRevisionFailed":          {func(r *Release) { r.HelmRelease.Status.History[0].Status = "failed" }, false},
		"NewestRevisionIsNotTheFirst": {func(r *Release) { newer(r, "failed") }, false},
		"NothingRuns":                 {func(r *Release) { r.HelmRelease.Status.History = nil }, false},
		"SpecNotSeenByFlux":           {func(r *Release) { r.HelmRelease.Generation++ }, false},
		"OtherValues":                 {func(r *Release) { r.Wanted.Values["image"] = "velero/velero:v1.18.0" }, false},
		"NoValuesInTheRelease":        {func(r *Release) { r.HelmRelease.Spec.Values = nil }, false},
		"ValuesWrittenOtherwise": {func(r *Release) {
			r.HelmRelease.Spec.Values = &apiextensionsv1.JSON{Raw: []byte(`{"inline":{"plugins":["aws"],"replicas":1.0}, "image":"velero/velero:v1.17.1"}`)}
		}, true},
		"ConfigNotRolledOut": {func(r *Release) { r.HelmRelease.Status.LastAttemptedConfigDigest = "sha256:new" }, false},
		"TagMoved":           {func(r *Release) { r.Source.Status.Artifact.Revision = "0.1.0@sha256:moved" }, false},
		"SourceGone":         {func(r *Release) { r.Source = nil }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			velero, observed := stored(t)
			test.change(&observed.Server)
			want := outcome{metav1.ConditionFalse, v1alpha1.ReasonInstalling, v1alpha1.Progressing, nil}
			if test.ready {
				want = outcome{metav1.ConditionTrue, v1alpha1.ReasonInstalled, v1alpha1.Ready, []string{"chart version 0.1.0"}}
			}
			want.check(t, Compute(velero, observed, later), v1alpha1.ConditionServerInstalled)
			if Installed(observed.Server) != test.ready {
				t.Errorf("Installed is %v", !test.ready)
			}
		})
	}
}

func history(release *Release, chartVersion string) {
	release.HelmRelease.Status.History[0].ChartVersion = chartVersion
}

func newer(release *Release, status string) {
	hr := release.HelmRelease
	hr.Status.History = append(hr.Status.History, snapshot(2, hr.Name, "0.1.0", status))
}

// TestPinnedDigest: the same version with another digest is another chart.
func TestPinnedDigest(t *testing.T) {
	velero, observed := stored(t)
	chart := &observed.Server.Wanted.Chart
	chart.Digest = "sha256:" + strings.Repeat("b", 64)
	observed.Server.Source.Name = fluxgen.SourceName(*chart)
	observed.Server.HelmRelease.Spec.ChartRef.Name = fluxgen.SourceName(*chart)
	observed.Server.Source.Status.Artifact.Revision = chart.Digest
	progressing(v1alpha1.ReasonInstalling).check(t, Compute(velero, observed, later), v1alpha1.ConditionServerInstalled)
	observed.Server.HelmRelease.Status.History[0].OCIDigest = chart.Digest
	outcome{metav1.ConditionTrue, v1alpha1.ReasonInstalled, v1alpha1.Ready, nil}.check(t, Compute(velero, observed, later), v1alpha1.ConditionServerInstalled)
}

// TestAcceptsWhatFluxgenGenerates guards the comparison of values: if it were ever wrong, nothing would become Ready.
func TestAcceptsWhatFluxgenGenerates(t *testing.T) {
	for _, values := range []map[string]any{nil, {}, {"n": 3, "f": 1.5, "s": "<&>", "list": []any{map[string]any{"a": nil}}, "typed": []struct {
		Name string `json:"name"`
	}{{"aws"}}}} {
		release := fixture(t, plan.ServerRelease, "0.1.0")
		release.Wanted.Values = values
		_, rendered, err := fluxgen.Render(*release.Wanted)
		if err != nil {
			t.Fatal(err)
		}
		release.HelmRelease.Spec.Values = rendered.Spec.Values
		if !Installed(release) {
			t.Errorf("values %v are not recognised in %v", values, rendered.Spec.Values)
		}
	}
}

// TestRunsUnwanted: a release of the wanted version that comes from elsewhere is not the wanted one.
func TestRunsUnwanted(t *testing.T) {
	velero, observed := stored(t)
	observed.Server.HelmRelease.Spec.ChartRef = &helmv2.CrossNamespaceSourceReference{Kind: "OCIRepository", Name: "velero-server-old"}
	observed.Server.Source.Status.Artifact = nil
	progressing(v1alpha1.ReasonFetchingChart, "chart velero-server 0.1.0", wasUntouched).check(t, Compute(velero, observed, later), v1alpha1.ConditionServerInstalled)
}

// TestInstalledIsStricterThanTheCondition: nothing is built on what Flux is at work on, nor is anything removed meanwhile.
func TestInstalledIsStricterThanTheCondition(t *testing.T) {
	tests := map[string]struct {
		change    func(*Release)
		condition metav1.ConditionStatus
	}{
		"CorrectingDrift": {func(r *Release) {
			ready(metav1.ConditionUnknown, "Progressing", "correcting cluster drift")(r.HelmRelease)
		}, metav1.ConditionTrue},
		"FetchingTheChartAnew": {func(r *Release) {
			r.Source.Status = unfetched(nil)
			ready(metav1.ConditionFalse, sourceNotReady, "OCIRepository 'mcp--x/y' is not ready")(r.HelmRelease)
		}, metav1.ConditionTrue},
		"NotKnownWhatIsWanted": {func(r *Release) { r.Wanted = nil }, metav1.ConditionTrue},
		"Suspended":            {func(r *Release) { r.HelmRelease.Spec.Suspend = true }, metav1.ConditionFalse},
		"OnTheOldChart":        {func(r *Release) { r.HelmRelease.Spec.ChartRef.Name = "velero-server-old" }, metav1.ConditionFalse},
		"NoChart":              {func(r *Release) { r.HelmRelease.Spec.ChartRef = nil }, metav1.ConditionFalse},
		"EmptyRevision":        {func(r *Release) { r.HelmRelease.Status.History = helmv2.Snapshots{nil} }, metav1.ConditionFalse},
		"NoHelmRelease":        {func(r *Release) { r.HelmRelease = nil }, metav1.ConditionFalse},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			velero, observed := stored(t)
			test.change(&observed.Server)
			got := find(Compute(velero, observed, later).Status, v1alpha1.ConditionServerInstalled)
			if got.Status != test.condition || Installed(observed.Server) {
				t.Errorf("installed: %v, condition %s: %s", Installed(observed.Server), got.Status, got.Message)
			}
		})
	}
}
