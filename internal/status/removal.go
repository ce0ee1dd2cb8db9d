package status

import (
	"cmp"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// removalSteps are the steps of a deletion in their order. A step of another reason (users' objects are still there) comes before all of them.
var removalSteps = []string{
	v1alpha1.ReasonRemovingServer, v1alpha1.ReasonRemovingWorkloadNamespace, v1alpha1.ReasonRemovingControlPlane,
	v1alpha1.ReasonRemovingCRDs, v1alpha1.ReasonRemovingPlatformObjects, v1alpha1.ReasonReleasingAccess,
}

// removal is the step at which a deletion is.
type removal struct{ Removal }

// removalOf is the first step when none is reported: then the deletion has only begun.
func removalOf(reported *Removal) removal {
	if reported == nil || reported.Reason == "" {
		return removal{Removal{Reason: v1alpha1.ReasonRemovingServer, Message: "removing the Velero server"}}
	}
	return removal{*reported}
}

// verdicts on what the deletion has come to. What it has not come to yet is as it was before.
func (r removal) verdicts() verdicts {
	all := verdicts{{v1alpha1.ConditionReady, r.verdict()}}
	switch {
	case r.past(v1alpha1.ReasonRemovingWorkloadNamespace):
		all = append(all, named{v1alpha1.ConditionServerInstalled, waiting(v1alpha1.ReasonRemovingServer, "the Velero server is removed")})
	case r.reached(v1alpha1.ReasonRemovingServer):
		all = append(all, named{v1alpha1.ConditionServerInstalled, r.verdict()})
	}
	switch {
	case r.past(v1alpha1.ReasonRemovingCRDs):
		all = append(all, named{v1alpha1.ConditionControlPlaneInstalled, waiting(v1alpha1.ReasonRemovingControlPlane, "Velero is removed from the control plane")})
	case r.reached(v1alpha1.ReasonRemovingControlPlane):
		all = append(all, named{v1alpha1.ConditionControlPlaneInstalled, r.verdict()})
	}
	if r.reached(v1alpha1.ReasonReleasingAccess) {
		all = append(all, named{v1alpha1.ConditionAccessGranted, r.verdict()})
	}
	return all
}

func (r removal) verdict() verdict { return waiting(cmp.Or(r.Problem, r.Reason), r.Message) }

func (r removal) reached(step string) bool {
	return slices.Index(removalSteps, r.Reason) >= slices.Index(removalSteps, step)
}

func (r removal) past(step string) bool {
	return slices.Index(removalSteps, r.Reason) > slices.Index(removalSteps, step)
}

// resources are those that were there before, without those that are removed by now.
func (r removal) resources(before []v1alpha1.ManagedResource) []v1alpha1.ManagedResource {
	if !r.reached(v1alpha1.ReasonRemovingServer) {
		return before
	}
	var left []v1alpha1.ManagedResource
	for _, resource := range before {
		if r.past(lastStep(resource)) {
			continue
		}
		resource.Phase, resource.Message = v1alpha1.Terminating, ""
		left = append(left, resource)
	}
	return left
}

// lastStep is the step after which a resource is gone.
func lastStep(resource v1alpha1.ManagedResource) string {
	switch {
	case resource.Location == v1alpha1.WorkloadCluster:
		return v1alpha1.ReasonRemovingServer
	case resource.Location == v1alpha1.ManagedControlPlane && resource.Kind == crdKind:
		return v1alpha1.ReasonRemovingCRDs
	case resource.Location == v1alpha1.ManagedControlPlane:
		return v1alpha1.ReasonRemovingControlPlane
	case resource.Kind == helmv2.HelmReleaseKind && resource.Name == plan.ServerRelease:
		return v1alpha1.ReasonRemovingServer
	case resource.Kind == helmv2.HelmReleaseKind:
		return v1alpha1.ReasonRemovingControlPlane
	default:
		return v1alpha1.ReasonRemovingPlatformObjects
	}
}
