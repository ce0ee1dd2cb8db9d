package status

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// Compute says what a Velero is told. It does not modify its inputs.
//
// Of the stored status it keeps conditions of types that it does not know, and the time of the last transition of those that it does. The
// phase follows from the conditions:
//
//	Terminating  deleted, also while a step of the deletion has failed
//	Failed       a person must act first; the condition that is not True says how
//	Ready        every condition is True
//	Unknown      only what cannot be seen is in the way: a cluster that is unreachable after Velero was installed on it
//	Pending      there is no control plane yet, so nothing was begun
//	Progressing  everything else, also what failed and may heal when Flux tries again
func Compute(velero *v1alpha1.Velero, observed Observation, now metav1.Time) v1alpha1.VeleroStatus {
	status := *velero.Status.DeepCopy()
	status.ObservedGeneration = velero.Generation
	status.PendingChange = pendingChange(status.PendingChange, observed)
	if observed.Removal != nil || !velero.DeletionTimestamp.IsZero() {
		removal := removalOf(observed.Removal)
		status.Phase = string(v1alpha1.Terminating)
		status.Conditions = removal.verdicts().conditions(status.Conditions, velero.Generation, now)
		status.Resources = removal.resources(status.Resources)
		return status
	}
	judged := judge(observed, status.Conditions)
	summary := judged.summary(velero.Spec.Version)
	status.Phase = string(judged.phase(summary, observed))
	if observed.Queued {
		summary = summary.and("; a change by the platform operator waits for its turn")
	}
	status.Conditions = append(judged, named{v1alpha1.ConditionReady, summary}).conditions(status.Conditions, velero.Generation, now)
	status.Resources = resources(observed, status.Conditions)
	return status
}

// judge decides on every condition but Ready, in the order in which they stand in each other's way.
func judge(observed Observation, stored []metav1.Condition) verdicts {
	configuration, access := configurationVerdict(observed), accessVerdict(observed)
	var held verdict
	switch {
	case observed.Obstacle != nil:
		held = observed.Obstacle.verdict()
	case configuration.status != metav1.ConditionTrue:
		held = waiting(v1alpha1.ReasonWaitingForConfiguration, "installed as soon as the configuration is valid")
	case access.status != metav1.ConditionTrue:
		held = waiting(v1alpha1.ReasonWaitingForAccess, "installed as soon as access is granted")
	}
	crds := controlPlane(observed.ControlPlane).verdict(held, stored)
	// Once the server is there, each release goes its own way.
	if held.none() && crds.status != metav1.ConditionTrue && observed.Server.HelmRelease == nil {
		held = waiting(v1alpha1.ReasonWaitingForCRDs, "installed as soon as the CRDs are on the control plane")
	}
	return verdicts{
		{v1alpha1.ConditionConfigurationValid, configuration},
		{v1alpha1.ConditionAccessGranted, access},
		{v1alpha1.ConditionControlPlaneInstalled, crds},
		{v1alpha1.ConditionServerInstalled, serverVerdict(observed, held, stored)},
	}
}

// configurationVerdict is also where an obstacle is told that comes after access. One that leaves everything unknown does not hide what is known.
func configurationVerdict(observed Observation) verdict {
	obstacle := observed.Obstacle
	switch {
	case obstacle != nil && observed.Access.Granted && (observed.Blocked == nil || !obstacle.unknown()):
		return obstacle.verdict()
	case observed.Blocked != nil:
		return stuck(observed.Blocked.Reason, observed.Blocked.Message)
	case len(observed.Warnings) > 0:
		return good(v1alpha1.ReasonValidWithWarnings, "the configuration can be used, but "+strings.Join(observed.Warnings, "; "))
	default:
		return good(v1alpha1.ReasonValid, "the configuration can be used")
	}
}

func accessVerdict(observed Observation) verdict {
	access := observed.Access
	switch {
	case access.Granted:
		return good(v1alpha1.ReasonGranted, "the control plane and the cluster that the server runs on can be accessed")
	case observed.Obstacle != nil:
		return observed.Obstacle.verdict()
	case access.Failed:
		return stuck(access.Reason, access.Message)
	default:
		return waiting(access.Reason, access.Message)
	}
}

func (v verdicts) phase(summary verdict, observed Observation) v1alpha1.InstancePhase {
	for _, one := range v {
		if one.person {
			return v1alpha1.Failed
		}
	}
	switch {
	case summary.status == metav1.ConditionTrue:
		return v1alpha1.Ready
	case observed.Access.Reason == v1alpha1.ReasonControlPlaneNotFound:
		return v1alpha1.Pending
	case summary.status == metav1.ConditionUnknown:
		return v1alpha1.Unknown
	default:
		return v1alpha1.Progressing
	}
}

// Changed says whether the new status of a Velero must be written.
func Changed(before, after v1alpha1.VeleroStatus) bool {
	return !equality.Semantic.DeepEqual(before, after)
}
