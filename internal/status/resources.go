package status

import (
	"cmp"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

const (
	// maxResources is how many the API takes.
	maxResources = 256
	crdKind      = "CustomResourceDefinition"
)

// resources are the objects that a Velero consists of: what Flux works with, and then what it says to have put on the two clusters.
func resources(observed Observation, conditions []metav1.Condition) []v1alpha1.ManagedResource {
	crds, server := controlPlane(observed.ControlPlane), server(observed.Server)
	all := slices.Concat(crds.platformResources(conditions), server.platformResources(conditions),
		crds.inventory(conditions, v1alpha1.ManagedControlPlane), server.inventory(conditions, v1alpha1.WorkloadCluster))
	return all[:min(len(all), maxResources)]
}

// platformResources are the HelmRelease and the OCIRepository of the wanted chart.
func (c component) platformResources(conditions []metav1.Condition) []v1alpha1.ManagedResource {
	var all []v1alpha1.ManagedResource
	if c.HelmRelease != nil {
		phase, message := c.releasePhase(conditions)
		all = append(all, resource(v1alpha1.Platform, helmv2.GroupVersion.Group, helmv2.HelmReleaseKind, c.HelmRelease.Name, phase, message))
	}
	if c.Source != nil && c.Wanted != nil {
		phase, message := c.sourcePhase()
		all = append(all, resource(v1alpha1.Platform, sourcev1.GroupVersion.Group, sourcev1.OCIRepositoryKind, c.Source.Name, phase, message))
	}
	return all
}

// releasePhase is that of the HelmRelease as it is, whatever else is wanted by now.
func (c component) releasePhase(conditions []metav1.Condition) (v1alpha1.InstancePhase, string) {
	if !c.HelmRelease.DeletionTimestamp.IsZero() {
		return v1alpha1.Terminating, ""
	}
	c.Wanted, c.Source = nil, nil
	return c.verdict(verdict{}, conditions).resourcePhase()
}

func (c component) sourcePhase() (v1alpha1.InstancePhase, string) {
	if !c.Source.DeletionTimestamp.IsZero() {
		return v1alpha1.Terminating, ""
	}
	return sourceVerdict(c.Wanted.Chart, c.Source).resourcePhase()
}

func (v verdict) resourcePhase() (v1alpha1.InstancePhase, string) {
	switch {
	case v.status == metav1.ConditionTrue:
		return v1alpha1.Ready, ""
	case v.status == metav1.ConditionUnknown:
		return v1alpha1.Unknown, bounded(v.message)
	case v.person:
		return v1alpha1.Failed, bounded(v.message)
	default:
		return v1alpha1.Progressing, bounded(v.message)
	}
}

// inventory are the objects that Flux says to have put on the target. They are in the phase of their release: Flux says no more.
func (c component) inventory(conditions []metav1.Condition, location v1alpha1.ResourceLocation) []v1alpha1.ManagedResource {
	if c.HelmRelease == nil || c.HelmRelease.Status.Inventory == nil {
		return nil
	}
	phase, message := c.releasePhase(conditions)
	if phase == v1alpha1.Failed {
		// The release did; whether each of its objects did is not known.
		phase = v1alpha1.Progressing
	}
	var all []v1alpha1.ManagedResource
	for _, entry := range c.HelmRelease.Status.Inventory.Entries {
		id, ok := parseID(entry.ID)
		if !ok {
			continue
		}
		object := resource(location, id.group, id.kind, id.name, phase, message)
		if location == v1alpha1.ManagedControlPlane && id.namespace != "" {
			object.Namespace = &id.namespace
		}
		all = append(all, object)
	}
	slices.SortFunc(all, compareResources)
	return slices.CompactFunc(all, func(a, b v1alpha1.ManagedResource) bool { return compareResources(a, b) == 0 })
}

func compareResources(a, b v1alpha1.ManagedResource) int {
	return cmp.Or(
		cmp.Compare(*a.APIGroup, *b.APIGroup), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(namespace(a), namespace(b)), cmp.Compare(a.Name, b.Name),
	)
}

func namespace(resource v1alpha1.ManagedResource) string {
	if resource.Namespace == nil {
		return ""
	}
	return *resource.Namespace
}

func resource(location v1alpha1.ResourceLocation, group, kind, name string, phase v1alpha1.InstancePhase, message string) v1alpha1.ManagedResource {
	return v1alpha1.ManagedResource{
		TypedObjectReference: corev1.TypedObjectReference{APIGroup: &group, Kind: kind, Name: name},
		Phase:                phase,
		Message:              message,
		Location:             location,
	}
}

// objectID is an entry of Flux's inventory: NAMESPACE_NAME_GROUP_KIND, where a colon in the name, as RBAC objects may have it, is written as
// two underscores. No other part has underscores.
type objectID struct{ namespace, name, group, kind string }

func parseID(id string) (objectID, bool) {
	parts := strings.Split(id, "_")
	if len(parts) < 4 {
		return objectID{}, false
	}
	last := len(parts) - 1
	parsed := objectID{
		namespace: parts[0],
		name:      strings.ReplaceAll(strings.Join(parts[1:last-1], "_"), "__", ":"),
		group:     parts[last-1],
		kind:      parts[last],
	}
	return parsed, parsed.name != "" && parsed.kind != ""
}
