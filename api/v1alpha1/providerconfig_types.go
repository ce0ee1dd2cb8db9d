package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonapi "github.com/openmcp-project/openmcp-operator/api/common"
)

// DefaultProviderConfigName is the ProviderConfig in use when none has the name of the provider.
const DefaultProviderConfigName = "default"

// ServerImageName is the entry of availableImages that is the Velero server; every other entry is a plugin.
const ServerImageName = "velero"

// ProviderConfigSpec is what platform operators offer and how it is installed.
type ProviderConfigSpec struct {
	// pollInterval is how often drift on the managed control plane and on the workload cluster is found and corrected.
	// It becomes HelmRelease.spec.interval.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') && duration(self) >= duration('10s')",message="pollInterval must be a duration of at least 10s, for example 10m"
	PollInterval *metav1.Duration `json:"pollInterval,omitempty"`

	// availableImages are the images and versions that end users may choose: the entry "velero" is the server, all others are plugins.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	AvailableImages []AvailableImage `json:"availableImages"`

	// imagePullSecrets are Secrets in the operator's namespace. They are copied to the workload cluster for the Velero server to be pulled with.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.name != 'velero-control-plane' && !s.name.startsWith('velero-proxy-') && !s.name.startsWith('sh.helm.release.'))",message="the names velero-control-plane, velero-proxy-* and sh.helm.release.* are used by the server chart; rename the Secret"
	ImagePullSecrets []SecretReference `json:"imagePullSecrets,omitempty"`

	// charts says where Flux gets the two charts from.
	// +optional
	Charts *Charts `json:"charts,omitempty"`

	// caBundleRef is a key of a ConfigMap in the operator's namespace with PEM certificates. They are trusted for the chart registry and in
	// the Velero pod, in addition to the usual ones.
	// +optional
	CABundleRef *ConfigMapKeyReference `json:"caBundleRef,omitempty"`

	// values are added to the values of the two charts. What the operator generates wins over them.
	// +optional
	Values *ChartValues `json:"values,omitempty"`

	// fluxShard is set as label sharding.fluxcd.io/key on every Flux object, for platforms that run Flux in shards.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`
	FluxShard string `json:"fluxShard,omitempty"`

	// rollout says how an edit of this object reaches the Veleros that it changes. What users change about their own is done at once.
	// +optional
	Rollout *Rollout `json:"rollout,omitempty"`
}

// Rollout says how an edit of a ProviderConfig reaches many Veleros.
type Rollout struct {
	// maxConcurrent is how many Veleros are changed at the same time. A Velero that does not become ready makes room after ten minutes.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=10
	MaxConcurrent int32 `json:"maxConcurrent,omitempty"`
}

// AvailableImage is one image and the versions of it that are offered.
type AvailableImage struct {
	// name that end users choose it by: "velero" for the server, any other for a plugin.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([a-z0-9._/-]*[a-z0-9])?$')",messageExpression="'name \"' + self + '\" may only have lower case letters, digits, \"-\", \".\", \"_\" and \"/\"'"
	Name string `json:"name"`

	// versions that are offered: image tags, digests ("sha256:…"), or both ("v1.17.1@sha256:…").
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="self.all(v, v.matches('^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[a-f0-9]{64})?|sha256:[a-f0-9]{64})$'))",messageExpression="'versions must be image tags, digests (sha256: and 64 hexadecimal digits) or tag@digest; not so: ' + self.filter(v, !v.matches('^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[a-f0-9]{64})?|sha256:[a-f0-9]{64})$'))[0]"
	Versions []string `json:"versions"`

	// image is the repository that the versions are in, without tag and digest, for example "velero/velero" or "registry.example/velero/velero".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="self.matches('^(([a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?|[[][a-fA-F0-9:]+[]])(:[0-9]{1,5})?/)?[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*)*$')",messageExpression="'image \"' + self + '\" must be a lower case repository without scheme, tag or digest; its versions are listed in versions'"
	Image string `json:"image"`
}

// Charts says where Flux gets the two charts from and how it trusts them.
type Charts struct {
	// repository is the OCI repository that holds the charts velero-control-plane and velero-server.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:default="oci://ghcr.io/openmcp-project/charts"
	// +kubebuilder:validation:XValidation:rule="self.matches('^oci://([a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?|[[][a-fA-F0-9:]+[]])(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$')",messageExpression="'repository \"' + self + '\" must be oci://HOST[:PORT][/PATH] without credentials, tag, digest or a slash at its end'"
	Repository string `json:"repository,omitempty"`

	// version of both charts. Default: the chart version that this operator was released with.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^v?[0-9]+[.][0-9]+[.][0-9]+(-[0-9A-Za-z.-]+)?([+][0-9A-Za-z.-]+)?$')",messageExpression="'version \"' + self + '\" must be one exact semantic version, for example 0.1.0; ranges are not supported'"
	Version string `json:"version,omitempty"`

	// digests pin the charts to exact contents.
	// +optional
	Digests *ChartDigests `json:"digests,omitempty"`

	// pullSecret is a Secret of type kubernetes.io/dockerconfigjson in the operator's namespace, for the chart registry.
	// +optional
	PullSecret *SecretReference `json:"pullSecret,omitempty"`

	// verify has Flux verify the charts' signatures before it uses them.
	// +optional
	Verify *ChartVerification `json:"verify,omitempty"`

	// insecure lets Flux talk to the chart registry over plain HTTP. Only for test registries.
	// +optional
	Insecure bool `json:"insecure,omitempty"`

	// proxySecretRef is a Secret in the operator's namespace with the keys address and, optionally, username and password:
	// the proxy towards the chart registry.
	// +optional
	ProxySecretRef *SecretReference `json:"proxySecretRef,omitempty"`
}

// ChartDigests are the manifest digests of the two charts.
type ChartDigests struct {
	// +optional
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:XValidation:rule="self.matches('^sha256:[a-f0-9]{64}$')",messageExpression="'digest \"' + self + '\" must be sha256: and 64 hexadecimal digits: the digest of the chart manifest in the registry, not of the .tgz file'"
	ControlPlane string `json:"velero-control-plane,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:XValidation:rule="self.matches('^sha256:[a-f0-9]{64}$')",messageExpression="'digest \"' + self + '\" must be sha256: and 64 hexadecimal digits: the digest of the chart manifest in the registry, not of the .tgz file'"
	Server string `json:"velero-server,omitempty"`
}

// ChartVerification is passed to OCIRepository.spec.verify.
type ChartVerification struct {
	// provider of the signatures.
	// +required
	// +kubebuilder:validation:Enum=cosign
	Provider string `json:"provider"`

	// secretRef is a Secret in the operator's namespace with the public keys, under keys that end in ".pub".
	// +required
	SecretRef SecretReference `json:"secretRef"`
}

// ChartValues are extra values for the two charts.
type ChartValues struct {
	// server are extra values of chart velero-server.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Server *apiextensionsv1.JSON `json:"server,omitempty"`

	// controlPlane are extra values of chart velero-control-plane.
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	ControlPlane *apiextensionsv1.JSON `json:"controlPlane,omitempty"`
}

// SecretReference names a Secret in the operator's namespace.
type SecretReference struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",messageExpression="'\"' + self + '\" is not the name of a Secret'"
	Name string `json:"name"`
}

// ConfigMapKeyReference names a key of a ConfigMap in the operator's namespace.
type ConfigMapKeyReference struct {
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",messageExpression="'\"' + self + '\" is not the name of a ConfigMap'"
	Name string `json:"name"`

	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	Key string `json:"key"`
}

// ProviderConfigStatus tells platform operators whether their configuration can be used, and what it amounts to.
type ProviderConfigStatus struct {
	commonapi.Status `json:",inline"`

	// offered are the versions that end users may choose, per component.
	// +optional
	// +listType=map
	// +listMapKey=name
	Offered []OfferedComponent `json:"offered,omitempty"`

	// veleros is how many Velero objects this configuration applies to.
	// +optional
	Veleros int32 `json:"veleros"`
}

// OfferedComponent is the server or a plugin, and its offered versions.
type OfferedComponent struct {
	// +required
	Name string `json:"name"`
	// +optional
	// +listType=set
	Versions []string `json:"versions,omitempty"`
}

// ProviderConfig configures the service provider. The one that has the name of the provider is used; if there is none, the one named "default".
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=velpc,categories=openmcp
// +kubebuilder:metadata:labels="openmcp.cloud/cluster=platform"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Veleros",type=integer,JSONPath=`.status.veleros`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ProviderConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec ProviderConfigSpec `json:"spec"`
	// +optional
	Status ProviderConfigStatus `json:"status,omitempty"`
}

// ProviderConfigList is a list of ProviderConfig objects.
//
// +kubebuilder:object:root=true
type ProviderConfigList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ProviderConfig `json:"items"`
}
