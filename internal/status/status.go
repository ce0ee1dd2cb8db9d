// Package status says what a Velero and a ProviderConfig are told about themselves. It is pure: computed from scratch from what was planned
// and observed, so it cannot flap, and from a fixed list of reasons with messages of our own, so it cannot leak what Flux, Kubernetes or a
// registry wrote: those texts carry URLs, tokens and internal names. They are only searched for what is known.
package status

import (
	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/openmcp-project/service-provider-velero/fluxgen"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// Observation is everything that a Velero's status is computed from.
type Observation struct {
	// Blocked is nil when the configuration can be used.
	Blocked *plan.Blocked
	// Warnings are what is known to go wrong with a configuration that can be used.
	Warnings []string
	// Queued: a change of the platform operator's has to wait while it reaches others.
	Queued bool
	// Obstacle is nil while the operator can do its work on the platform cluster.
	Obstacle *Obstacle
	// Access is what became of the requests for access.
	Access Access
	// ControlPlane and Server are the two releases as they are wanted and as they are seen.
	ControlPlane, Server Release
	// Hold is nil unless a change of the server waits.
	Hold *Hold
	// Diagnosis is nil unless it is known why the server does not become ready.
	Diagnosis *Diagnosis
	// Removal is nil unless the Velero is being deleted.
	Removal *Removal
}

// Access is the state of the AccessRequests.
type Access struct {
	Granted bool
	// Reason and Message say what is waited for while access is not granted; both are for the user. Failed: a person must act.
	Reason, Message string
	Failed          bool
	// Unwatched: no event will say that it changed.
	Unwatched bool
}

// Release is one release as it is wanted and as it is seen on the platform.
type Release struct {
	// Wanted is nil while it is not known what to run (blocked, or no access).
	Wanted *fluxgen.Release
	// HelmRelease is nil while there is none.
	HelmRelease *helmv2.HelmRelease
	// Source is the OCIRepository of the wanted chart; nil while there is none.
	Source *sourcev1.OCIRepository
}

// Removal is the step at which a deletion is.
type Removal struct {
	// Reason is that of the step, and Message says what is waited for.
	Reason, Message string
	// Problem is the reason for which the step does not come to its end; empty while it is only under way.
	Problem string
}
