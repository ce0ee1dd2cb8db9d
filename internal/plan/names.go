package plan

import (
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	ctrlutils "github.com/openmcp-project/controller-utils/pkg/controller"
	openmcpconst "github.com/openmcp-project/openmcp-operator/api/constants"
	libutils "github.com/openmcp-project/openmcp-operator/lib/utils"
)

const (
	// ProviderName marks everything that this provider creates. It is part of the names of AccessRequests: never change it.
	ProviderName = "velero.services.openmcp.cloud"
	// UserAgent is what this program calls itself towards API servers, and who it is in their records of who wrote which field.
	UserAgent = "service-provider-velero"
	// Finalizer keeps a Velero, and the credentials of its releases, until everything is removed in order.
	Finalizer = ProviderName + "/finalizer"

	// ManagedByLabel marks what this provider created.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// InstanceLabel says to which Velero an object on the platform belongs. It is also on the credentials, which a ClusterProvider created.
	InstanceLabel = ProviderName + "/instance"
	// SourcesAnnotation records what a generated Secret was made from.
	SourcesAnnotation = ProviderName + "/sources"
	// KeysAnnotation records which keys a generated Secret was given: nobody is recorded as the one who removed a key.
	KeysAnnotation = ProviderName + "/keys"

	// ControlPlaneRelease is the name of the release on the control plane, and of its chart.
	ControlPlaneRelease = "velero-control-plane"
	// ServerRelease is the name of the release on the workload cluster, and of its chart.
	ServerRelease = "velero-server"

	controlPlaneNamespace = "velero"
	workloadPrefix        = "velero--"
)

// Names are derived from a Velero's name and namespace and from nothing else: what a user can edit must not lead to another tenant's objects.
type Names struct {
	// Instance is unique for the Velero, and a valid label value.
	Instance string
	// TenantNamespace is the namespace on the platform that openmcp-operator made for the control plane.
	TenantNamespace string
	// WorkloadNamespace is the server's namespace on the workload cluster.
	WorkloadNamespace string
	// ControlPlaneNamespace is Velero's namespace on the control plane.
	ControlPlaneNamespace string

	velero types.NamespacedName
}

// NamesOf derives the names. It fails only for an empty name or namespace.
func NamesOf(velero types.NamespacedName) (Names, error) {
	tenant, err := libutils.StableMCPNamespace(velero.Name, velero.Namespace)
	if err != nil {
		return Names{}, fmt.Errorf("derive names for %q: %w", velero, err)
	}
	instance, err := libutils.StableMCPIdentifier(velero.Name, velero.Namespace)
	if err != nil {
		return Names{}, fmt.Errorf("derive names for %q: %w", velero, err)
	}
	return Names{
		Instance:              instance,
		TenantNamespace:       tenant,
		WorkloadNamespace:     workloadPrefix + instance,
		ControlPlaneNamespace: controlPlaneNamespace,
		velero:                velero,
	}, nil
}

// Labels are those of everything that is created on the platform. Names that are too long for a label value are shortened with a hash: they
// are for people who look at the objects, nothing is looked up by them.
func (n Names) Labels() map[string]string {
	labels := maps.Clone(n.Onboarding())
	labels[ManagedByLabel] = ProviderName
	return labels
}

// Onboarding are the labels that say whose an object is, for objects that somebody else manages.
func (n Names) Onboarding() map[string]string {
	return map[string]string{
		InstanceLabel:                         n.Instance,
		openmcpconst.OnboardingNameLabel:      ctrlutils.ShortenToXCharactersUnsafe(n.velero.Name, ctrlutils.K8sMaxNameLength),
		openmcpconst.OnboardingNamespaceLabel: ctrlutils.ShortenToXCharactersUnsafe(n.velero.Namespace, ctrlutils.K8sMaxNameLength),
	}
}
