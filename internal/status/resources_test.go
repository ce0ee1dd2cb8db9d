package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

func inventory(ids ...string) *helmv2.ResourceInventory {
	all := &helmv2.ResourceInventory{}
	for _, id := range ids {
		all.Entries = append(all.Entries, helmv2.ResourceRef{ID: id, Version: "v1"})
	}
	return all
}

func withInventory(observed *Observation) {
	observed.ControlPlane.HelmRelease.Status.Inventory = inventory(
		"velero_velero_apps_Deployment", "_schedules.velero.io_apiextensions.k8s.io_CustomResourceDefinition", "_backups.velero.io_apiextensions.k8s.io_CustomResourceDefinition")
	observed.Server.HelmRelease.Status.Inventory = inventory("velero--1_velero_apps_Deployment", "velero--1_velero-server__x_rbac.authorization.k8s.io_Role")
}

// listed is one line per resource.
func listed(resources []v1alpha1.ManagedResource) []string {
	lines := make([]string, 0, len(resources))
	for _, resource := range resources {
		lines = append(lines, strings.Join([]string{string(resource.Location), *resource.APIGroup, resource.Kind, namespace(resource), resource.Name, string(resource.Phase)}, " "))
	}
	return lines
}

func TestResources(t *testing.T) {
	velero, observed := healthy(t)
	withInventory(&observed)
	got := Compute(velero, observed, earlier)
	want := []string{
		"Platform helm.toolkit.fluxcd.io HelmRelease  velero-control-plane Ready",
		"Platform source.toolkit.fluxcd.io OCIRepository  " + observed.ControlPlane.Source.Name + " Ready",
		"Platform helm.toolkit.fluxcd.io HelmRelease  velero-server Ready",
		"Platform source.toolkit.fluxcd.io OCIRepository  " + observed.Server.Source.Name + " Ready",
		"ManagedControlPlane apiextensions.k8s.io CustomResourceDefinition  backups.velero.io Ready",
		"ManagedControlPlane apiextensions.k8s.io CustomResourceDefinition  schedules.velero.io Ready",
		"ManagedControlPlane apps Deployment velero velero Ready",
		"WorkloadCluster apps Deployment  velero Ready",
		"WorkloadCluster rbac.authorization.k8s.io Role  velero-server:x Ready",
	}
	if diff := cmp.Diff(want, listed(got.Resources)); diff != "" {
		t.Error(diff)
	}
	slices.Reverse(observed.ControlPlane.HelmRelease.Status.Inventory.Entries)
	if diff := cmp.Diff(got, Compute(velero, observed, earlier)); diff != "" {
		t.Errorf("the order depends on Flux: %s", diff)
	}
}

// TestResourcePhases: the objects of a release are in its phase; Flux says nothing about each of them.
func TestResourcePhases(t *testing.T) {
	tests := map[string]struct {
		change          func(*Observation)
		release, object v1alpha1.InstancePhase
		message         string
	}{
		"Ready":     {func(*Observation) {}, v1alpha1.Ready, v1alpha1.Ready, ""},
		"Upgrading": {func(o *Observation) { o.Server.HelmRelease.Generation++ }, v1alpha1.Progressing, v1alpha1.Progressing, "being updated"},
		"Stalled": {func(o *Observation) {
			set(&o.Server.HelmRelease.Status.Conditions, condition("Stalled", metav1.ConditionTrue, "RetriesExceeded", "m", 3))
		}, v1alpha1.Failed, v1alpha1.Progressing, "gave up"},
		"Unreachable": {func(o *Observation) {
			ready(metav1.ConditionFalse, stateError, "i/o timeout")(o.Server.HelmRelease)
		}, v1alpha1.Unknown, v1alpha1.Unknown, "cannot be reached"},
		"BeingDeleted": {func(o *Observation) { o.Server.HelmRelease.DeletionTimestamp = &later }, v1alpha1.Terminating, v1alpha1.Terminating, ""},
		"UntouchedWhileAChartIsMissing": {func(o *Observation) {
			next := fixture(t, plan.ServerRelease, "0.2.0")
			o.Server.Wanted, o.Server.Source = next.Wanted, nil
		}, v1alpha1.Ready, v1alpha1.Ready, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			velero, observed := stored(t)
			withInventory(&observed)
			test.change(&observed)
			for _, resource := range Compute(velero, observed, later).Resources {
				want := test.object
				switch {
				case resource.Kind == helmv2.HelmReleaseKind && resource.Name == plan.ServerRelease:
					want = test.release
				case resource.Location != v1alpha1.WorkloadCluster:
					continue
				}
				if resource.Phase != want || (test.message == "") != (resource.Message == "") || !strings.Contains(resource.Message, test.message) {
					t.Errorf("%s %s is %s: %q", resource.Kind, resource.Name, resource.Phase, resource.Message)
				}
			}
		})
	}
}

func TestInventoryEntries(t *testing.T) {
	tests := map[string]objectID{
		"ns_name_apps_Deployment":                     {"ns", "name", "apps", "Deployment"},
		"_name_apiextensions.k8s.io_CustomResource":   {"", "name", "apiextensions.k8s.io", "CustomResource"},
		"ns_name__ConfigMap":                          {"ns", "name", "", "ConfigMap"},
		"_system__node_rbac.authorization.k8s.io_Foo": {"", "system:node", "rbac.authorization.k8s.io", "Foo"},
		"_a__b__c__Secret":                            {"", "a:b:c", "", "Secret"},
		"":                                            {},
		"name":                                        {},
		"ns_name_Kind":                                {},
		"___":                                         {},
	}
	for id, want := range tests {
		got, ok := parseID(id)
		if ok != (want != objectID{}) || ok && got != want {
			t.Errorf("%q is %+v, %v", id, got, ok)
		}
	}
}

func TestResourcesAreBounded(t *testing.T) {
	velero, observed := healthy(t)
	for i := range 400 {
		entries := &observed.ControlPlane.HelmRelease.Status
		if entries.Inventory == nil {
			entries.Inventory = inventory("malformed", "velero_x-000__ConfigMap")
		}
		entries.Inventory.Entries = append(entries.Inventory.Entries, helmv2.ResourceRef{ID: fmt.Sprintf("velero_x-%03d__ConfigMap", i)})
	}
	got := Compute(velero, observed, earlier).Resources
	if len(got) != 256 || got[255].Name != "x-251" {
		t.Errorf("%d resources, the last is %s", len(got), got[len(got)-1].Name)
	}
}
