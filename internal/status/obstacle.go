package status

import "github.com/openmcp-project/service-provider-velero/api/v1alpha1"

// Obstacle is what keeps the operator from doing on the platform cluster what a Velero needs.
type Obstacle struct {
	// Reason is one of PlatformRefuses, PlatformIncomplete and PlatformUnavailable.
	Reason, Message string
}

// ObstacleOf words an obstacle for the user, given what the platform's API server or the way to it wrote. Nothing of that text is passed on.
func ObstacleOf(reason, text string) *Obstacle {
	switch reason {
	case v1alpha1.ReasonPlatformRefuses:
		return &Obstacle{reason, Refusal(text)}
	case v1alpha1.ReasonPlatformIncomplete:
		return &Obstacle{reason, "the platform cluster lacks something that this Velero is installed with, as when Flux is not installed there; a platform operator must act, and it is tried again"}
	default:
		return &Obstacle{reason, "the platform cluster has not let this Velero be looked after for some time, so its state is not known; it is tried again, and a platform operator finds the cause in the operator's log"}
	}
}

// verdict of an obstacle. An outage says nothing about what runs.
func (o *Obstacle) verdict() verdict {
	if o.unknown() {
		return unknown(o.Reason, o.Message)
	}
	return stuck(o.Reason, o.Message)
}

func (o *Obstacle) unknown() bool { return o.Reason == v1alpha1.ReasonPlatformUnavailable }
