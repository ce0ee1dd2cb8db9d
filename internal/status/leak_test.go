package status

import (
	"encoding/json"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// nasty are the texts that Flux writes into its objects, with everything that is none of a tenant's business.
var nasty = []string{
	`Could not determine release state: failed to retrieve last release from storage: query: failed to query with labels: Get "https://api.mcp-7f3a.internal.example:6443/api/v1/namespaces/velero/secrets?labelSelector=name%3Dvelero": dial tcp 10.96.17.4:6443: i/o timeout`,
	`query: failed to query with labels: secrets is forbidden: User "system:serviceaccount:mcp--0f9e8d7c:velero-flux" cannot list resource "secrets" in API group "" in the namespace "velero--0f9e8d7c"`,
	`failed to get credential: failed to get secret 'mcp--0f9e8d7c/sp-velero-chart-pull': secrets "sp-velero-chart-pull" not found`,
	`failed to determine artifact digest: GET https://robot%24ci:hunter2-secret@registry.corp.internal/v2/charts/velero-server/manifests/0.1.0: UNAUTHORIZED: authentication required; [map[Token:eyJhbGciOiJSUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiJ4In0]]`,
	`failed to generate transport for 'oci://registry.corp.internal/charts/velero-server': secret 'mcp--0f9e8d7c/sp-velero-chart-ca' must contain 'ca.crt'`,
	`failed to determine artifact digest: Get "https://registry.corp.internal/v2/": tls: failed to verify certificate: x509: certificate is valid for registry-backend.kube-system.svc, not registry.corp.internal`,
	`Helm upgrade failed for release velero--0f9e8d7c/velero-server with chart velero-server@0.1.0+abc: timeout waiting for: [Deployment/velero--0f9e8d7c/velero status: 'InProgress']

Last Helm logs:

time=2026-01-01 level=DEBUG msg="waiting" token=hunter2-secret`,
	`Helm install failed: ServiceAccount "velero" in namespace "velero--0f9e8d7c" exists and cannot be imported into the current release: invalid ownership metadata; annotation validation error: key "meta.helm.sh/release-name" must equal "velero-server": current value is "other-tenant"`,
	`Helm install failed: values don't meet the specifications of the schema(s) in the following chart(s): velero-server: - at '/token': got string hunter2-secret, want null`,
	`Helm upgrade failed: execution error at (velero-server/templates/secret.yaml:3:4): kubeconfig hunter2-secret is not usable`,
	`artifact revision 9.9.9@sha256:deadbeef does not match chart version 0.1.0`,
	"kaboom hunter2-secret " + strings.Repeat("https://10.0.0.1:6443/", 200),
	"\xff\xfe hunter2-secret \x00",
	"",
}

// secrets are what must not be anywhere in a status.
var secrets = []string{
	"hunter2", "eyJ", "://", ".internal", ".svc", "10.96", "10.0.0", "mcp--", "velero--", "system:serviceaccount", "sp-velero-", "other-tenant", "6443", "meta.helm.sh", "Last Helm logs",
}

var helmReasons = []string{
	helmv2.InstallFailedReason, helmv2.UpgradeFailedReason, helmv2.RollbackFailedReason, helmv2.UninstallFailedReason, helmv2.ArtifactFailedReason,
	helmv2.DependencyNotReadyReason, sourceNotReady, stateError, restClientError, resourceManagerError, factoryError, valuesError, chartMutateError,
	pendingRelease, fluxmeta.HealthCheckCanceledReason, fluxmeta.ProgressingReason, "AccessDenied", "InvalidCELExpression", "ReconcileError", "hunter2",
}

func TestFluxTextsAreNotPassedOn(t *testing.T) {
	for _, message := range nasty {
		for _, reason := range helmReasons {
			for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
				velero, observed := stored(t)
				defile(&observed, status, reason, message)
				got := Compute(velero, observed, later)
				refuse(t, got, Transitions(velero.Status.Conditions, got.Conditions), message)
				observed.Server.Source.Status.Artifact = nil
				got = Compute(velero, observed, later)
				refuse(t, got, Transitions(velero.Status.Conditions, got.Conditions), message)
			}
		}
	}
}

// defile writes one text everywhere into Flux's objects.
func defile(observed *Observation, status metav1.ConditionStatus, reason, message string) {
	for _, release := range []Release{observed.ControlPlane, observed.Server} {
		for _, conditionType := range []string{fluxmeta.ReadyCondition, helmv2.ReleasedCondition, fluxmeta.ReconcilingCondition, helmv2.DriftedCondition} {
			set(&release.HelmRelease.Status.Conditions, condition(conditionType, status, reason, message, 3))
		}
		for _, conditionType := range []string{fluxmeta.ReadyCondition, sourcev1.FetchFailedCondition} {
			set(&release.Source.Status.Conditions, condition(conditionType, status, reason, message, 1))
		}
		release.HelmRelease.Status.History[0].ChartVersion = message
	}
}

func refuse(t *testing.T, got v1alpha1.VeleroStatus, events []Event, message string) {
	t.Helper()
	all, err := json.Marshal([]any{got, events})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets {
		if strings.Contains(string(all), secret) {
			t.Errorf("%q is in the status after %q:\n%s", secret, message, all)
		}
	}
	for _, condition := range got.Conditions {
		if len(condition.Message) > 256 || condition.Reason == "" || condition.Message == "" {
			t.Errorf("%s has reason %q and message %q", condition.Type, condition.Reason, condition.Message)
		}
	}
}

// TestRefusalsAreNotPassedOn: what the platform's API server writes names objects and rules of the platform.
func TestRefusalsAreNotPassedOn(t *testing.T) {
	for text, want := range map[string]string{
		`create Secret "sp-velero-x": secrets "sp-velero-x" is forbidden: exceeded quota: hunter2, requested: count/secrets=1`:                    "quota",
		`create HelmRelease "velero-server": admission webhook "hunter2.internal" denied the request: no`:                                         "admission rule",
		`helmreleases "velero-server" is forbidden: ValidatingAdmissionPolicy 'hunter2' with binding 'hunter2' denied request: no`:                "admission rule",
		`accessrequests is forbidden: User "system:serviceaccount:openmcp-system:velero" cannot create resource in the namespace "mcp--0f9e8d7c"`: "does not permit",
		`HelmRelease.helm.toolkit.fluxcd.io "velero-server" is invalid: spec.x: Invalid value: "hunter2"`:                                         "invalid",
		"kaboom hunter2": "does not accept",
	} {
		got := Refusal(text)
		if !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q in it", text, got, want)
		}
		for _, secret := range secrets {
			if strings.Contains(got, secret) {
				t.Errorf("%q is passed on: %q", text, got)
			}
		}
	}
}
