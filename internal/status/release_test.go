package status

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// helmCase is one state of the server's HelmRelease.
type helmCase struct {
	change func(*helmv2.HelmRelease)
	// want is said when the release was installed before, first when it never was.
	want, first outcome
}

func ready(status metav1.ConditionStatus, reason, message string) func(*helmv2.HelmRelease) {
	return func(hr *helmv2.HelmRelease) {
		set(&hr.Status.Conditions, condition(fluxmeta.ReadyCondition, status, reason, message, hr.Generation))
	}
}

// attempt is a failed install or upgrade as helm-controller reports it with RetryOnFailure.
func attempt(reason, message string) func(*helmv2.HelmRelease) {
	return func(hr *helmv2.HelmRelease) {
		set(&hr.Status.Conditions, condition(helmv2.ReleasedCondition, metav1.ConditionFalse, reason, message, hr.Generation))
		set(&hr.Status.Conditions, condition(fluxmeta.ReadyCondition, metav1.ConditionFalse, reason, message, hr.Generation))
		set(&hr.Status.Conditions, condition(fluxmeta.ReconcilingCondition, metav1.ConditionTrue, fluxmeta.ProgressingWithRetryReason, "retrying after 1m0s", hr.Generation))
		hr.Status.Failures++
	}
}

func both(one outcome) (want, first outcome) { return one, one }

func progressing(reason string, says ...string) outcome {
	return outcome{metav1.ConditionFalse, reason, v1alpha1.Progressing, says}
}

func failed(reason string, says ...string) outcome {
	return outcome{metav1.ConditionFalse, reason, v1alpha1.Failed, says}
}

func unseen(says ...string) outcome {
	return outcome{metav1.ConditionUnknown, v1alpha1.ReasonTargetUnreachable, v1alpha1.Unknown, says}
}

const wasUntouched = "what is installed (chart version 0.1.0) stays as it is"

// helmCases are the rows of the states that helm-controller reports.
func helmCases() map[string]helmCase {
	upgrade := func(reason string, message string, person bool, says string) helmCase {
		one := helmCase{change: attempt(reason, message), want: progressing(v1alpha1.ReasonUpgradeFailed, says), first: progressing(v1alpha1.ReasonInstallFailed, says)}
		if person {
			one.want.phase, one.first.phase = v1alpha1.Failed, v1alpha1.Failed
		}
		return one
	}
	same := func(change func(*helmv2.HelmRelease), one outcome) helmCase {
		want, first := both(one)
		return helmCase{change, want, first}
	}
	unreachable := func(reason, message, says string) helmCase {
		return helmCase{ready(metav1.ConditionFalse, reason, message), unseen(says), progressing(v1alpha1.ReasonTargetUnreachable, says, "cannot be installed")}
	}
	state := "Could not determine release state: failed to retrieve last release from storage: query: failed to query with labels: "
	compared := "Could not determine release state: unable to determine cluster state: Deployment/velero--1/velero dry-run failed "
	return map[string]helmCase{
		"DependencyNotReady":    {ready(metav1.ConditionFalse, helmv2.DependencyNotReadyReason, "dependency 'mcp--x/y' is not ready"), progressing(v1alpha1.ReasonInstalling), progressing(v1alpha1.ReasonInstalling)},
		"ChartRefAbsent":        {ready(metav1.ConditionFalse, helmv2.ArtifactFailedReason, "could not get Source object: ocirepositories \"x\" not found"), outcome{metav1.ConditionTrue, v1alpha1.ReasonInstalled, v1alpha1.Ready, nil}, progressing(v1alpha1.ReasonFetchingChart)},
		"ChartUnreadable":       {ready(metav1.ConditionFalse, helmv2.ArtifactFailedReason, "Could not load chart: gzip: invalid header"), progressing(v1alpha1.ReasonChartUnavailable, wasUntouched), progressing(v1alpha1.ReasonChartUnavailable)},
		"ValuesError":           {ready(metav1.ConditionFalse, valuesError, "could not find secret 'mcp--x/sp-velero-server-values'"), progressing(v1alpha1.ReasonUpgradeFailed), progressing(v1alpha1.ReasonInstallFailed)},
		"ChartMutateError":      same(ready(metav1.ConditionFalse, chartMutateError, "artifact revision 9.9.9 does not match chart version 0.1.0"), failed(v1alpha1.ReasonChartUnavailable)),
		"RESTClientError":       unreachable(restClientError, "secrets \"mcp-kubeconfig\" not found", "credentials"),
		"Blackhole":             unreachable(stateError, state+"Get \"https://10.0.0.1:6443/api\": dial tcp 10.0.0.1:6443: i/o timeout", "cannot be reached"),
		"UnknownCA":             unreachable(stateError, state+"x509: certificate signed by unknown authority", "cannot be reached"),
		"ExpiredToken":          unreachable(stateError, state+"Unauthorized", "refuses the credentials"),
		"ForbiddenSecrets":      unreachable(stateError, state+"secrets is forbidden: User \"x\" cannot list", "refuses the credentials"),
		"DriftDenied":           same(ready(metav1.ConditionFalse, stateError, compared+"(Invalid): deployments.apps \"velero\" is forbidden: ValidatingAdmissionPolicy 'x' with binding 'x' denied request: no"), failed(v1alpha1.ReasonUpgradeFailed, "cannot change it back", "admission rule")),
		"DriftForbidden":        same(ready(metav1.ConditionFalse, stateError, compared+"(Forbidden): deployments.apps \"velero\" is forbidden: User \"x\" cannot patch"), failed(v1alpha1.ReasonUpgradeFailed, "cannot change it back", "does not permit")),
		"DriftWebhook":          same(ready(metav1.ConditionFalse, stateError, compared+"(InternalError): failed calling webhook \"x\": EOF"), progressing(v1alpha1.ReasonUpgradeFailed, "cannot change it back", "webhook")),
		"DriftUnreachable":      unreachable(stateError, compared[:len(compared)-1]+": Patch \"https://10.0.0.1\": dial tcp: i/o timeout", "cannot be reached"),
		"FactoryError":          unreachable(factoryError, "no config", "cannot be reached"),
		"UpgradeUnreachable":    {attempt(helmv2.UpgradeFailedReason, "Helm upgrade failed: Kubernetes cluster unreachable: Get \"https://10.0.0.1\""), unseen("cannot be reached"), progressing(v1alpha1.ReasonTargetUnreachable)},
		"SchemaViolation":       upgrade(helmv2.UpgradeFailedReason, "values don't meet the specifications of the schema(s) in the following chart(s):\nvelero-server:\n- at '': bad", true, "does not accept the configured values"),
		"OwnershipConflict":     upgrade(helmv2.InstallFailedReason, "ServiceAccount \"velero\" in namespace \"velero--1\" exists and cannot be imported into the current release: invalid ownership metadata", true, "belongs to somebody else"),
		"OwnershipRefused":      upgrade(helmv2.InstallFailedReason, "execution error at (velero-control-plane/templates/placeholder.yaml:6:4): Deployment \"velero\" in namespace \"velero\" exists already and belongs to somebody else; remove it first", true, `Deployment "velero" already that belongs to somebody else`),
		"Forbidden":             upgrade(helmv2.UpgradeFailedReason, "deployments.apps is forbidden: User \"system:serviceaccount:x\" cannot create", true, "does not permit"),
		"PodSecurity":           upgrade(helmv2.UpgradeFailedReason, "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\"", true, "admission rule"),
		"Webhook":               upgrade(helmv2.UpgradeFailedReason, "Internal error occurred: failed calling webhook \"x\": Post \"https://x.svc\": x509: bad", false, "webhook"),
		"Quota":                 upgrade(helmv2.UpgradeFailedReason, "deployments is forbidden: exceeded quota: compute", true, "quota"),
		"Timeout":               upgrade(helmv2.InstallFailedReason, "Helm install failed: timeout waiting for: [Deployment/velero--1/velero status: 'InProgress']", false, "ready in time"),
		"StalledResources":      upgrade(helmv2.UpgradeFailedReason, "failed early due to stalled resources: [Deployment/velero--1/velero status: 'Failed']", false, "failed"),
		"NamespaceMissing":      upgrade(helmv2.InstallFailedReason, "create: failed to create: namespaces \"velero--1\" not found", false, "namespace is missing"),
		"NamespaceGoing":        upgrade(helmv2.InstallFailedReason, "forbidden: unable to create new content in namespace velero--1 because it is being terminated", false, "being removed"),
		"KindUnknown":           upgrade(helmv2.InstallFailedReason, "resource mapping not found: no matches for kind \"ServiceMonitor\" in version \"monitoring.coreos.com/v1\"", true, "kind"),
		"Render":                upgrade(helmv2.UpgradeFailedReason, "execution error at (velero-server/templates/x.yaml:3:4): image is required", true, "rendered"),
		"Invalid":               upgrade(helmv2.UpgradeFailedReason, "Deployment.apps \"velero\" is invalid: spec.selector: field is immutable", true, "invalid"),
		"Hook":                  upgrade(helmv2.UpgradeFailedReason, "pre-upgrade hooks failed: job failed", false, "job"),
		"Unexplained":           upgrade(helmv2.UpgradeFailedReason, "kaboom at 10.0.0.7", false, "HelmRelease"),
		"Rollback":              upgrade(helmv2.RollbackSucceededReason, "Helm rollback to previous release succeeded", false, "again"),
		"ReconcileError":        {ready(metav1.ConditionFalse, "ReconcileError", "kaboom"), progressing(v1alpha1.ReasonUpgradeFailed), progressing(v1alpha1.ReasonInstallFailed)},
		"NewRevisionWhileWaits": same(ready(metav1.ConditionFalse, fluxmeta.HealthCheckCanceledReason, "New reconciliation triggered by OCIRepository/x/y"), progressing(v1alpha1.ReasonInstalling)),
		"RetriesExceeded": same(func(hr *helmv2.HelmRelease) {
			attempt(helmv2.UpgradeFailedReason, "timeout waiting for: [Deployment/x]")(hr)
			set(&hr.Status.Conditions, condition(fluxmeta.StalledCondition, metav1.ConditionTrue, "RetriesExceeded", "Failed to upgrade after 1 attempt(s)", hr.Generation))
		}, failed(v1alpha1.ReasonStalled, "gave up", "ready in time")),
		"CrossNamespaceDenied": same(func(hr *helmv2.HelmRelease) {
			ready(metav1.ConditionFalse, "AccessDenied", "can't access 'OCIRepository/x/y', cross-namespace references have been disabled")(hr)
			set(&hr.Status.Conditions, condition(fluxmeta.StalledCondition, metav1.ConditionTrue, "AccessDenied", "can't access", hr.Generation))
		}, failed(v1alpha1.ReasonStalled)),
		"Suspended":    same(func(hr *helmv2.HelmRelease) { hr.Spec.Suspend = true }, failed(v1alpha1.ReasonSuspended)),
		"BeingDeleted": same(func(hr *helmv2.HelmRelease) { hr.DeletionTimestamp = &later }, progressing(v1alpha1.ReasonInstalling, "installed again")),
		"Unlocked": {func(hr *helmv2.HelmRelease) {
			set(&hr.Status.Conditions, condition(helmv2.ReleasedCondition, metav1.ConditionFalse, pendingRelease, "Unlocked Helm release", hr.Generation))
			ready(metav1.ConditionUnknown, fluxmeta.ProgressingReason, "Running 'upgrade' action with timeout of 5m0s")(hr)
		}, progressing(v1alpha1.ReasonInstalling), progressing(v1alpha1.ReasonInstalling)},
		"NeverSeen": same(func(hr *helmv2.HelmRelease) { hr.Status.Conditions, hr.Status.ObservedGeneration = nil, -1 }, progressing(v1alpha1.ReasonInstalling)),
		"Upgrading": same(func(hr *helmv2.HelmRelease) {
			hr.Generation++
			ready(metav1.ConditionUnknown, fluxmeta.ProgressingReason, "Running 'upgrade' action with timeout of 5m0s")(hr)
		}, progressing(v1alpha1.ReasonInstalling)),
		"StalledBeforeTheLastChange": same(func(hr *helmv2.HelmRelease) {
			set(&hr.Status.Conditions, condition(fluxmeta.StalledCondition, metav1.ConditionTrue, "RetriesExceeded", "Failed", hr.Generation))
			hr.Generation++
		}, progressing(v1alpha1.ReasonInstalling)),
		"FailedBeforeTheLastChange": same(func(hr *helmv2.HelmRelease) {
			attempt(helmv2.UpgradeFailedReason, "timeout waiting for: x")(hr)
			hr.Generation++
		}, progressing(v1alpha1.ReasonInstalling)),
		"UnreachableBeforeTheLastChange": {func(hr *helmv2.HelmRelease) {
			ready(metav1.ConditionFalse, stateError, state+"dial tcp: no route to host")(hr)
			hr.Generation++
		}, unseen("cannot be reached"), progressing(v1alpha1.ReasonTargetUnreachable)},
		"UnreachableSinceTheLastChange": {func(hr *helmv2.HelmRelease) {
			hr.Generation++ // helm-controller does not advance the status after such a failure.
			ready(metav1.ConditionFalse, stateError, state+"dial tcp: no route to host")(hr)
		}, unseen("cannot be reached"), progressing(v1alpha1.ReasonTargetUnreachable)},
	}
}

func TestHelmReleaseStates(t *testing.T) {
	for name, test := range helmCases() {
		t.Run(name, func(t *testing.T) {
			velero, observed := stored(t)
			test.change(observed.Server.HelmRelease)
			test.want.check(t, Compute(velero, observed, later), v1alpha1.ConditionServerInstalled)
		})
		t.Run(name+"OfTheFirstInstall", func(t *testing.T) {
			velero, observed := healthy(t)
			hr := observed.Server.HelmRelease
			hr.Status.History, hr.Status.Conditions = nil, nil
			test.change(hr)
			test.first.check(t, Compute(velero, observed, later), v1alpha1.ConditionServerInstalled)
		})
	}
}
