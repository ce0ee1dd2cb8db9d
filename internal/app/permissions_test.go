package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
)

const serverNamespace = "velero--1234"

// tables are all rights that are asked for as rules; those in namespaces apart from those everywhere.
func tables() map[string][]rbacv1.PolicyRule {
	tables := map[string][]rbacv1.PolicyRule{"PlatformInit": PlatformInit(), "PlatformRun": PlatformRun()}
	for name, requests := range map[string][]clustersv1alpha1.PermissionsRequest{
		"OnboardingInit": onboardingInit(), "OnboardingRun": onboardingRun(),
		"ControlPlane": TenantPermissions().ControlPlane, "Workload": TenantPermissions().Workload(serverNamespace),
	} {
		for _, request := range requests {
			key := name
			if request.Namespace != "" {
				key += "/" + request.Namespace
			}
			tables[key] = append(tables[key], request.Rules...)
		}
	}
	return tables
}

func TestNoWildcards(t *testing.T) {
	for name, rules := range tables() {
		for _, rule := range rules {
			if slices.Contains(rule.Verbs, "*") || slices.Contains(rule.APIGroups, "*") || len(rule.NonResourceURLs) > 0 {
				t.Errorf("%s: %v is more than anybody asked for", name, rule)
			}
			if slices.Contains(rule.Resources, "*") {
				t.Errorf("%s: %v is about every kind", name, rule)
			}
			if len(rule.Verbs) == 0 || len(rule.APIGroups) == 0 || len(rule.Resources) == 0 {
				t.Errorf("%s: %v allows nothing", name, rule)
			}
		}
	}
}

// TestNobodyCanRaiseRights: the rights must not be a way to more rights.
func TestNobodyCanRaiseRights(t *testing.T) {
	for name, rules := range tables() {
		for _, rule := range rules {
			for _, verb := range []string{"escalate", "bind", "impersonate", "deletecollection"} {
				if slices.Contains(rule.Verbs, verb) {
					t.Errorf("%s: %v allows to %s", name, rule, verb)
				}
			}
			for _, group := range []string{"rbac.authorization.k8s.io", "admissionregistration.k8s.io", "certificates.k8s.io", "authentication.k8s.io"} {
				if slices.Contains(rule.APIGroups, group) {
					t.Errorf("%s: %v is about %s", name, rule, group)
				}
			}
			for _, resource := range rule.Resources {
				if _, subresource, _ := strings.Cut(resource, "/"); slices.Contains([]string{"token", "exec", "attach", "portforward", "proxy", "ephemeralcontainers"}, subresource) {
					t.Errorf("%s: %v reaches into what runs", name, rule)
				}
			}
		}
	}
}

// TestWorkloadIsOneNamespace: the workload cluster is shared by all tenants.
func TestWorkloadIsOneNamespace(t *testing.T) {
	for _, request := range TenantPermissions().Workload(serverNamespace) {
		switch request.Namespace {
		case serverNamespace:
		case "":
			for _, rule := range request.Rules {
				if !slices.Equal(rule.Resources, []string{"namespaces"}) || !slices.Equal(rule.ResourceNames, []string{serverNamespace}) {
					t.Errorf("%v reaches beyond namespace %s", rule, serverNamespace)
				}
				for _, verb := range rule.Verbs {
					if verb != "get" && verb != "delete" {
						t.Errorf("%v allows to %s the namespace", rule, verb)
					}
				}
			}
		default:
			t.Errorf("%s is not the tenant's namespace", request.Namespace)
		}
	}
	if !allows(tables()["Workload/"+serverNamespace], "", "secrets", "create") {
		t.Error("Flux cannot write the server's Secrets")
	}
	if allows(tables()["Workload"], "", "secrets", "get") {
		t.Error("every tenant's Secrets can be read")
	}
}

// TestRightsAreSeparate: what must not be possible, however the tables change.
func TestRightsAreSeparate(t *testing.T) {
	forbidden := []struct{ table, group, resource, verb string }{
		{"PlatformInit", "", "secrets", "list"},
		{"PlatformInit", "", "secrets", "create"},
		{"PlatformInit", "openmcp.cloud", "serviceproviders", "update"},
		{"PlatformInit", "helm.toolkit.fluxcd.io", "helmreleases", "create"},
		{"PlatformRun", "apiextensions.k8s.io", "customresourcedefinitions", "get"},
		{"PlatformRun", "openmcp.cloud", "serviceproviders/status", "patch"},
		{"PlatformRun", "", "configmaps", "update"},
		{"PlatformRun", "", "namespaces", "create"},
		{"PlatformRun", "clusters.openmcp.cloud", "clusters", "delete"},
		{"PlatformRun", "velero.services.openmcp.cloud", "providerconfigs", "delete"},
		{"OnboardingInit", "velero.services.openmcp.cloud", "veleros", "get"},
		{"OnboardingRun", "apiextensions.k8s.io", "customresourcedefinitions", "update"},
		{"OnboardingRun", "velero.services.openmcp.cloud", "veleros", "create"},
		{"OnboardingRun", "velero.services.openmcp.cloud", "veleros", "delete"},
		{"OnboardingRun", "", "secrets", "get"},
		{"OnboardingRun", "coordination.k8s.io", "leases", "create"},
		{"ControlPlane", "", "namespaces", "delete"},
		{"ControlPlane", "velero.io", "backups", "delete"},
		{"ControlPlane", "", "pods", "create"},
		{"ControlPlane", "", "serviceaccounts", "create"},
		{"Workload/" + serverNamespace, "", "pods", "create"},
		{"Workload/" + serverNamespace, "batch", "jobs", "create"},
	}
	all := tables()
	for _, test := range forbidden {
		t.Run(fmt.Sprintf("%s/%s %s", test.table, test.verb, test.resource), func(t *testing.T) {
			if len(all[test.table]) == 0 {
				t.Fatalf("there is no table %s", test.table)
			}
			if allows(all[test.table], test.group, test.resource, test.verb) {
				t.Error("it is allowed")
			}
		})
	}
}

// allows is how the API server reads rules.
func allows(rules []rbacv1.PolicyRule, group, resource, verb string) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		covers := func(list []string, item string) bool {
			return slices.Contains(list, item) || slices.Contains(list, "*")
		}
		return covers(rule.APIGroups, group) && covers(rule.Resources, resource) && covers(rule.Verbs, verb)
	})
}

// TestTablesAreFresh: a caller that changes what it gets must not change what others get.
func TestTablesAreFresh(t *testing.T) {
	PlatformRun()[0].Verbs[0] = "changed"
	for name, rules := range tables() {
		for _, rule := range rules {
			if slices.Contains(rule.Verbs, "changed") {
				t.Errorf("%s: %v was changed from outside", name, rule)
			}
		}
	}
}
