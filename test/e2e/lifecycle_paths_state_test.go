package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// The kinds of which all objects in a place are compared.
var (
	platformKinds = []schema.GroupVersionKind{
		{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"},
		{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "OCIRepository"},
		{Group: "clusters.openmcp.cloud", Version: "v1alpha1", Kind: "AccessRequest"},
		{Group: "clusters.openmcp.cloud", Version: "v1alpha1", Kind: "ClusterRequest"},
		{Version: "v1", Kind: "Secret"},
	}
	targetKinds = []schema.GroupVersionKind{
		{Group: "apps", Version: "v1", Kind: "Deployment"},
		{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
		{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ServiceAccount"},
	}
	clusterKinds = []schema.GroupVersionKind{{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}}
	veleroKind   = schema.GroupVersionKind{Group: "velero.services.openmcp.cloud", Version: "v1alpha1", Kind: "Velero"}
)

var (
	// tokens are never the same twice.
	tokens = regexp.MustCompile(`eyJ[\w-]+\.[\w-]+\.[\w-]+`)
	// sourceHash is in the names of OCIRepositories. It derives, among others, from UIDs and resource versions.
	sourceHash = regexp.MustCompile(`(velero-control-plane|velero-server)-[0-9a-f]{10}\b`)
)

// everything adds each object of a Velero on every cluster as text, without what tells when and how often it was written.
func (s tenant) everything(ctx context.Context, t *testing.T, all map[string]string) error {
	t.Helper()
	controlPlane := s.controlPlane(t)
	for _, place := range []struct {
		name, namespace string
		cluster         client.Client
		kinds           []schema.GroupVersionKind
	}{
		{"onboarding", s.Namespace, onboarding, []schema.GroupVersionKind{veleroKind}},
		{"platform", s.names.TenantNamespace, platform, platformKinds},
		{"workload", s.names.WorkloadNamespace, workload, targetKinds},
		{"control plane", s.names.ControlPlaneNamespace, controlPlane, targetKinds},
		{"control plane", "", controlPlane, clusterKinds},
	} {
		for _, kind := range place.kinds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			if err := place.cluster.List(ctx, list, client.InNamespace(place.namespace)); err != nil {
				return err
			}
			for i := range list.Items {
				object := &list.Items[i]
				if strings.HasPrefix(object.GetName(), "sh.helm.release.") {
					// Helm's records count the revisions.
					continue
				}
				text, err := masked(object)
				if err != nil {
					return err
				}
				name := fmt.Sprintf("%s, %s on %s: %s", s.Namespace, kind.Kind, place.name, sourceHash.ReplaceAllString(object.GetName(), "$1-HASH"))
				if _, taken := all[name]; taken {
					// Two sources of one chart must not look like one.
					name += ", again"
				}
				all[name] = text
			}
		}
	}
	return nil
}

func masked(object *unstructured.Unstructured) (string, error) {
	object.SetUID("")
	object.SetResourceVersion("")
	object.SetGeneration(0)
	object.SetManagedFields(nil)
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	annotations := object.GetAnnotations()
	delete(annotations, "deployment.kubernetes.io/revision")
	if annotations[plan.SourcesAnnotation] != "" {
		annotations[plan.SourcesAnnotation] = "FINGERPRINT"
	}
	object.SetAnnotations(annotations)
	owners := object.GetOwnerReferences()
	for i := range owners {
		owners[i].UID = ""
	}
	object.SetOwnerReferences(owners)
	if object.GetKind() == veleroKind.Kind {
		maskStatus(object)
	} else {
		unstructured.RemoveNestedField(object.Object, "status")
	}
	if object.GetKind() == "Secret" {
		if err := decode(object); err != nil {
			return "", err
		}
	}
	for _, address := range []string{"clusterIP", "clusterIPs"} {
		unstructured.RemoveNestedField(object.Object, "spec", address)
	}
	text, err := json.MarshalIndent(object.Object, "", " ")
	return sourceHash.ReplaceAllString(tokens.ReplaceAllString(string(text), "TOKEN"), "$1-HASH"), err
}

func maskStatus(velero *unstructured.Unstructured) {
	unstructured.RemoveNestedField(velero.Object, "status", "observedGeneration")
	conditions, _, _ := unstructured.NestedSlice(velero.Object, "status", "conditions")
	for _, condition := range conditions {
		if condition, ok := condition.(map[string]any); ok {
			delete(condition, "lastTransitionTime")
			delete(condition, "observedGeneration")
		}
	}
	if len(conditions) > 0 {
		// What was read as a slice can be written as one.
		_ = unstructured.SetNestedSlice(velero.Object, conditions, "status", "conditions")
	}
}

// decode makes what is in a Secret readable, for masks and for people; when a grant was renewed is left out.
func decode(secret *unstructured.Unstructured) error {
	data, _, err := unstructured.NestedStringMap(secret.Object, "data")
	if err != nil {
		return err
	}
	for key, encoded := range data {
		value, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return err
		}
		data[key] = string(value)
		if strings.HasSuffix(key, "Timestamp") {
			data[key] = "TIME"
		}
	}
	return unstructured.SetNestedStringMap(secret.Object, data, "data")
}
