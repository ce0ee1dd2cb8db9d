package status

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// step is one write of Flux to the server's objects. Each step goes on from the one before.
type step struct {
	name   string
	change func(*Release)
}

func helmStep(name string, changes ...func(*helmv2.HelmRelease)) step {
	return step{name, func(release *Release) {
		for _, change := range changes {
			change(release.HelmRelease)
		}
	}}
}

func reconciling(reason, message string) func(*helmv2.HelmRelease) {
	return func(hr *helmv2.HelmRelease) {
		set(&hr.Status.Conditions, condition(fluxmeta.ReconcilingCondition, metav1.ConditionTrue, reason, message, hr.Generation))
	}
}

func notReconciling(hr *helmv2.HelmRelease) {
	apimeta.RemoveStatusCondition(&hr.Status.Conditions, fluxmeta.ReconcilingCondition)
}

func drifted(status metav1.ConditionStatus, reason string) func(*helmv2.HelmRelease) {
	return func(hr *helmv2.HelmRelease) {
		set(&hr.Status.Conditions, condition(helmv2.DriftedCondition, status, reason, "Cluster state of release velero--1/velero-server.v1 has drifted", hr.Generation))
	}
}

func inSync(hr *helmv2.HelmRelease) {
	ready(metav1.ConditionTrue, helmv2.InstallSucceededReason, "Helm install succeeded")(hr)
	notReconciling(hr)
}

var fulfilling = reconciling(fluxmeta.ProgressingReason, "Fulfilling prerequisites")

// idle are sequences in which nothing happens that concerns a user.
var idle = map[string][]step{
	"IntervalTick": {
		helmStep("begins", fulfilling),
		helmStep("ends", inSync),
		helmStep("begins again", fulfilling),
		helmStep("ends again", inSync),
	},
	"DriftCorrected": {
		helmStep("begins", fulfilling),
		helmStep("sees drift", drifted(metav1.ConditionTrue, helmv2.DriftDetectedReason), reconciling(fluxmeta.ProgressingReason, "Running 'correct cluster drift' action with timeout of 5m0s")),
		helmStep("has corrected", ready(metav1.ConditionUnknown, fluxmeta.ProgressingReason, "correcting cluster drift")),
		helmStep("ends", drifted(metav1.ConditionFalse, helmv2.NoDriftDetectedReason), inSync),
	},
	"CredentialsRotated": {
		helmStep("begins", fulfilling),
		helmStep("upgrades", reconciling(fluxmeta.ProgressingReason, "Running 'upgrade' action with timeout of 5m0s"), ready(metav1.ConditionUnknown, fluxmeta.ProgressingReason, "Running 'upgrade' action"),
			func(hr *helmv2.HelmRelease) { hr.Status.LastAttemptedConfigDigest = "sha256:rotated" }),
		helmStep("ends", func(hr *helmv2.HelmRelease) {
			next := snapshot(2, "velero-server", "0.1.0", "deployed")
			next.ConfigDigest = "sha256:rotated"
			hr.Status.History[0].Status = "superseded"
			hr.Status.History = append(helmv2.Snapshots{next}, hr.Status.History...)
		}, ready(metav1.ConditionTrue, helmv2.UpgradeSucceededReason, "Helm upgrade succeeded"), notReconciling),
	},
	"FluxRestartsWithoutItsStorage": {
		{"storage is empty", func(r *Release) {
			r.Source.Status.Artifact = nil
			set(&r.Source.Status.Conditions, condition(fluxmeta.ReadyCondition, metav1.ConditionUnknown, fluxmeta.ProgressingReason, "building artifact: disappeared from storage", 1))
		}},
		helmStep("no source", fulfilling, ready(metav1.ConditionFalse, sourceNotReady, "OCIRepository 'mcp--x/velero-server-1' is not ready")),
		{"fetched", func(r *Release) { r.Source.Status = sourceStatus("0.1.0") }},
		helmStep("begins", fulfilling, ready(metav1.ConditionUnknown, fluxmeta.ProgressingReason, "reconciliation in progress")),
		helmStep("ends", inSync),
	},
	"RegistryDownForAWhile": {
		{"fails", func(r *Release) {
			for _, one := range fetchFailed(sourcev1.OCIPullFailedReason, "dial tcp: connection refused") {
				set(&r.Source.Status.Conditions, one)
			}
		}},
		helmStep("tick", fulfilling), helmStep("tick ends", inSync),
	},
}

// TestNothingFlaps: what Flux writes while nothing happens leaves conditions and phase as they were to the last byte, and so does a restart
// of the operator at any time.
func TestNothingFlaps(t *testing.T) {
	for name, steps := range idle {
		t.Run(name, func(t *testing.T) {
			velero, observed := stored(t)
			want := velero.Status.DeepCopy()
			for _, step := range steps {
				step.change(&observed.Server)
				got := Compute(velero, observed, later)
				if name == "RegistryDownForAWhile" || name == "FluxRestartsWithoutItsStorage" {
					got.Resources = want.Resources // They do tell about the registry.
				}
				if diff := cmp.Diff(*want, got); diff != "" || Changed(*want, got) {
					t.Errorf("%s: %s", step.name, diff)
				}
				velero.Status = got
			}
		})
	}
}

// TestRetriesDoNotFlap: while Flux tries again what failed, it has still failed.
func TestRetriesDoNotFlap(t *testing.T) {
	velero, observed := stored(t)
	hr := observed.Server.HelmRelease
	hr.Generation++
	hr.Status.History = append(helmv2.Snapshots{snapshot(2, "velero-server", "0.1.0", "failed")}, hr.Status.History...)
	attempt(helmv2.UpgradeFailedReason, "timeout waiting for: [Deployment/velero--1/velero status: 'InProgress']")(hr)
	hr.Status.ObservedGeneration = hr.Generation
	velero.Status = Compute(velero, observed, later)
	progressing(v1alpha1.ReasonUpgradeFailed, "ready in time").check(t, velero.Status, v1alpha1.ConditionServerInstalled)
	for _, step := range []step{
		helmStep("begins", fulfilling),
		helmStep("tries again", reconciling(fluxmeta.ProgressingReason, "Running 'upgrade' action"), ready(metav1.ConditionUnknown, fluxmeta.ProgressingReason, "Running 'upgrade' action")),
		helmStep("fails again", attempt(helmv2.UpgradeFailedReason, "timeout waiting for: [Deployment/velero--1/velero status: 'InProgress']")),
	} {
		step.change(&observed.Server)
		if diff := cmp.Diff(velero.Status, Compute(velero, observed, metav1.NewTime(later.Add(1)))); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
}

// TestFetchRetriesDoNotFlap: source-controller sets Ready to Unknown in the middle of each new attempt.
func TestFetchRetriesDoNotFlap(t *testing.T) {
	velero, observed := healthy(t)
	observed.Server = fixture(t, "velero-server", "0.2.0")
	observed.Server.HelmRelease, observed.Server.Source.Status = nil, unfetched(fetchFailed(sourcev1.OCIPullFailedReason, "x: MANIFEST_UNKNOWN"))
	velero.Status = Compute(velero, observed, earlier)
	set(&observed.Server.Source.Status.Conditions, condition(fluxmeta.ReadyCondition, metav1.ConditionUnknown, fluxmeta.ProgressingReason, "building artifact", 1))
	if diff := cmp.Diff(velero.Status, Compute(velero, observed, later)); diff != "" {
		t.Error(diff)
	}
}

// TestDriftThatCannotBeCorrected: Flux says so only by waiting for the next attempt, and in between it looks like a correction that goes on.
func TestDriftThatCannotBeCorrected(t *testing.T) {
	velero, observed := stored(t)
	want := failed(v1alpha1.ReasonUpgradeFailed, "cannot change it back")
	drift := drifted(metav1.ConditionTrue, helmv2.DriftDetectedReason)
	correcting := ready(metav1.ConditionUnknown, fluxmeta.ProgressingReason, "correcting cluster drift")
	waits := reconciling(fluxmeta.ProgressingWithRetryReason, "retrying after 1m0s")
	for _, step := range []step{
		helmStep("gives up", drift, correcting, waits),
		helmStep("begins", fulfilling),
		helmStep("tries", reconciling(fluxmeta.ProgressingReason, "Running 'correct cluster drift' action")),
		helmStep("gives up again", waits),
	} {
		step.change(&observed.Server)
		before := velero.Status
		velero.Status = Compute(velero, observed, later)
		want.check(t, velero.Status, v1alpha1.ConditionServerInstalled)
		if diff := cmp.Diff(before, velero.Status); diff != "" && step.name != "gives up" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
	helmStep("corrected", drifted(metav1.ConditionFalse, helmv2.NoDriftDetectedReason), inSync).change(&observed.Server)
	outcome{metav1.ConditionTrue, v1alpha1.ReasonInstalled, v1alpha1.Ready, nil}.check(t, Compute(velero, observed, later), v1alpha1.ConditionServerInstalled)
}

// TestUpgrade goes through a change of the chart as Flux reports it: Ready never holds for what is not there yet.
func TestUpgrade(t *testing.T) {
	velero, observed := stored(t)
	next := fixture(t, "velero-server", "0.2.0")
	fetchedNext := next.Source.Status
	old := observed.Server.HelmRelease.Status
	server := &observed.Server
	steps := []struct {
		step
		want outcome
	}{
		{step{"created", func(r *Release) { r.Wanted, r.Source = next.Wanted, nil }}, progressing(v1alpha1.ReasonFetchingChart, wasUntouched)},
		{step{"fetching", func(r *Release) { r.Source = next.Source; r.Source.Status = unfetched(nil) }}, progressing(v1alpha1.ReasonFetchingChart, wasUntouched)},
		{step{"fetched", func(r *Release) { r.Source.Status = fetchedNext }}, progressing(v1alpha1.ReasonInstalling)},
		{step{"switched", func(r *Release) {
			r.HelmRelease = next.HelmRelease
			r.HelmRelease.Generation, r.HelmRelease.Status = 4, old
		}}, progressing(v1alpha1.ReasonInstalling)},
		{helmStep("upgrading", fulfilling, ready(metav1.ConditionUnknown, fluxmeta.ProgressingReason, "Running 'upgrade' action")), progressing(v1alpha1.ReasonInstalling)},
		{helmStep("done", func(hr *helmv2.HelmRelease) { hr.Status = releaseStatus(4, "velero-server", "0.2.0") }), outcome{metav1.ConditionTrue, v1alpha1.ReasonInstalled, v1alpha1.Ready, []string{"0.2.0"}}},
	}
	for _, step := range steps {
		step.change(server)
		velero.Status = Compute(velero, observed, later)
		step.want.check(t, velero.Status, v1alpha1.ConditionServerInstalled)
		if t.Failed() {
			t.Fatal(step.name)
		}
	}
}
