// Package fluxgen turns the description of a Helm release on another cluster into the Flux objects that install it.
//
// It is pure: the same Release gives the same objects, byte for byte, and nothing is read or written. It knows Flux and Helm and nothing of
// what is installed, so that any provider that delegates to Flux can import it.
//
// Two things cannot be constructed with it: a HelmRelease without a kubeconfig reference, which Flux would install into the cluster that it
// runs on, with its own rights; and one whose Helm storage is in a namespace that the target does not have.
package fluxgen

import "time"

// Release describes one Helm release on another cluster.
type Release struct {
	// Name of the HelmRelease and of the Helm release; a DNS label of at most 50 characters, since Flux also makes it a label value.
	Name string
	// Namespace on the cluster that Flux runs on: that of all objects that are generated, and of the Secrets that they refer to.
	Namespace string
	// Labels of all generated objects.
	Labels map[string]string
	// Shard is the value of label sharding.fluxcd.io/key; empty: no such label.
	Shard string

	Chart  Chart
	Target Target

	// Values are written into the HelmRelease, where everybody who may read it sees them. They win over the values of ValuesSecrets.
	Values map[string]any
	// ValuesSecrets are the names of Secrets in Namespace whose key ValuesKey holds sensitive values; later ones win over earlier ones.
	ValuesSecrets []string

	// Interval between two checks for drift on the target. At least a second.
	Interval time.Duration
	// Timeout of one Helm action. Flux occupies a worker for that long when a target does not become ready.
	Timeout time.Duration

	Policy Policy
}

// Policy says how Flux treats the target.
type Policy struct {
	// CreateNamespace has Flux create the target namespace when it is missing. It is never removed.
	CreateNamespace bool
	// Adopt lets the release take over objects that exist already and belong to no other release. Otherwise they are an install failure,
	// so that one tenant's release can never take another's objects.
	Adopt bool
	// Wait has Flux wait until the objects are ready before the release counts as installed, and has it uninstall with foreground
	// propagation, so that the pods are gone when the release is.
	Wait bool
}

// Chart is an exact version of a chart in an OCI registry. All Secrets are in the Release's namespace.
type Chart struct {
	// Repository that holds the chart, with scheme and without the chart's name: oci://registry.example/charts.
	Repository string
	Name       string
	// Version is the exact chart version; ranges are refused, upgrades are somebody's decision.
	Version string
	// Digest of the manifest (sha256:…); empty: the version alone decides.
	Digest string
	// Insecure allows plain HTTP.
	Insecure bool
	// PullSecret is of type kubernetes.io/dockerconfigjson with registry keys as Flux needs them (see NormalizeDockerConfig).
	PullSecret string
	// CertSecret holds the registry's CA under ca.crt.
	CertSecret string
	// ProxySecret holds address and, optionally, username and password.
	ProxySecret string
	// CosignSecret holds public keys (*.pub); set: the chart's signature must verify with one of them.
	CosignSecret string
	// Credentials is a fingerprint of the contents of these Secrets. Flux does not watch them, so a new fingerprint means a new OCIRepository.
	Credentials string
}
