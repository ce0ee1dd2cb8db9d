package controller

import (
	"context"
	"fmt"
	"net/http"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// fluxPoll is how often to look whether Flux was installed in the meantime.
const fluxPoll = 5 * time.Second

// flux begins to watch Flux's objects when their kinds are served. A watch of a kind that is not there would keep all others from starting,
// and end the process after some time: nobody would be told anything, and no deletion would go on.
type flux struct {
	mapper  apimeta.RESTMapper
	watcher controller.Controller
	sources []source.Source
}

// missing are the kinds that are not served.
func (f *flux) missing() ([]string, error) {
	var missing []string
	for _, kind := range []schema.GroupVersionKind{
		helmv2.GroupVersion.WithKind(helmv2.HelmReleaseKind), sourcev1.GroupVersion.WithKind(sourcev1.OCIRepositoryKind),
	} {
		_, err := f.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if apimeta.IsNoMatchError(err) {
			missing = append(missing, kind.String())
		} else if err != nil {
			return nil, fmt.Errorf("look for kind %s: %w", kind.Kind, err)
		}
	}
	return missing, nil
}

// watch registers the watches.
func (f *flux) watch() error {
	for _, watched := range f.sources {
		if err := f.watcher.Watch(watched); err != nil {
			return fmt.Errorf("watch Flux: %w", err)
		}
	}
	return nil
}

// Start implements manager.Runnable: it waits for the kinds, and then watches them.
func (f *flux) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("flux")
	told := false
	err := wait.PollUntilContextCancel(ctx, fluxPoll, true, func(context.Context) (bool, error) {
		missing, err := f.missing()
		switch {
		case err != nil:
			log.Error(err, "cannot find out whether Flux is installed")
		case len(missing) > 0 && !told:
			told = true
			log.Info("waiting for Flux: the platform cluster does not serve its kinds", "missing", missing)
		}
		return err == nil && len(missing) == 0, nil
	})
	if err != nil {
		// The process ends.
		return nil //nolint:nilerr // as said above
	}
	log.Info("Flux is there")
	return f.watch()
}

// ready is a readiness check: without Flux nothing can be installed.
func (f *flux) ready(*http.Request) error {
	missing, err := f.missing()
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("the platform cluster does not serve %v", missing)
	}
	return err
}

// everybody enqueues every Velero once: those that could not be installed need not wait for their next attempt.
func (r *Reconciler) everybody(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	for _, request := range r.list(ctx) {
		queue.Add(request)
	}
	return nil
}
