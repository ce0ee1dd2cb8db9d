// Package plan decides. It is pure, and it is all that is Velero: what a user asks for and what the platform offers go in; the releases to
// run come out, or the reason why a person must act first.
package plan

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// Request is everything that a plan is made from.
type Request struct {
	// Velero is the name and namespace of the Velero object, and of its control plane.
	Velero types.NamespacedName
	Spec   v1alpha1.VeleroSpec
	// Config is nil when there is no ProviderConfig.
	Config *v1alpha1.ProviderConfigSpec
	// Sources has an entry for each of References(Config) that exists.
	Sources map[Reference]Version
}

// Plan is what is to run for one Velero. Resolve makes it.
type Plan struct {
	Names Names
	// Version and Image of the server.
	Version, Image string
	// Plugins are sorted by name.
	Plugins []Plugin

	config       *v1alpha1.ProviderConfigSpec
	sources      map[Reference]Version
	controlPlane map[string]any
	server       map[string]any
	interval     time.Duration
}

// Plugin is a plugin that is to run. Its Image is made from what the ProviderConfig offers under its name and version.
type Plugin struct {
	Name, Version, Image string
}

// Kind of an object that the ProviderConfig refers to.
type Kind string

// The kinds that a Reference may have.
const (
	Secret    Kind = "Secret"
	ConfigMap Kind = "ConfigMap"
)

// Reference names a Secret or ConfigMap in the operator's namespace.
type Reference struct {
	Kind Kind
	Name string
}

// Version identifies one state of an object without its contents.
type Version struct {
	UID             types.UID
	ResourceVersion string
}

// Grant is granted access to a cluster: a key of a Secret in the tenant namespace that holds a kubeconfig.
type Grant struct {
	Secret, Key string
	Version     Version
}

// Grants are all that is granted for a Velero.
type Grants struct {
	// ControlPlane is what Flux installs the CRDs with, Workload what it installs the server with.
	ControlPlane, Workload Grant
	// Server is the server's own identity on the control plane.
	Server Grant
}

// Source is where contents of a generated Secret come from.
type Source struct {
	Reference
	// Key that is used; empty: several.
	Key string
	// Tenant: the object is in the tenant namespace, not in the operator's.
	Tenant bool
}

// Content is what a Secret or ConfigMap holds. It is only read when a generated Secret is not up to date, or for a Trial.
type Content struct {
	Type corev1.SecretType
	Data map[string][]byte
}

// Blocked says that a person must act before anything can be done. Reason is one of the reasons of the API; Message is written for the end
// user: it names what is wrong, where, and what is offered, and nothing that is internal to the platform.
type Blocked struct {
	Reason  string
	Message string
}
