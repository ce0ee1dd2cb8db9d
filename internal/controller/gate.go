package controller

import (
	"context"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/cluster"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/internal/status"
)

// glance bounds a look at another cluster that a tenant who waits can do without: it holds a worker.
const glance = 5 * time.Second

// gate is what a change of the server passes that is about to be written. A restart fails the backups and restores that run, so it waits for them.
type gate struct {
	*Reconciler
	velero   *v1alpha1.Velero
	resolved *plan.Plan
	grant    plan.Grant
}

// holds is the wait of a change; nil when it may be made. The control plane is looked at only when it matters.
func (g *gate) holds(ctx context.Context, current, wanted *helmv2.HelmRelease) (*status.Hold, error) {
	now := time.Now()
	pending := g.velero.Status.PendingChange
	if current == nil || !cluster.Restarts(current, wanted) || !status.Interrupts(current) || status.Expired(pending, now) {
		return nil, nil
	}
	ongoing, err := g.ongoing(ctx)
	unseen := cluster.Unseen(err)
	if err != nil && !unseen {
		return nil, err
	}
	if unseen {
		logf.FromContext(ctx).Info("a change of a server waits for its control plane", "cause", err.Error())
	}
	hold := status.Gate(pending, ongoing, unseen, now)
	if hold != nil {
		hold.Change = g.resolved.Change(current.Spec.Values)
	}
	return hold, nil
}

func (g *gate) ongoing(ctx context.Context) ([]string, error) {
	remote, err := g.Platform.Remote(ctx, g.resolved.Names, g.grant)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, glance)
	defer cancel()
	return cluster.Ongoing(ctx, remote, g.resolved.Names.ControlPlaneNamespace)
}
