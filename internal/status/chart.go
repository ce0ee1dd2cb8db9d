package status

import (
	"regexp"
	"strings"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/fluxgen"
)

// Fetched says whether Flux has the chart. A registry that fails afterwards takes nothing away.
func Fetched(source *sourcev1.OCIRepository) bool {
	return source != nil && source.Status.Artifact != nil && source.Status.ObservedGeneration == source.Generation
}

// suspended says whether Flux is told to leave the source alone. A chart that it has is not taken away, but the next one will not come.
func suspended(source *sourcev1.OCIRepository) bool { return source != nil && source.Spec.Suspend }

// sourceVerdict is the verdict on the OCIRepository of the chart.
func sourceVerdict(chart fluxgen.Chart, source *sourcev1.OCIRepository) verdict {
	if failure := fetchFailure(chart, source); failure != nil {
		return *failure
	}
	if Fetched(source) {
		return good(v1alpha1.ReasonReady, "")
	}
	return waiting(v1alpha1.ReasonFetchingChart, "waiting for "+chartName(chart)+" from the chart registry")
}

// fetchFailure says why Flux cannot fetch the chart, or nil. It goes by the conditions that last until the cause is gone: Ready turns
// Unknown whenever source-controller tries again.
func fetchFailure(chart fluxgen.Chart, source *sourcev1.OCIRepository) *verdict {
	if suspended(source) {
		held := stuck(v1alpha1.ReasonSuspended, "a platform operator suspended the source of "+chartName(chart)+"; it is not fetched until the source is resumed")
		return &held
	}
	failing := failingCondition(source)
	if failing == nil {
		return nil
	}
	for _, known := range fetchFailures {
		if known.matches(failing) {
			failure := known.verdict
			failure.message = strings.ReplaceAll(failure.message, "CHART", chartName(chart))
			return &failure
		}
	}
	failure := waiting(v1alpha1.ReasonChartUnavailable, chartName(chart)+" cannot be fetched from the chart registry; it is tried again")
	return &failure
}

func failingCondition(source *sourcev1.OCIRepository) *metav1.Condition {
	if source == nil {
		return nil
	}
	for _, failing := range []metav1.Condition{
		{Type: fluxmeta.StalledCondition, Status: metav1.ConditionTrue},
		// Removed at each new attempt, so it is never older than FetchFailed, which is not.
		{Type: sourcev1.SourceVerifiedCondition, Status: metav1.ConditionFalse},
		{Type: sourcev1.FetchFailedCondition, Status: metav1.ConditionTrue},
		{Type: sourcev1.StorageOperationFailedCondition, Status: metav1.ConditionTrue},
	} {
		if found := apimeta.FindStatusCondition(source.Status.Conditions, failing.Type); found != nil && found.Status == failing.Status {
			return found
		}
	}
	return nil
}

// fetchKind is one way in which a chart cannot be fetched: of that type, if given, and with such a text, if given.
type fetchKind struct {
	conditionType string
	pattern       *regexp.Regexp
	verdict
}

func (k fetchKind) matches(condition *metav1.Condition) bool {
	return (k.conditionType == "" || k.conditionType == condition.Type) && (k.pattern == nil || k.pattern.MatchString(condition.Message))
}

// fetchFailures are recognised by what source-controller and registries write; the first that matches counts.
var fetchFailures = []fetchKind{
	{fluxmeta.StalledCondition, nil, stuck(v1alpha1.ReasonChartUnavailable, "Flux cannot fetch CHART with the configured settings")},
	{sourcev1.SourceVerifiedCondition, nil, stuck(v1alpha1.ReasonChartUntrusted, "the signature of CHART cannot be verified")},
	{sourcev1.StorageOperationFailedCondition, nil, waiting(v1alpha1.ReasonChartUnavailable, "Flux cannot store CHART; it is tried again")},
	{"", regexp.MustCompile(`failed to get credential`), stuck(v1alpha1.ReasonChartAccessDenied, "the credentials for the chart registry, which has CHART, cannot be used")},
	{"", regexp.MustCompile(`failed to generate transport`), stuck(v1alpha1.ReasonChartUntrusted, "the CA bundle for the chart registry, which has CHART, cannot be used")},
	{"", regexp.MustCompile(`failed to get proxy address`), stuck(v1alpha1.ReasonChartUnavailable, "the proxy settings for the chart registry, which has CHART, cannot be used")},
	{"", regexp.MustCompile(`x509: |tls: `), stuck(v1alpha1.ReasonChartUntrusted, "the certificate of the chart registry, which has CHART, is not trusted")},
	{"", regexp.MustCompile(`\b(MANIFEST_UNKNOWN|NAME_UNKNOWN|NOT_FOUND)\b|manifest unknown|404 Not Found|no match found`), stuck(v1alpha1.ReasonChartNotFound, "the chart registry does not have CHART")},
	{"", regexp.MustCompile(`\b(UNAUTHORIZED|DENIED)\b|401 Unauthorized|403 Forbidden`), stuck(v1alpha1.ReasonChartAccessDenied, "the chart registry denies access to CHART")},
	{"", regexp.MustCompile(`with media type|cannot parse hash|artifact layers|parse artifact manifest`), stuck(v1alpha1.ReasonChartUnavailable, "what the chart registry has as CHART is not a Helm chart")},
	{"", regexp.MustCompile(`server gave HTTP response to HTTPS client`), stuck(v1alpha1.ReasonChartUnavailable, "the chart registry, which has CHART, does not use TLS")},
	{"", regexp.MustCompile(`dial |no such host|connection refused|timeout|deadline exceeded|EOF|connection reset`), waiting(v1alpha1.ReasonChartUnavailable, "the chart registry, which has CHART, cannot be reached; it is tried again")},
}

func chartName(chart fluxgen.Chart) string {
	if chart.Digest != "" {
		return "chart " + chart.Name + " " + chart.Version + " with the wanted digest"
	}
	return "chart " + chart.Name + " " + chart.Version
}

// revisionDigest is the digest of what Flux fetched, from TAG@DIGEST or DIGEST; empty if it is not known.
func revisionDigest(source *sourcev1.OCIRepository) string {
	if source == nil || source.Status.Artifact == nil {
		return ""
	}
	revision := source.Status.Artifact.Revision
	return revision[strings.LastIndex(revision, "@")+1:]
}
