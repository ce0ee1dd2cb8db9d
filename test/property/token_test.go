package property

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	"github.com/openmcp-project/openmcp-operator/lib/clusteraccess/advanced"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/access"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

const renewedToken = "token-renewed"

func requestOf(id string, names plan.Names) types.NamespacedName {
	return types.NamespacedName{Namespace: names.TenantNamespace, Name: advanced.StableRequestName(plan.ProviderName, reconcile.Request{NamespacedName: velero}, id)}
}

// installed is a world with a Velero that is Ready.
func installed(t *testing.T) *world {
	t.Helper()
	w, err := newWorld(t.Context(), start(false))
	if err == nil {
		err = w.settle(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestTokenIsRenewed whatever else is wrong: a server that runs must not lose its access to the control plane.
func TestTokenIsRenewed(t *testing.T) {
	for name, test := range map[string]struct {
		reason string
		spoil  func(context.Context, *world) error
	}{
		"the pull secret is gone": {v1alpha1.ReasonSecretNotFound, spoiled(func(in *input) { delete(in.Objects, pullA) })},
		"the pull secret cannot be used": {v1alpha1.ReasonSecretInvalid, spoiled(func(in *input) {
			in.Objects[pullA] = content{Type: dockerConfig(0).Type}
		})},
		"access to the control plane is denied":     {v1alpha1.ReasonAccessDenied, judged(access.ControlPlane, clustersv1alpha1.REQUEST_DENIED)},
		"access to the workload cluster is denied":  {v1alpha1.ReasonAccessDenied, judged(access.Workload, clustersv1alpha1.REQUEST_DENIED)},
		"access to the workload cluster is pending": {v1alpha1.ReasonWaitingForWorkloadCluster, judged(access.Workload, clustersv1alpha1.REQUEST_PENDING)},
	} {
		t.Run(name, func(t *testing.T) {
			w := installed(t)
			if err := test.spoil(t.Context(), w); err != nil {
				t.Fatal(err)
			}
			if err := w.renewToken(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := w.reconcile(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			w.expectRenewed(t, test.reason)
		})
	}
}

func spoiled(change func(*input)) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		in := w.input.copy()
		change(&in)
		return w.apply(ctx, in)
	}
}

// judged is what the platform says of a request from now on.
func judged(id, phase string) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		request := &clustersv1alpha1.AccessRequest{}
		if err := w.platform.Get(ctx, requestOf(id, w.names[0]), request); err != nil {
			return err
		}
		request.Status.Phase, request.Status.ObservedGeneration = phase, request.Generation
		return w.platform.Status().Update(ctx, request)
	}
}

// renewToken gives the server's access another token, and leaves the other requests alone.
func (w *world) renewToken(ctx context.Context) error {
	request := &clustersv1alpha1.AccessRequest{}
	if err := w.platform.Get(ctx, requestOf(access.Server, w.names[0]), request); err != nil {
		return err
	}
	return grants{w.platform, renewedToken}.grant(ctx, request)
}

func (w *world) expectRenewed(t *testing.T, reason string) {
	t.Helper()
	identity := &corev1.Secret{}
	key := types.NamespacedName{Namespace: w.names[0].TenantNamespace, Name: plan.Identity(plan.Grant{}).Name}
	if err := w.platform.Get(t.Context(), key, identity); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(fmt.Sprintf("%s", identity.Data), renewedToken) {
		t.Error("the server does not get its renewed token")
	}
	if ready := w.ready(t); ready.Reason != reason {
		t.Errorf("Ready says %s, want %s", ready.Reason, reason)
	}
}
