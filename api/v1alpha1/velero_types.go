package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonapi "github.com/openmcp-project/openmcp-operator/api/common"
)

// VeleroSpec is what an end user asks for. Names and versions are keys into what the platform operator offers in the ProviderConfig; they
// never become part of an image reference or a template.
type VeleroSpec struct {
	// version of the Velero server, for example "v1.17.1". It must be one of the versions that the platform offers.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[a-f0-9]{64})?|sha256:[a-f0-9]{64})$')",messageExpression="'version \"' + self + '\" is not an image tag or digest; write it as it is offered, for example v1.17.1'"
	Version string `json:"version"`

	// plugins to install beside the server. Their order has no meaning.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Plugins []Plugin `json:"plugins,omitempty"`
}

// Plugin is one Velero plugin of a version that the platform offers.
type Plugin struct {
	// name of the plugin as the platform offers it, for example "aws".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self != 'velero'",message="the name \"velero\" is reserved for the server; its version is set in spec.version"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9._/-]*[a-z0-9])?$')",messageExpression="'plugin name \"' + self + '\" may only have lower case letters, digits, \"-\", \".\", \"_\" and \"/\"'"
	Name string `json:"name"`

	// version of the plugin, for example "v1.13.0".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.matches('^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[a-f0-9]{64})?|sha256:[a-f0-9]{64})$')",messageExpression="'version \"' + self + '\" is not an image tag or digest; write it as it is offered, for example v1.13.0'"
	Version string `json:"version"`
}

// InstancePhase is where a Velero, or one object that it consists of, is in its life.
// +kubebuilder:validation:Enum=Pending;Progressing;Ready;Failed;Terminating;Unknown
type InstancePhase string

// The phases of a Velero and of the objects that it consists of.
const (
	// Pending: nothing was decided or created yet.
	Pending InstancePhase = "Pending"
	// Progressing: being created or changed; no person has to act.
	Progressing InstancePhase = "Progressing"
	// Ready: as wanted. For a Velero: every condition is True.
	Ready InstancePhase = "Ready"
	// Failed: a person must act; the condition that is not True says how.
	Failed InstancePhase = "Failed"
	// Terminating: being deleted.
	Terminating InstancePhase = "Terminating"
	// Unknown: the state cannot be seen at the moment, for example because the cluster is unreachable.
	Unknown InstancePhase = "Unknown"
)

// ResourceLocation is the cluster on which a managed resource lives.
// +kubebuilder:validation:Enum=Platform;ManagedControlPlane;WorkloadCluster
type ResourceLocation string

// The clusters on which managed resources live.
const (
	Platform            ResourceLocation = "Platform"
	ManagedControlPlane ResourceLocation = "ManagedControlPlane"
	WorkloadCluster     ResourceLocation = "WorkloadCluster"
)

// ManagedResource is one object that this Velero consists of. Namespaces are named only on the managed control plane: those of the platform
// and of the workload cluster are internal to the platform.
type ManagedResource struct {
	corev1.TypedObjectReference `json:",inline"`

	// phase of the object.
	// +required
	Phase InstancePhase `json:"phase"`

	// message says why the object is not ready.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// location is the cluster on which the object lives.
	// +required
	Location ResourceLocation `json:"location"`
}

// PendingChange is a change of the server that waits until the backups and restores that run are done, which a restart would end.
type PendingChange struct {
	// since when the change waits. It does so for an hour at most.
	// +required
	Since metav1.Time `json:"since"`

	// unseenSince is since when it cannot be seen whether any runs. The change waits for five minutes more at most.
	// +optional
	UnseenSince *metav1.Time `json:"unseenSince,omitempty"`
}

// VeleroStatus is what became of the request.
type VeleroStatus struct {
	commonapi.Status `json:",inline"`

	// pendingChange is there while a change of the server waits.
	// +optional
	PendingChange *PendingChange `json:"pendingChange,omitempty"`

	// resources are the objects that this Velero consists of.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Resources []ManagedResource `json:"resources,omitempty"`
}

// Velero asks for a Velero on a managed control plane: the one that has the same name and namespace as this object.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=veleros,shortName=vel,categories=openmcp
// +kubebuilder:metadata:labels="openmcp.cloud/cluster=onboarding"
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Velero struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec VeleroSpec `json:"spec"`
	// +optional
	Status VeleroStatus `json:"status,omitempty"`
}

// VeleroList is a list of Velero objects.
//
// +kubebuilder:object:root=true
type VeleroList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Velero `json:"items"`
}
