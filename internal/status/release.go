package status

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/fluxgen"
)

// component is a release with the words to talk about it.
type component struct {
	Release
	conditionType string
	// subject is what is installed, cluster is where.
	subject, cluster string
}

func controlPlane(release Release) component {
	return component{release, v1alpha1.ConditionControlPlaneInstalled, "the Velero API", "the control plane"}
}

func server(release Release) component {
	return component{release, v1alpha1.ConditionServerInstalled, "the Velero server", "the cluster that the server runs on"}
}

// Installed says whether Flux runs the release as it is wanted, from the wanted chart, and is content with it right now. The condition is more
// lenient: it stays True while Flux corrects drift. Here something new is built on the answer, or something old is removed.
func Installed(release Release) bool {
	if release.Wanted == nil || release.HelmRelease == nil {
		return false
	}
	c := component{Release: release}
	return isTrue(c.condition(fluxmeta.ReadyCondition)) && c.verdict(verdict{}, nil).status == metav1.ConditionTrue
}

// verdict on the component. held, if any, says why nothing is installed or changed for now; what runs is then judged by itself.
func (c component) verdict(held verdict, stored []metav1.Condition) verdict {
	hr := c.HelmRelease
	if !held.none() {
		c.Wanted = nil
	}
	switch {
	case hr == nil && !held.none():
		return held
	case hr == nil:
		return c.coming()
	case !hr.DeletionTimestamp.IsZero():
		return waiting(v1alpha1.ReasonInstalling, c.subject+" is being removed and will be installed again")
	case hr.Spec.Suspend:
		return stuck(v1alpha1.ReasonSuspended, "a platform operator suspended "+c.subject+"; nothing is changed until it is resumed")
	case c.awaitsChart():
		return c.coming().and(c.untouched())
	default:
		return c.running(apimeta.FindStatusCondition(stored, c.conditionType))
	}
}

// coming is the verdict before Flux is told to install the wanted chart.
func (c component) coming() verdict {
	if c.Wanted == nil || Fetched(c.Source) && !suspended(c.Source) {
		return c.installing()
	}
	return sourceVerdict(c.Wanted.Chart, c.Source)
}

// awaitsChart says whether it takes a chart to come to what is wanted, or to the next change of it.
func (c component) awaitsChart() bool {
	return c.Wanted != nil && (suspended(c.Source) || !c.switched())
}

// switched says whether the HelmRelease uses the wanted chart. It is only switched when the chart is there, so a chart that cannot be
// fetched never touches what runs; nor may what runs count as the wanted release, even if its version is the same.
func (c component) switched() bool {
	reference := c.HelmRelease.Spec.ChartRef
	return reference != nil && reference.Name == fluxgen.SourceName(c.Wanted.Chart)
}

// running is the verdict on what Flux does with a HelmRelease that is as it should be.
//
// Reconciling is ignored on purpose: helm-controller sets it at every interval. Success counts only when the whole status is of the current
// generation; a failure also when only its condition is, since helm-controller does not advance the status after most failures.
func (c component) running(stored *metav1.Condition) verdict {
	ready, stalled := c.condition(fluxmeta.ReadyCondition), c.condition(fluxmeta.StalledCondition)
	if isTrue(stalled) && c.current(stalled) {
		return c.stalled()
	}
	switch {
	case ready == nil || !c.current(ready):
		return c.installing()
	case ready.Status == metav1.ConditionFalse:
		return c.failure(ready)
	case !c.observed():
		return c.installing()
	case ready.Status == metav1.ConditionUnknown:
		return c.working(stored)
	case c.runs(c.HelmRelease):
		return c.installed()
	default:
		return c.installing()
	}
}

// working is the verdict while Flux is at work although what is wanted did not change: it corrects drift, rolls out renewed credentials, or
// tries again what failed. What was true before stays true until Flux knows better; everything else would flap.
func (c component) working(stored *metav1.Condition) verdict {
	released := c.condition(helmv2.ReleasedCondition)
	switch {
	case released == nil || released.Reason == pendingRelease:
		return c.installing()
	case released.Status == metav1.ConditionFalse:
		return c.failed(released.Message)
	case c.keepsRunning():
		return c.corrected(stored)
	default:
		return c.installing()
	}
}

// corrected is the verdict while Flux corrects drift. It says nowhere but in an event that it could not; it only stays at it and tries again.
func (c component) corrected(stored *metav1.Condition) verdict {
	refused := c.refused()
	drifted, reconciling := c.condition(helmv2.DriftedCondition), c.condition(fluxmeta.ReconcilingCondition)
	if !isTrue(drifted) {
		return c.installed()
	}
	retrying := reconciling != nil && reconciling.Reason == fluxmeta.ProgressingWithRetryReason
	if retrying || stored != nil && stored.Reason == refused.reason {
		return refused
	}
	return c.installed()
}

func (c component) installed() verdict {
	return good(v1alpha1.ReasonInstalled, c.subject+" is installed"+c.version(" (chart version ", ")"))
}

func (c component) installing() verdict {
	if c.deployed() == nil {
		return waiting(v1alpha1.ReasonInstalling, c.subject+" is being installed")
	}
	return waiting(v1alpha1.ReasonInstalling, c.subject+" is being updated")
}

// untouched is said of what runs while what is wanted cannot be had.
func (c component) untouched() string {
	if c.deployed() == nil {
		return ""
	}
	return "; what is installed" + c.version(" (chart version ", ")") + " stays as it is"
}

// keepsRunning says whether what is wanted runs although Flux is not content at the moment.
func (c component) keepsRunning() bool {
	if !c.observed() || !isTrue(c.condition(helmv2.ReleasedCondition)) || c.deployed() == nil {
		return false
	}
	// Credentials that were renewed are no other release: no matter whether Flux has rolled them out yet.
	hr := *c.HelmRelease
	hr.Status.LastAttemptedConfigDigest = newest(hr.Status.History).ConfigDigest
	return c.runs(&hr)
}

// runs says whether the newest revision on the cluster is the wanted one.
func (c component) runs(hr *helmv2.HelmRelease) bool {
	latest := newest(hr.Status.History)
	if latest == nil || latest.Status != deployedStatus {
		return false
	}
	if c.Wanted == nil {
		return true
	}
	// A version in a registry can be overwritten; Flux will notice, and until then the old one runs.
	moved := revisionDigest(c.Source) != "" && latest.OCIDigest != "" && revisionDigest(c.Source) != latest.OCIDigest
	return !moved && fluxgen.Running(hr, c.Wanted.Chart) && carries(hr, c.Wanted)
}

// carries says whether the HelmRelease has the wanted values. While it cannot be written, it does not, and yet Flux may be content with it.
func carries(hr *helmv2.HelmRelease, wanted *fluxgen.Release) bool {
	raw, err := json.Marshal(wanted.Values)
	if err != nil {
		return false
	}
	var want, have map[string]any
	if json.Unmarshal(raw, &want) != nil {
		return false
	}
	if hr.Spec.Values != nil && json.Unmarshal(hr.Spec.Values.Raw, &have) != nil {
		return false
	}
	return equality.Semantic.DeepEqual(want, have)
}

func (c component) observed() bool {
	return c.HelmRelease.Status.ObservedGeneration == c.HelmRelease.Generation
}

// current says whether a condition is about the current generation. Whether a cluster can be reached does not depend on what is wanted there.
func (c component) current(condition *metav1.Condition) bool {
	return c.observed() || condition.ObservedGeneration == c.HelmRelease.Generation || slices.Contains(targetReasons, condition.Reason)
}

func (c component) condition(conditionType string) *metav1.Condition {
	return apimeta.FindStatusCondition(c.HelmRelease.Status.Conditions, conditionType)
}

func isTrue(condition *metav1.Condition) bool {
	return condition != nil && condition.Status == metav1.ConditionTrue
}

const (
	deployedStatus   = "deployed"
	supersededStatus = "superseded"
)

// deployed is the newest revision that was installed without a failure; nil: none ever was.
func (c component) deployed() *helmv2.Snapshot {
	if c.HelmRelease == nil {
		return nil
	}
	var good helmv2.Snapshots
	for _, snapshot := range c.HelmRelease.Status.History {
		if snapshot != nil && (snapshot.Status == deployedStatus || snapshot.Status == supersededStatus) {
			good = append(good, snapshot)
		}
	}
	return newest(good)
}

// newest does not use History.Latest, which sorts in place: the object is shared with the cache.
func newest(history helmv2.Snapshots) *helmv2.Snapshot {
	var latest *helmv2.Snapshot
	for _, snapshot := range history {
		if snapshot != nil && (latest == nil || snapshot.Version > latest.Version) {
			latest = snapshot
		}
	}
	return latest
}

var versionPattern = regexp.MustCompile(`^\d+(\.[0-9A-Za-z-]+){0,8}$`)

// version of the installed chart between two texts; nothing if it is not known. Flux appends the chart's digest to it.
func (c component) version(before, after string) string {
	snapshot := c.deployed()
	if snapshot == nil {
		return ""
	}
	version, _, _ := strings.Cut(strings.TrimPrefix(snapshot.ChartVersion, "v"), "+")
	if len(version) > 64 || !versionPattern.MatchString(version) {
		return ""
	}
	return before + version + after
}
