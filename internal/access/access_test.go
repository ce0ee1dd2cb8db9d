package access

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"
	openmcpconst "github.com/openmcp-project/openmcp-operator/api/constants"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// grantedRequest is one that counts.
func grantedRequest(change func(*clustersv1alpha1.AccessRequest)) *clustersv1alpha1.AccessRequest {
	request := &clustersv1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	request.Status.Phase, request.Status.ObservedGeneration = clustersv1alpha1.REQUEST_GRANTED, 2
	request.Status.SecretRef = &commonapi.LocalObjectReference{Name: "kubeconfig"}
	change(request)
	return request
}

func TestJudge(t *testing.T) {
	tests := map[string]struct {
		change func(*clustersv1alpha1.AccessRequest)
		// counts, fails: neither is waiting.
		counts, fails bool
	}{
		"Granted":           {change: func(*clustersv1alpha1.AccessRequest) {}, counts: true},
		"New":               {change: func(r *clustersv1alpha1.AccessRequest) { r.Status = clustersv1alpha1.AccessRequestStatus{} }},
		"Pending":           {change: func(r *clustersv1alpha1.AccessRequest) { r.Status.Phase = clustersv1alpha1.REQUEST_PENDING }},
		"OlderGeneration":   {change: func(r *clustersv1alpha1.AccessRequest) { r.Status.ObservedGeneration = 1 }},
		"UnknownGeneration": {change: func(r *clustersv1alpha1.AccessRequest) { r.Status.ObservedGeneration = 0 }},
		"NoSecret":          {change: func(r *clustersv1alpha1.AccessRequest) { r.Status.SecretRef = nil }},
		"NamelessSecret":    {change: func(r *clustersv1alpha1.AccessRequest) { r.Status.SecretRef.Name = "" }},
		"BeingDeleted":      {change: func(r *clustersv1alpha1.AccessRequest) { r.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }},
		"Denied":            {change: func(r *clustersv1alpha1.AccessRequest) { r.Status.Phase = clustersv1alpha1.REQUEST_DENIED }, fails: true},
		"DeniedBeforeAnyLook": {change: func(r *clustersv1alpha1.AccessRequest) {
			r.Status.Phase, r.Status.SecretRef = clustersv1alpha1.REQUEST_DENIED, nil
		}, fails: true},
		"DeniedInAnOlderGeneration": {change: func(r *clustersv1alpha1.AccessRequest) {
			r.Status.Phase, r.Status.ObservedGeneration = clustersv1alpha1.REQUEST_DENIED, 1
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, id := range ids {
				waiting := judge(grantedRequest(test.change), id)
				if test.counts != (waiting == nil) {
					t.Fatalf("%s: %+v", id, waiting)
				}
				if waiting == nil {
					continue
				}
				want := map[bool]string{true: v1alpha1.ReasonWaitingForWorkloadCluster, false: v1alpha1.ReasonWaitingForControlPlane}[id == Workload]
				if test.fails {
					want = v1alpha1.ReasonAccessDenied
				}
				if waiting.Failed != test.fails || waiting.Reason != want {
					t.Errorf("%s: %+v, want reason %s", id, waiting, want)
				}
			}
		})
	}
}

func TestGuarded(t *testing.T) {
	names, err := plan.NamesOf(types.NamespacedName{Namespace: "default", Name: "test-mcp"})
	if err != nil {
		t.Fatal(err)
	}
	secret := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"theirs": "1"}, Finalizers: []string{"theirs/1"}}}
	if !guarded(secret, names) {
		t.Error("nothing had to be done")
	}
	want := metav1.ObjectMeta{
		Labels:     map[string]string{"theirs": "1", plan.InstanceLabel: names.Instance, "reconcile.fluxcd.io/watch": "Enabled"},
		Finalizers: []string{"theirs/1", plan.Finalizer},
	}
	if diff := cmp.Diff(want, secret.ObjectMeta); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	if guarded(secret, names) {
		t.Error("it had to be done twice")
	}
	secret.Labels[plan.InstanceLabel] = "another"
	if !guarded(secret, names) || secret.Labels[plan.InstanceLabel] != names.Instance {
		t.Error("a label that was changed stays changed")
	}
}

// TestOurs: what cannot be proven is not ours.
func TestOurs(t *testing.T) {
	names, err := plan.NamesOf(types.NamespacedName{Namespace: "default", Name: "test-mcp"})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		change func(labels map[string]string)
		want   bool
	}{
		"AsCreated":       {func(map[string]string) {}, true},
		"OnlyInstance":    {func(labels map[string]string) { clear(labels); labels[plan.InstanceLabel] = names.Instance }, true},
		"WithoutInstance": {func(labels map[string]string) { delete(labels, plan.InstanceLabel) }, true},
		"AnotherInstance": {func(labels map[string]string) { labels[plan.InstanceLabel] = "another" }, false},
		"NoLabels":        {func(labels map[string]string) { clear(labels) }, false},
		"OfAnotherManager": {func(labels map[string]string) {
			delete(labels, plan.InstanceLabel)
			labels[openmcpconst.ManagedByLabel] = "another"
		}, false},
		"OfAnotherTenant": {func(labels map[string]string) {
			delete(labels, plan.InstanceLabel)
			labels[openmcpconst.OnboardingNameLabel] = "another"
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			request := &clustersv1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{Labels: names.Labels()}}
			request.Labels[openmcpconst.ManagedByLabel] = plan.ProviderName
			test.change(request.Labels)
			if got := ours(request, names); got != test.want {
				t.Errorf("ours: %t, want %t", got, test.want)
			}
		})
	}
}

// TestNamesOfRequests: they are derived from the Velero, in the tenant's namespace, and never longer than the API server accepts.
func TestNamesOfRequests(t *testing.T) {
	seen := map[types.NamespacedName]bool{}
	for _, velero := range []types.NamespacedName{
		{Namespace: "default", Name: "test-mcp"}, {Namespace: "team-b", Name: "test-mcp"}, {Namespace: "default", Name: strings.Repeat("long-name-", 25)}, {Namespace: "default", Name: "with.dots"},
	} {
		names, err := plan.NamesOf(velero)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			key := requestKey(velero, names, id)
			if seen[key] || key.Namespace != names.TenantNamespace || len(key.Name) > 63 {
				t.Errorf("%s: %s has %d characters, or is taken: %v", velero, key, len(key.Name), seen[key])
			}
			seen[key] = true
		}
	}
}
