package status

import (
	"regexp"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// Reasons that helm-controller writes and has no constants for.
const (
	sourceNotReady       = "SourceNotReady"
	stateError           = "StateError"
	restClientError      = "RESTClientError"
	resourceManagerError = "ResourceManagerError"
	factoryError         = "FactoryError"
	valuesError          = "ValuesError"
	chartMutateError     = "ChartMutateError"
	pendingRelease       = "PendingRelease"
)

// targetReasons are said of the target cluster, not of what is to be installed on it.
var targetReasons = []string{stateError, restClientError, resourceManagerError, factoryError}

// failure translates a Ready condition that is False.
func (c component) failure(ready *metav1.Condition) verdict {
	switch ready.Reason {
	case sourceNotReady, helmv2.ArtifactFailedReason:
		return c.withoutChart(ready)
	case chartMutateError:
		return stuck(v1alpha1.ReasonChartUnavailable, "the chart of "+c.subject+" has another version than the one that it is published under").and(c.untouched())
	case stateError, resourceManagerError, factoryError:
		return c.undetermined(ready.Message)
	case restClientError:
		return c.unseen("the credentials for " + c.cluster + " cannot be used")
	case valuesError:
		return c.broken(cause{text: "the platform's own settings for it are missing"})
	case helmv2.DependencyNotReadyReason, fluxmeta.HealthCheckCanceledReason:
		return c.installing()
	default:
		return c.failed(ready.Message)
	}
}

// withoutChart is the verdict when Flux cannot get at the chart. What runs needs it only to be changed: so while Flux merely fetches it
// anew, as after a restart, nothing is said.
func (c component) withoutChart(ready *metav1.Condition) verdict {
	if c.Wanted != nil && !Fetched(c.Source) {
		if failure := fetchFailure(c.Wanted.Chart, c.Source); failure != nil {
			return failure.and(c.untouched())
		}
	}
	switch {
	case strings.HasPrefix(ready.Message, "Could not load chart"):
		return waiting(v1alpha1.ReasonChartUnavailable, "the chart of "+c.subject+" cannot be read").and(c.untouched())
	case c.keepsRunning():
		return c.installed()
	default:
		return waiting(v1alpha1.ReasonFetchingChart, "waiting for the chart of "+c.subject).and(c.untouched())
	}
}

// triedPattern is how Flux writes that the cluster answered when it compared an object with what is wanted, which it does by applying it
// without effect. It is the first that it notices of drift that it may not correct.
var triedPattern = regexp.MustCompile(`dry-run failed \((Invalid|Forbidden|BadRequest|Conflict|FieldManagerConflict|InternalError)\)`)

// undetermined is the verdict when Flux does not know the state of the cluster.
func (c component) undetermined(text string) verdict {
	if !triedPattern.MatchString(text) {
		return c.unreachable(text)
	}
	cause := causeOf(text)
	refused := c.refused().and(": " + cause.text + "; it is tried again")
	refused.person = cause.person
	return refused
}

// refused is the verdict on drift that Flux cannot correct.
func (c component) refused() verdict {
	return stuck(v1alpha1.ReasonUpgradeFailed, c.subject+" was changed on "+c.cluster+", and Flux cannot change it back")
}

var refusedPattern = regexp.MustCompile(`Unauthorized|[Ff]orbidden|must be logged in|asked for the client to provide credentials`)

func (c component) unreachable(text string) verdict {
	if refusedPattern.MatchString(text) {
		return c.unseen(c.cluster + " refuses the credentials that Flux has for it")
	}
	return c.unseen(c.cluster + " cannot be reached")
}

// unseen is the verdict when Flux cannot look at the cluster. What was installed there may well run, so it did not fail: it is unknown.
func (c component) unseen(message string) verdict {
	if c.deployed() == nil {
		return waiting(v1alpha1.ReasonTargetUnreachable, message+", so "+c.subject+" cannot be installed; it is tried again")
	}
	return unknown(v1alpha1.ReasonTargetUnreachable, message+", so it is not known whether "+c.subject+" runs; it is tried again")
}

// failed translates the text of a failed install or upgrade.
func (c component) failed(text string) verdict {
	cause := causeOf(text)
	if cause.unreachable {
		return c.unreachable(text)
	}
	return c.broken(cause)
}

// broken goes by what there is, not by what Flux calls its last attempt: it tries a failed install again as an upgrade.
func (c component) broken(cause cause) verdict {
	broken := waiting(v1alpha1.ReasonInstallFailed, c.subject+" could not be installed")
	if c.deployed() != nil {
		broken = waiting(v1alpha1.ReasonUpgradeFailed, c.subject+" could not be updated")
	}
	broken.person, broken.unready = cause.person, cause.unready
	return broken.and(": " + cause.text + "; it is tried again")
}

// stalled is the verdict when Flux does not try again.
func (c component) stalled() verdict {
	message := "Flux gave up on " + c.subject
	for _, conditionType := range []string{helmv2.ReleasedCondition, fluxmeta.ReadyCondition} {
		if condition := c.condition(conditionType); condition != nil && condition.Status == metav1.ConditionFalse {
			message += ": " + causeOf(condition.Message).text
			break
		}
	}
	return stuck(v1alpha1.ReasonStalled, message)
}

// undeletable is all that Helm tells when it could not delete an object: neither which one nor why.
const undeletable = "failed to delete release"

// UninstallFailure says in the user's words why Flux could not uninstall a release, given what Flux wrote. The reason is empty when it is that
// of the step of the deletion.
func UninstallFailure(text string) (reason, message string) {
	cause := causeOf(text)
	switch {
	case refusedPattern.MatchString(text):
		return v1alpha1.ReasonCredentialsInvalid, "the cluster refuses the credentials that Flux has for it; a platform operator must have access granted again, or remove it there and suspend its HelmRelease"
	case cause.unreachable:
		return v1alpha1.ReasonTargetUnreachable, "the cluster cannot be reached; it is tried again"
	case strings.Contains(text, undeletable):
		return "", "an object of it cannot be deleted: the cluster does not know its kind any more, or does not permit it; a platform operator must mend that, or remove it there and suspend its HelmRelease"
	}
	return "", "the last attempt to uninstall it failed: " + cause.text + "; it is tried again"
}

// cause of a failure in the user's words.
type cause struct {
	text string
	// person: trying again does not help.
	person bool
	// unreachable: Flux could not look at the cluster.
	unreachable bool
	// unready: everything is there, and does not become ready.
	unready bool
}

// causes are recognised by what Helm, Kubernetes and Flux write; the first that matches counts. Nothing of their text is passed on: it has
// addresses, namespaces and names in it that are nobody's business.
var causes = []struct {
	pattern *regexp.Regexp
	cause
}{
	{regexp.MustCompile(`values don't meet the specifications of the schema`), cause{text: "its chart does not accept the configured values", person: true}},
	{regexp.MustCompile(`Deployment "velero" in namespace "[^"]*" exists already and belongs to somebody else`), cause{text: `namespace "velero" has a Deployment "velero" already that belongs to somebody else, who must remove it first`, person: true}},
	{regexp.MustCompile(`invalid ownership metadata|cannot be imported into the current release|Apply failed with \d+ conflict`), cause{text: "an object of it exists already and belongs to somebody else", person: true}},
	{regexp.MustCompile(`violates PodSecurity|denied the request|ValidatingAdmissionPolicy`), cause{text: "an admission rule of the cluster does not accept an object of it", person: true}},
	{regexp.MustCompile(`failed calling webhook`), cause{text: "an admission webhook of the cluster does not answer"}},
	{regexp.MustCompile(`exceeded quota`), cause{text: "a resource quota of the cluster is exhausted", person: true}},
	{regexp.MustCompile(`because it is being terminated`), cause{text: "its namespace is being removed"}},
	{regexp.MustCompile(`[Ff]orbidden`), cause{text: "the cluster does not permit to create or change an object of it", person: true}},
	{regexp.MustCompile(`[Cc]luster unreachable|connection refused|no such host|i/o timeout|TLS handshake|x509:|no route to host|connection reset|Unauthorized`), cause{text: "the cluster cannot be reached", unreachable: true}},
	{regexp.MustCompile(`failed early due to stalled resources`), cause{text: "an object of it failed", unready: true}},
	{regexp.MustCompile(`timeout waiting for|timed out waiting|context deadline exceeded|client rate limiter`), cause{text: "it did not become ready in time", unready: true}},
	{regexp.MustCompile(`no matches for kind`), cause{text: "the cluster does not know the kind of one of its objects", person: true}},
	{regexp.MustCompile(`namespaces? "[^"]*" not found`), cause{text: "its namespace is missing"}},
	{regexp.MustCompile(`execution error at|error calling|parse error|function "[^"]*" not defined`), cause{text: "its chart cannot be rendered with the configured values", person: true}},
	{regexp.MustCompile(`is invalid:|field not declared in schema|unknown field`), cause{text: "the cluster considers an object of it invalid", person: true}},
	{regexp.MustCompile(`hook`), cause{text: "a job of its chart failed"}},
}

func causeOf(text string) cause {
	return causeOr(text, "the platform operator finds the cause in its HelmRelease")
}

// causeOr has words for what is not known.
func causeOr(text, unknown string) cause {
	for _, known := range causes {
		if known.pattern.MatchString(text) {
			return known.cause
		}
	}
	return cause{text: unknown}
}

// Refusal says in the user's words that the platform cluster does not take what is written there for a Velero, given what its API server wrote.
func Refusal(text string) string {
	return "the platform cluster refuses what is needed for this Velero: " + causeOr(text, "the cluster does not accept an object of it").text +
		"; a platform operator must act, and it is tried again"
}
