package status

import (
	"slices"
	"testing"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// fetchCase is one state of the OCIRepository of a chart that was not fetched yet.
type fetchCase struct {
	conditions []metav1.Condition
	want       outcome
}

func fetchFailed(reason, message string) []metav1.Condition {
	return []metav1.Condition{
		condition(sourcev1.FetchFailedCondition, metav1.ConditionTrue, reason, message, 1),
		condition(fluxmeta.ReconcilingCondition, metav1.ConditionTrue, fluxmeta.ProgressingWithRetryReason, message, 1),
		condition(fluxmeta.ReadyCondition, metav1.ConditionFalse, reason, message, 1),
	}
}

const pullFailed = "failed to determine artifact digest: GET https://registry.internal/v2/charts/velero-server/manifests/0.2.0: "

// fetchCases are the rows of the states that source-controller reports.
var fetchCases = map[string]fetchCase{
	"PullSecretMissing":    {fetchFailed(sourcev1.AuthenticationFailedReason, "failed to get credential: failed to get secret 'mcp--x/sp-velero-chart-pull'"), failed(v1alpha1.ReasonChartAccessDenied)},
	"CertSecretBad":        {fetchFailed(sourcev1.AuthenticationFailedReason, "failed to generate transport for 'oci://registry.internal/charts': secret must contain 'ca.crt'"), failed(v1alpha1.ReasonChartUntrusted, "CA bundle")},
	"ProxySecretBad":       {fetchFailed(sourcev1.AuthenticationFailedReason, "failed to get proxy address: no key address"), failed(v1alpha1.ReasonChartUnavailable, "proxy")},
	"Unauthorized":         {fetchFailed(sourcev1.OCIPullFailedReason, pullFailed+"UNAUTHORIZED: authentication required; [map[Type:repository]]"), failed(v1alpha1.ReasonChartAccessDenied)},
	"Denied":               {fetchFailed(sourcev1.OCIPullFailedReason, pullFailed+"DENIED: requested access to the resource is denied"), failed(v1alpha1.ReasonChartAccessDenied)},
	"PlainStatusCode":      {fetchFailed(sourcev1.OCIPullFailedReason, pullFailed+"unexpected status code 403 Forbidden"), failed(v1alpha1.ReasonChartAccessDenied)},
	"UnknownCA":            {fetchFailed(sourcev1.OCIPullFailedReason, "failed to determine artifact digest: tls: failed to verify certificate: x509: certificate signed by unknown authority"), failed(v1alpha1.ReasonChartUntrusted, "certificate")},
	"NoTLS":                {fetchFailed(sourcev1.OCIPullFailedReason, "failed to determine artifact digest: http: server gave HTTP response to HTTPS client"), failed(v1alpha1.ReasonChartUnavailable, "TLS")},
	"NoSuchHost":           {fetchFailed(sourcev1.OCIPullFailedReason, "failed to determine artifact digest: dial tcp: lookup registry.internal: no such host"), progressing(v1alpha1.ReasonChartUnavailable, "cannot be reached")},
	"TagMissing":           {fetchFailed(sourcev1.OCIPullFailedReason, pullFailed+"MANIFEST_UNKNOWN: manifest unknown; map[Tag:0.2.0]"), failed(v1alpha1.ReasonChartNotFound, "velero-server 0.2.0")},
	"RepositoryMissing":    {fetchFailed(sourcev1.OCIPullFailedReason, pullFailed+"NAME_UNKNOWN: repository name not known to registry"), failed(v1alpha1.ReasonChartNotFound)},
	"DigestMissing":        {fetchFailed(sourcev1.OCIPullFailedReason, "failed to pull artifact from 'oci://registry.internal/charts': GET https://x: MANIFEST_UNKNOWN"), failed(v1alpha1.ReasonChartNotFound)},
	"NoMatch":              {fetchFailed(sourcev1.ReadOperationFailedReason, "failed to determine the artifact tag for 'oci://x': no match found for semver"), failed(v1alpha1.ReasonChartNotFound)},
	"NotAChart":            {fetchFailed(sourcev1.OCILayerOperationFailedReason, "failed to find layer with media type 'application/vnd.cncf.helm.chart.content.v1.tar+gzip' in artifact"), failed(v1alpha1.ReasonChartUnavailable, "not a Helm chart")},
	"Unexplained":          {fetchFailed(sourcev1.OCIPullFailedReason, "kaboom"), progressing(v1alpha1.ReasonChartUnavailable, "velero-server 0.2.0")},
	"Signature":            {[]metav1.Condition{condition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse, sourcev1.VerificationError, "failed to verify the signature using provider 'cosign': no matching signatures", 1)}, failed(v1alpha1.ReasonChartUntrusted, "signature")},
	"SignatureAfterOutage": {append(fetchFailed(sourcev1.OCIPullFailedReason, "dial tcp: no route"), condition(sourcev1.SourceVerifiedCondition, metav1.ConditionFalse, sourcev1.VerificationError, "no matching signatures", 1)), failed(v1alpha1.ReasonChartUntrusted)},
	"BadURL":               {append(fetchFailed(sourcev1.URLInvalidReason, "URL validation failed for 'oci://x'"), condition(fluxmeta.StalledCondition, metav1.ConditionTrue, sourcev1.URLInvalidReason, "URL validation failed", 1)), failed(v1alpha1.ReasonChartUnavailable, "settings")},
	"Disk":                 {[]metav1.Condition{condition(sourcev1.StorageOperationFailedCondition, metav1.ConditionTrue, sourcev1.DirCreationFailedReason, "no space left on device", 1)}, progressing(v1alpha1.ReasonChartUnavailable, "store")},
	"Fetching":             {[]metav1.Condition{condition(fluxmeta.ReadyCondition, metav1.ConditionUnknown, fluxmeta.ProgressingReason, "building artifact: new revision", 1)}, progressing(v1alpha1.ReasonFetchingChart)},
	"NotSeen":              {nil, progressing(v1alpha1.ReasonFetchingChart)},
}

func unfetched(conditions []metav1.Condition) sourcev1.OCIRepositoryStatus {
	return sourcev1.OCIRepositoryStatus{ObservedGeneration: -1, Conditions: conditions}
}

// TestChartOfAnUpgradeCannotBeFetched: the running release is not told to change, and the condition says so.
func TestChartOfAnUpgradeCannotBeFetched(t *testing.T) {
	for name, test := range fetchCases {
		t.Run(name, func(t *testing.T) {
			velero, observed := stored(t)
			next := fixture(t, "velero-server", "0.2.0")
			observed.Server.Wanted, observed.Server.Source = next.Wanted, next.Source
			observed.Server.Source.Status = unfetched(test.conditions)
			test.want.says = append(test.want.says, wasUntouched)
			test.want.check(t, Compute(velero, observed, later), v1alpha1.ConditionServerInstalled)
		})
	}
}

func TestChartOfTheFirstInstallCannotBeFetched(t *testing.T) {
	for name, test := range fetchCases {
		t.Run(name, func(t *testing.T) {
			velero, observed := healthy(t)
			observed.Server = fixture(t, "velero-server", "0.2.0")
			observed.Server.HelmRelease, observed.Server.Source.Status = nil, unfetched(test.conditions)
			got := Compute(velero, observed, later)
			test.want.check(t, got, v1alpha1.ConditionServerInstalled)
			test.want.check(t, got, v1alpha1.ConditionReady)
		})
	}
}

// TestRegistryFailsAfterwards: what Flux has fetched, it has; only the entry of the OCIRepository tells.
func TestRegistryFailsAfterwards(t *testing.T) {
	for name, test := range fetchCases {
		t.Run(name, func(t *testing.T) {
			velero, observed := stored(t)
			observed.Server.Source.Status.Conditions = test.conditions
			got := Compute(velero, observed, later)
			outcome{metav1.ConditionTrue, v1alpha1.ReasonInstalled, v1alpha1.Ready, nil}.check(t, got, v1alpha1.ConditionServerInstalled)
			entry := got.Resources[3]
			if failing := failingCondition(observed.Server.Source) != nil; failing != (entry.Phase != v1alpha1.Ready) || failing != (entry.Message != "") {
				t.Errorf("the OCIRepository is listed as %s: %q", entry.Phase, entry.Message)
			}
		})
	}
}

// TestChartIsFetchedAnew: after a restart without its storage, source-controller fetches all charts again. That changes nothing for users,
// unless it fails.
func TestChartIsFetchedAnew(t *testing.T) {
	tests := map[string]struct {
		conditions []metav1.Condition
		want       outcome
	}{
		"Fetching": {fetchCases["Fetching"].conditions, outcome{metav1.ConditionTrue, v1alpha1.ReasonInstalled, v1alpha1.Ready, nil}},
		"Fails":    {fetchCases["TagMissing"].conditions, failed(v1alpha1.ReasonChartNotFound, wasUntouched)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			velero, observed := stored(t)
			observed.Server.Source.Status = unfetched(test.conditions)
			ready(metav1.ConditionFalse, sourceNotReady, "OCIRepository 'mcp--x/y' is not ready")(observed.Server.HelmRelease)
			test.want.check(t, Compute(velero, observed, later), v1alpha1.ConditionServerInstalled)
		})
	}
}

// TestSourceNotReadyAfterTheSwitch: helm-controller may see a new chartRef before its own view of the source has the artifact.
func TestSourceNotReadyAfterTheSwitch(t *testing.T) {
	velero, observed := stored(t)
	next := fixture(t, "velero-server", "0.2.0")
	next.HelmRelease.Generation, next.HelmRelease.Status = 4, observed.Server.HelmRelease.Status
	observed.Server = next
	ready(metav1.ConditionFalse, sourceNotReady, "OCIRepository 'mcp--x/y' is not ready")(observed.Server.HelmRelease)
	progressing(v1alpha1.ReasonFetchingChart, wasUntouched).check(t, Compute(velero, observed, later), v1alpha1.ConditionServerInstalled)
}

// TestSuspendedSource is reported like a suspended HelmRelease, whether the chart is needed now or only for the next change.
func TestSuspendedSource(t *testing.T) {
	tests := map[string]func(*Release){
		"FirstInstall":        func(r *Release) { r.HelmRelease, r.Source.Status = nil, unfetched(nil) },
		"FirstInstallFetched": func(r *Release) { r.HelmRelease = nil },
		"Upgrade": func(r *Release) {
			r.HelmRelease.Spec.ChartRef.Name = "velero-server-old"
			r.Source.Status = unfetched(nil)
		},
		"Running":                func(*Release) {},
		"RunningWithoutArtifact": func(r *Release) { r.Source.Status = unfetched(nil) },
		"FailedBefore":           func(r *Release) { r.Source.Status = unfetched(fetchCases["TagMissing"].conditions) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			velero, observed := stored(t)
			change(&observed.Server)
			observed.Server.Source.Spec.Suspend = true
			got := Compute(velero, observed, later)
			failed(v1alpha1.ReasonSuspended, "the source of chart velero-server 0.1.0").check(t, got, v1alpha1.ConditionServerInstalled)
			if Installed(observed.Server) {
				t.Error("it counts as installed")
			}
			index := slices.IndexFunc(got.Resources, func(resource v1alpha1.ManagedResource) bool { return resource.Name == observed.Server.Source.Name })
			if entry := got.Resources[index]; entry.Phase != v1alpha1.Failed || entry.Message == "" {
				t.Errorf("the OCIRepository is listed as %s: %q", entry.Phase, entry.Message)
			}
		})
	}
}

// TestSuspendedSourceOfWhatIsNotWanted says nothing: while the configuration is not valid no chart is needed.
func TestSuspendedSourceOfWhatIsNotWanted(t *testing.T) {
	velero, observed := stored(t)
	observed.Server.Wanted = nil
	observed.Server.Source.Spec.Suspend = true
	outcome{metav1.ConditionTrue, v1alpha1.ReasonInstalled, v1alpha1.Ready, nil}.check(t, Compute(velero, observed, later), v1alpha1.ConditionServerInstalled)
}
