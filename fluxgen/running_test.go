package fluxgen_test

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/openmcp-project/service-provider-velero/fluxgen"
)

func TestRunningComparesTheNewestRevision(t *testing.T) {
	chart := fluxgen.Chart{Name: "app", Version: "1.2.3"}
	pinned := fluxgen.Chart{Name: "app", Version: "1.2.3", Digest: digest}
	built := fluxgen.Chart{Name: "app", Version: "v1.2.3+build.5"}
	revision := func(change func(*helmv2.Snapshot)) *helmv2.Snapshot {
		snapshot := &helmv2.Snapshot{
			Version: 2, Status: "deployed", ChartName: "app", ChartVersion: "1.2.3+0123456789ab", ConfigDigest: "c1", OCIDigest: digest,
		}
		change(snapshot)
		return snapshot
	}
	as := func(*helmv2.Snapshot) {}
	for name, test := range map[string]struct {
		chart   fluxgen.Chart
		history helmv2.Snapshots
		want    bool
	}{
		"nothing installed":                {chart, nil, false},
		"the wanted version":               {chart, helmv2.Snapshots{revision(as)}, true},
		"the wanted digest":                {pinned, helmv2.Snapshots{revision(as)}, true},
		"build metadata and a v":           {built, helmv2.Snapshots{revision(as)}, true},
		"without digest tracking":          {chart, helmv2.Snapshots{revision(func(s *helmv2.Snapshot) { s.ChartVersion = "1.2.3" })}, true},
		"another version":                  {chart, helmv2.Snapshots{revision(func(s *helmv2.Snapshot) { s.ChartVersion = "1.2.4+0123456789ab" })}, false},
		"a pre-release":                    {chart, helmv2.Snapshots{revision(func(s *helmv2.Snapshot) { s.ChartVersion = "1.2.3-rc.1" })}, false},
		"another chart":                    {chart, helmv2.Snapshots{revision(func(s *helmv2.Snapshot) { s.ChartName = "other" })}, false},
		"another digest":                   {pinned, helmv2.Snapshots{revision(func(s *helmv2.Snapshot) { s.OCIDigest = "sha256:00" })}, false},
		"other values":                     {chart, helmv2.Snapshots{revision(func(s *helmv2.Snapshot) { s.ConfigDigest = "c0" })}, false},
		"failed":                           {chart, helmv2.Snapshots{revision(func(s *helmv2.Snapshot) { s.Status = "failed" })}, false},
		"a failed upgrade, listed last":    {chart, helmv2.Snapshots{revision(func(s *helmv2.Snapshot) { s.Version = 1 }), revision(func(s *helmv2.Snapshot) { s.Status = "failed" })}, false},
		"the newest, listed last":          {chart, helmv2.Snapshots{revision(func(s *helmv2.Snapshot) { s.Version, s.Status = 1, "superseded" }), revision(as)}, true},
		"an empty entry":                   {chart, helmv2.Snapshots{nil, revision(as)}, true},
		"nothing but an empty entry":       {chart, helmv2.Snapshots{nil}, false},
		"an older version that ran before": {chart, helmv2.Snapshots{revision(func(s *helmv2.Snapshot) { s.Version, s.ChartVersion = 3, "1.3.0" }), revision(as)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			release := &helmv2.HelmRelease{Status: helmv2.HelmReleaseStatus{History: test.history, LastAttemptedConfigDigest: "c1"}}
			if got := fluxgen.Running(release, test.chart); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	if fluxgen.Running(nil, chart) {
		t.Error("no HelmRelease runs nothing")
	}
}
