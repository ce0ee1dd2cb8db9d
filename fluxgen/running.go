package fluxgen

import (
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
)

// deployed is the status of a Helm release revision that was installed without a failure.
const deployed = "deployed"

// Running says whether the newest revision on the target is this chart, with the values of Flux's last attempt. It says nothing about
// health, nor about a spec that Flux has not looked at yet: that is what the generations are for.
func Running(release *helmv2.HelmRelease, chart Chart) bool {
	if release == nil {
		return false
	}
	latest := newest(release.Status.History)
	return latest != nil && latest.Status == deployed && latest.ChartName == chart.Name &&
		sameVersion(latest.ChartVersion, chart.Version) &&
		(chart.Digest == "" || latest.OCIDigest == chart.Digest) &&
		latest.ConfigDigest == release.Status.LastAttemptedConfigDigest
}

// newest is what History.Latest is, without sorting an object in place that may be shared.
func newest(history helmv2.Snapshots) *helmv2.Snapshot {
	var latest *helmv2.Snapshot
	for _, snapshot := range history {
		if snapshot != nil && (latest == nil || snapshot.Version > latest.Version) {
			latest = snapshot
		}
	}
	return latest
}

// sameVersion ignores build metadata, which helm-controller replaces by the digest of the chart, and a leading v, as Helm does.
func sameVersion(a, b string) bool {
	return plainVersion(a) == plainVersion(b)
}

func plainVersion(version string) string {
	version, _, _ = strings.Cut(version, "+")
	return strings.TrimPrefix(version, "v")
}
