package integration

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/access"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// TestRelabelledRequests get their labels back when what is left of them proves whose they are.
func TestRelabelledRequests(t *testing.T) {
	onlyInstance := `"openmcp.cloud/managed-by":null,"openmcp.cloud/managed-purpose":null,"app.kubernetes.io/managed-by":null,` +
		`"openmcp.cloud/onboarding-name":null,"openmcp.cloud/onboarding-namespace":null`
	for name, patch := range map[string]string{
		"edited-manager":   `"openmcp.cloud/managed-by":"somebody"`,
		"no-manager":       `"app.kubernetes.io/managed-by":null`,
		"edited-purpose":   `"openmcp.cloud/managed-purpose":"mine"`,
		"edited-tenant":    `"openmcp.cloud/onboarding-name":"mine"`,
		"only-instance":    onlyInstance,
		"without-instance": `"` + plan.InstanceLabel + `":null`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			velero, names := newTenant(t, "relabelled-"+name)
			standIn(t, velero, names)
			subject := accessOf(rights("secrets"))
			ensured(t, subject, velero)
			request := requestOf(velero, names, access.Workload)
			for _, object := range []client.Object{request, &clustersv1alpha1.ClusterRequest{ObjectMeta: request.ObjectMeta}} {
				must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(request), object))
				before := object.GetLabels()
				merge(t, platform, object, `{"metadata":{"labels":{`+patch+`}}}`)
				eventually(t, "the labels are back", func(ctx context.Context) error {
					outcome, err := subject.Ensure(ctx, velero)
					if err == nil && outcome.Waiting != nil && outcome.Waiting.Failed {
						t.Fatalf("a person is asked to act: %+v", outcome.Waiting)
					}
					must(t, platform.Get(ctx, client.ObjectKeyFromObject(object), object))
					if diff := cmp.Diff(before, object.GetLabels()); diff != "" {
						return fmt.Errorf("%T: labels (-before +after):\n%s\nand Ensure says %+v, %w", object, diff, outcome.Waiting, err)
					}
					return nil
				})
			}
			ensured(t, subject, velero)
			givesBack(t, subject, velero)
		})
	}
}

// TestRequestsThatProveNothing: a person is told what to do, and nobody touches them.
func TestRequestsThatProveNothing(t *testing.T) {
	for name, patch := range map[string]string{
		"another-instance": `{"metadata":{"labels":{"` + plan.InstanceLabel + `":"another"}}}`,
		"no-labels":        `{"metadata":{"labels":null}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			velero, names := newTenant(t, "relabelled-"+name)
			standIn(t, velero, names)
			subject := accessOf(rights("secrets"))
			ensured(t, subject, velero)
			request := requestOf(velero, names, access.Server)
			merge(t, platform, request, patch)
			eventually(t, "a person is asked to act", func(ctx context.Context) error {
				outcome, err := subject.Ensure(ctx, velero)
				want := access.Waiting{
					Failed: true, Reason: v1alpha1.ReasonNameConflict,
					Message: "a request for access to the control plane exists already and does not have the labels of this Velero; " +
						"a platform operator must give it back its label " + plan.InstanceLabel + " if somebody changed that, and else remove it",
				}
				if diff := cmp.Diff(&want, outcome.Waiting); diff != "" {
					return fmt.Errorf("error %w, waiting (-want +got):\n%s", err, diff)
				}
				return nil
			})
			before := request.DeepCopy()
			must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(request), request))
			if diff := cmp.Diff(before.ObjectMeta, request.ObjectMeta); diff != "" {
				t.Errorf("the request was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestRelabelledRequestsAreReleased: one that proves whose it is does not stay behind.
func TestRelabelledRequestsAreReleased(t *testing.T) {
	velero, names := newTenant(t, "relabelled-and-released")
	standIn(t, velero, names)
	subject := accessOf(rights("secrets"))
	ensured(t, subject, velero)
	request := requestOf(velero, names, access.Workload)
	cluster := &clustersv1alpha1.ClusterRequest{ObjectMeta: request.ObjectMeta}
	for _, object := range []client.Object{request, cluster} {
		merge(t, platform, object, `{"metadata":{"labels":{"`+plan.InstanceLabel+`":null}}}`)
	}
	givesBack(t, subject, velero)
	must(t, isGone(t.Context(), platform, request))
	must(t, isGone(t.Context(), platform, cluster))
}
