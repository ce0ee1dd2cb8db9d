package clusterprovider

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"
)

var rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}

func TestRightsOfARequest(t *testing.T) {
	request := requestFor(
		clustersv1alpha1.PermissionsRequest{Rules: rules},
		clustersv1alpha1.PermissionsRequest{Namespace: "tenant", Rules: rules},
		clustersv1alpha1.PermissionsRequest{Namespace: "other", Name: "chosen", Rules: rules, DisableAutomaticNamespaceCreation: true},
	)
	request.Spec.Token.RoleRefs = []commonapi.RoleRef{
		{Kind: "ClusterRole", Name: "cluster-admin"}, {Kind: "Role", Namespace: "there", Name: "reader"},
	}
	base := accountName(request)
	got := rightsOf(request)
	want := map[objectKey]bool{
		{"ClusterRole", "", base + "-0"}:            true,
		{"ClusterRoleBinding", "", base + "-0"}:     true,
		{"Role", "tenant", base + "-1"}:             true,
		{"RoleBinding", "tenant", base + "-1"}:      true,
		{"Role", "other", "chosen"}:                 true,
		{"RoleBinding", "other", "chosen"}:          true,
		{"ClusterRoleBinding", "", base + "-ref-0"}: true,
		{"RoleBinding", "there", base + "-ref-1"}:   true,
	}
	if diff := cmp.Diff(want, got.keys()); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"tenant"}, got.namespaces); diff != "" {
		t.Errorf("namespaces to create (-want +got):\n%s", diff)
	}
}

func TestChangedPermissionLeavesNothingBehind(t *testing.T) {
	before := rightsOf(requestFor(
		clustersv1alpha1.PermissionsRequest{Namespace: "a", Rules: rules}, clustersv1alpha1.PermissionsRequest{Rules: rules}))
	after := rightsOf(requestFor(clustersv1alpha1.PermissionsRequest{Namespace: "b", Rules: rules}))
	wanted := after.keys()
	var stale int
	for key := range before.keys() {
		if !wanted[key] {
			stale++
		}
	}
	if stale != 4 {
		t.Errorf("%d objects count as stale, want the 4 of both old permissions", stale)
	}
}

func TestRequestsOfOneNameInTwoNamespacesDoNotShareAnAccount(t *testing.T) {
	one, two := requestFor(), requestFor()
	two.Namespace = "mcp--other"
	if accountName(one) == accountName(two) {
		t.Error("two tenants share a ServiceAccount")
	}
}

func TestRenewalOfAToken(t *testing.T) {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	expires := created.Add(10 * time.Hour)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created.Add(-time.Hour))}}
	recreated := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created.Add(time.Hour))}}
	data := func(change func(map[string][]byte)) *corev1.Secret {
		d := map[string][]byte{"kubeconfig": []byte("x"), "creationTimestamp": unix(created), "expirationTimestamp": unix(expires)}
		change(d)
		return &corev1.Secret{Data: d}
	}
	tests := map[string]struct {
		secret  *corev1.Secret
		account *corev1.ServiceAccount
		valid   bool
	}{
		"Complete":             {data(func(map[string][]byte) {}), account, true},
		"NoKubeconfig":         {data(func(d map[string][]byte) { delete(d, "kubeconfig") }), account, false},
		"NoExpiration":         {data(func(d map[string][]byte) { delete(d, "expirationTimestamp") }), account, false},
		"MalformedTime":        {data(func(d map[string][]byte) { d["creationTimestamp"] = []byte("yesterday") }), account, false},
		"AccountCreatedSince":  {data(func(map[string][]byte) {}), recreated, false},
		"SecretThatIsNotThere": {&corev1.Secret{}, account, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			renewal, valid := renewalOf(test.secret, test.account)
			if valid != test.valid {
				t.Errorf("valid = %v", valid)
			}
			if want := created.Add(8 * time.Hour); valid && !renewal.Equal(want) {
				t.Errorf("renewal at %v, want %v, at 80%% of the life", renewal, want)
			}
		})
	}
}

func TestServerBehindACluster(t *testing.T) {
	tests := map[string]struct {
		purposes []string
		want     string
	}{
		"Platform":         {[]string{"platform"}, "platform"},
		"Onboarding":       {[]string{"onboarding"}, "onboarding"},
		"Workload":         {[]string{"workload"}, "workload"},
		"ControlPlane":     {[]string{"mcp"}, "clusters.some"},
		"WithoutApps":      {[]string{PurposeWithoutApps}, "clusters.some"},
		"AnythingElseToo":  {[]string{"ci"}, "workload"},
		"FirstOfSeveral":   {[]string{"workload", "onboarding"}, "onboarding"},
		"ControlPlaneWins": {[]string{"workload", "mcp"}, "clusters.some"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &clustersv1alpha1.Cluster{Spec: clustersv1alpha1.ClusterSpec{Purposes: test.purposes}}
			cluster.Namespace, cluster.Name = "clusters", "some"
			if got := ServerName(cluster); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestSecretNameFits(t *testing.T) {
	if got := secretName("short"); got != "short.kubeconfig" {
		t.Errorf("got %s", got)
	}
	long := "velero.services.openmcp.cloud--test-mcp--a-very-long-suffix-that-goes-on"
	if got := secretName(long); len(got) > 63 {
		t.Errorf("%s has %d characters", got, len(got))
	}
}

func requestFor(permissions ...clustersv1alpha1.PermissionsRequest) *clustersv1alpha1.AccessRequest {
	request := &clustersv1alpha1.AccessRequest{}
	request.Namespace, request.Name = "mcp--tenant", "request"
	request.Spec.Token = &clustersv1alpha1.TokenConfig{Permissions: permissions}
	return request
}
