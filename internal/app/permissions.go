package app

import (
	rbacv1 "k8s.io/api/rbac/v1"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/access"
)

// This file is every right that the provider has on any cluster. It feeds the AccessRequests, and the landscape binds the operator's user on
// the platform to exactly PlatformInit and PlatformRun, so a right that is missing here fails the tests.

var (
	read  = []string{"get", "list", "watch"}
	write = []string{"create", "update", "patch", "delete"}
)

func rule(groups, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: groups, Resources: resources, Verbs: verbs}
}

func list(items ...string) []string { return items }

// definitions are rights on CRDs of these names only; create cannot be limited to names.
func definitions(names []string, verbs ...string) []rbacv1.PolicyRule {
	group, resource := list("apiextensions.k8s.io"), list("customresourcedefinitions")
	return []rbacv1.PolicyRule{
		{APIGroups: group, Resources: resource, ResourceNames: names, Verbs: verbs},
		rule(group, resource, "create"),
	}
}

// veleroCRDs are the CRDs of chart velero-control-plane.
var veleroCRDs = list(
	"backuprepositories.velero.io", "backups.velero.io", "backupstoragelocations.velero.io", "datadownloads.velero.io", "datauploads.velero.io",
	"deletebackuprequests.velero.io", "downloadrequests.velero.io", "podvolumebackups.velero.io", "podvolumerestores.velero.io",
	"restores.velero.io", "schedules.velero.io", "serverstatusrequests.velero.io", "volumesnapshotlocations.velero.io",
)

func both(a, b []string) []string { return append(append([]string{}, a...), b...) }

// PlatformInit is what init does on the platform cluster: install its CRDs, get access to the onboarding cluster, register its API.
func PlatformInit() []rbacv1.PolicyRule {
	return append(definitions(list("providerconfigs."+v1alpha1.GroupVersion.Group), "get", "update", "patch"),
		rule(list("clusters.openmcp.cloud"), list("accessrequests", "clusterrequests"), "get", "create", "update", "patch"),
		rule(list(""), list("secrets"), "get"),
		rule(list("openmcp.cloud"), list("serviceproviders"), "get"),
		rule(list("openmcp.cloud"), list("serviceproviders/status"), "patch"),
	)
}

// PlatformRun is what run does on the platform cluster. Secrets are listed and watched as metadata only, which the API server cannot tell apart.
func PlatformRun() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(list(v1alpha1.GroupVersion.Group), list("providerconfigs"), both(read, list("patch"))...),
		rule(list(v1alpha1.GroupVersion.Group), list("providerconfigs/status"), "patch"),
		rule(list("clusters.openmcp.cloud"), list("accessrequests", "clusterrequests"), both(read, write)...),
		rule(list("clusters.openmcp.cloud"), list("clusters"), "get"),
		rule(list("helm.toolkit.fluxcd.io"), list("helmreleases"), both(read, write)...),
		rule(list("source.toolkit.fluxcd.io"), list("ocirepositories"), both(read, write)...),
		rule(list(""), list("secrets"), both(read, write)...),
		rule(list(""), list("configmaps"), read...),
		rule(list(""), list("namespaces"), read...),
		rule(list("coordination.k8s.io"), list("leases"), "get", "create", "update"),
		rule(list("", "events.k8s.io"), list("events"), "create", "patch"),
	}
}

// onboardingInit is what init does on the onboarding cluster: install its CRDs.
func onboardingInit() []clustersv1alpha1.PermissionsRequest {
	return []clustersv1alpha1.PermissionsRequest{{Rules: definitions(list("veleros."+v1alpha1.GroupVersion.Group), "get", "update", "patch")}}
}

// onboardingRun is what run does on the onboarding cluster: follow the Veleros and tell their users about them.
func onboardingRun() []clustersv1alpha1.PermissionsRequest {
	return []clustersv1alpha1.PermissionsRequest{{Rules: []rbacv1.PolicyRule{
		rule(list(v1alpha1.GroupVersion.Group), list("veleros"), both(read, list("patch"))...),
		rule(list(v1alpha1.GroupVersion.Group), list("veleros/status"), "patch"),
		rule(list("", "events.k8s.io"), list("events"), "create", "patch"),
	}}}
}

// TenantPermissions are the rights on a tenant's control plane and on the workload cluster.
func TenantPermissions() access.Permissions {
	return access.Permissions{
		ControlPlane: controlPlane(),
		// Velero backs up and restores everything, RBAC included, and the API server lets nobody hand out more than they have.
		ServerRoles: []commonapi.RoleRef{{Kind: "ClusterRole", Name: "cluster-admin"}},
		Workload:    workload,
	}
}

// controlPlane is what Flux does with chart velero-control-plane, and what a deletion and a change of the server look at. The namespaced parts are granted for all
// namespaces, since a Role goes with its namespace: when a tenant deletes namespace velero, Flux must be able to bring it back.
func controlPlane() []clustersv1alpha1.PermissionsRequest {
	return []clustersv1alpha1.PermissionsRequest{{Rules: append(definitions(veleroCRDs, "get", "update", "patch", "delete"),
		rule(list("apiextensions.k8s.io"), list("customresourcedefinitions"), "list", "watch"),
		rule(list(""), list("namespaces"), both(read, list("create", "update", "patch"))...),
		rule(list(""), list("secrets"), both(read, write)...),
		rule(list("apps"), list("deployments"), both(read, write)...),
		rule(list("velero.io"), list("backups", "restores", "schedules", "backupstoragelocations", "volumesnapshotlocations"), "list"),
	)}}
}

// workload is what Flux does with chart velero-server, in the tenant's namespace only, and what a deletion does with that namespace.
func workload(namespace string) []clustersv1alpha1.PermissionsRequest {
	return []clustersv1alpha1.PermissionsRequest{
		{Namespace: namespace, Rules: []rbacv1.PolicyRule{
			rule(list(""), list("secrets", "serviceaccounts", "services", "configmaps"), both(read, write)...),
			rule(list("apps"), list("deployments"), both(read, write)...),
			rule(list("networking.k8s.io"), list("networkpolicies"), both(read, write)...),
			rule(list("monitoring.coreos.com"), list("servicemonitors", "prometheusrules"), both(read, write)...),
			// To tell whether the Deployment became ready, and why not.
			rule(list(""), list("pods", "events"), read...),
			rule(list("apps"), list("replicasets"), read...),
		}},
		{Rules: []rbacv1.PolicyRule{
			{APIGroups: list(""), Resources: list("namespaces"), ResourceNames: list(namespace), Verbs: list("get", "delete")},
		}},
	}
}
