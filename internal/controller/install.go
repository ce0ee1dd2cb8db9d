package controller

import (
	"context"
	"fmt"
	"slices"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/fluxgen"
	"github.com/openmcp-project/service-provider-velero/internal/access"
	"github.com/openmcp-project/service-provider-velero/internal/cluster"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/internal/status"
)

// install makes the platform hold what the Velero asks for, as far as that is possible now, and returns what was seen, also when it failed. When
// a person must act first, nothing that runs is touched.
func (r *Reconciler) install(ctx context.Context, velero *v1alpha1.Velero) (status.Observation, error) {
	resolved, blocked, err := r.resolve(ctx, velero)
	if err != nil {
		return status.Observation{}, err
	}
	names, err := plan.NamesOf(client.ObjectKeyFromObject(velero))
	if err != nil {
		return status.Observation{}, err
	}
	observed, err := r.Platform.Observe(ctx, names)
	if err != nil {
		return status.Observation{}, err
	}
	observation := status.Observation{
		Blocked:      blocked,
		ControlPlane: status.Release{HelmRelease: observed.Releases[plan.ControlPlaneRelease]},
		Server:       status.Release{HelmRelease: observed.Releases[plan.ServerRelease]},
	}
	if blocked == nil {
		observation.Warnings = resolved.Warnings()
	}
	outcome, err := r.access(ctx, velero, blocked)
	if err != nil {
		return observation, err
	}
	if waiting := outcome.Waiting; waiting != nil {
		observation.Access = status.Access{Reason: waiting.Reason, Message: waiting.Message, Failed: waiting.Failed, Unwatched: waiting.Unwatched}
		return observation, r.renewIdentity(ctx, names, outcome.Grants, observed)
	}
	observation.Access.Granted = true
	if blocked != nil {
		return observation, r.renewIdentity(ctx, names, outcome.Grants, observed)
	}
	err = r.apply(ctx, velero, resolved, outcome.Grants, observed, &observation)
	if conflict := blockedBy(err); conflict != nil {
		observation.Blocked = conflict
		return observation, nil
	}
	return observation, err
}

// access requests what is needed. While the configuration cannot be used it only looks at what was granted before: nobody should hold an
// administrator's rights on a control plane for a server that is not there.
func (r *Reconciler) access(ctx context.Context, velero *v1alpha1.Velero, blocked *plan.Blocked) (access.Outcome, error) {
	if blocked != nil {
		return r.Access.Look(ctx, client.ObjectKeyFromObject(velero))
	}
	return r.Access.Ensure(ctx, client.ObjectKeyFromObject(velero))
}

func (r *Reconciler) resolve(ctx context.Context, velero *v1alpha1.Velero) (*plan.Plan, *plan.Blocked, error) {
	config, err := r.Configs.Current(ctx)
	if err != nil {
		return nil, nil, err
	}
	request := plan.Request{Velero: client.ObjectKeyFromObject(velero), Spec: velero.Spec}
	if config != nil {
		request.Config = &config.Spec
		if request.Sources, err = r.Platform.Versions(ctx, plan.References(&config.Spec)); err != nil {
			return nil, nil, err
		}
	}
	resolved, blocked := plan.Resolve(request)
	return resolved, blocked, nil
}

// apply writes what differs: first the Secrets that the rest refers to, then the releases, then it removes what nothing refers to any more.
func (r *Reconciler) apply(ctx context.Context, velero *v1alpha1.Velero, resolved *plan.Plan, grants plan.Grants, observed cluster.Observation, observation *status.Observation) error {
	secrets := resolved.Secrets(grants)
	releases, err := resolved.Releases(grants)
	if err != nil {
		return fmt.Errorf("describe releases: %w", err)
	}
	now, err := r.itsTurn(velero, resolved, releases, observed)
	if err != nil {
		return err
	}
	if !now {
		observation.Blocked, err = r.renew(ctx, resolved, secrets, grants, observed)
		observation.Queued = observation.Blocked == nil
		return err
	}
	if observation.Blocked, err = r.generateAll(ctx, resolved, secrets, observed); observation.Blocked != nil || err != nil {
		return err
	}
	server := &gate{r, velero, resolved, grants.ControlPlane}
	if observation.Hold, err = r.releases(ctx, releases, server, observed, observation); err != nil {
		return err
	}
	if err := r.diagnose(ctx, velero, resolved, grants.Workload, observation); err != nil {
		return err
	}
	return r.prune(ctx, secrets, observed, observation)
}

// releases applies those of the control plane and of the server, which may have to wait at its gate.
func (r *Reconciler) releases(ctx context.Context, wanted []fluxgen.Release, server *gate, observed cluster.Observation, observation *status.Observation) (*status.Hold, error) {
	if _, err := r.release(ctx, wanted[0], false, nil, observed, &observation.ControlPlane); err != nil {
		return nil, err
	}
	// The server needs the CRDs to start; once it is installed, each release goes its own way.
	hold := observation.Server.HelmRelease == nil && !status.Installed(observation.ControlPlane)
	return r.release(ctx, wanted[1], hold, server, observed, &observation.Server)
}

// renewIdentity keeps a server's own credentials up to date while nothing else about it may change: its configuration cannot be used or has
// to wait, or another access is not granted. It needs the server's grant alone.
func (r *Reconciler) renewIdentity(ctx context.Context, names plan.Names, grants plan.Grants, observed cluster.Observation) error {
	wanted := plan.Identity(grants.Server)
	if grants.Server.Secret == "" || observed.Secrets[wanted.Name] == nil {
		return nil
	}
	_, err := r.generate(ctx, names, wanted, observed, func(wanted plan.GeneratedSecret, contents map[plan.Source]plan.Content) (*corev1.Secret, *plan.Blocked) {
		return plan.GenerateIdentity(names, wanted, contents)
	})
	return err
}

// renew keeps the generated Secrets of a Velero up to date whose new configuration has to wait: what is rotated must not wait too. Those that
// the new configuration makes from something else, or no longer, stay as what runs needs them.
func (r *Reconciler) renew(ctx context.Context, resolved *plan.Plan, secrets []plan.GeneratedSecret, grants plan.Grants, observed cluster.Observation) (*plan.Blocked, error) {
	if err := r.renewIdentity(ctx, resolved.Names, grants, observed); err != nil {
		return nil, err
	}
	rotated := slices.DeleteFunc(slices.Clone(secrets), func(secret plan.GeneratedSecret) bool {
		return secret.Identity() || !secret.SameSources(observed.Secrets[secret.Name])
	})
	return r.generateAll(ctx, resolved, rotated, observed)
}

// generateAll brings the generated Secrets up to date, until one cannot be.
func (r *Reconciler) generateAll(ctx context.Context, resolved *plan.Plan, secrets []plan.GeneratedSecret, observed cluster.Observation) (*plan.Blocked, error) {
	for _, secret := range secrets {
		if blocked, err := r.generate(ctx, resolved.Names, secret, observed, resolved.Generate); blocked != nil || err != nil {
			return blocked, err
		}
	}
	return nil, nil
}

// generate brings one generated Secret up to date. What its sources hold is only read when they changed since, or when it was edited.
func (r *Reconciler) generate(ctx context.Context, names plan.Names, wanted plan.GeneratedSecret, observed cluster.Observation, build func(plan.GeneratedSecret, map[plan.Source]plan.Content) (*corev1.Secret, *plan.Blocked)) (*plan.Blocked, error) {
	if wanted.UpToDate(observed.Secrets[wanted.Name]) {
		return nil, nil
	}
	contents, err := r.Platform.Contents(ctx, names, wanted.Sources)
	if err != nil {
		return nil, err
	}
	secret, blocked := build(wanted, contents)
	if blocked != nil {
		return blocked, nil
	}
	return nil, r.Platform.ApplySecret(ctx, secret)
}

// release applies one release. A HelmRelease is switched to another chart only when Flux has fetched it: so a chart that does not exist
// never touches what runs. Where there is a gate, it may have to wait there.
func (r *Reconciler) release(ctx context.Context, wanted fluxgen.Release, hold bool, gate *gate, observed cluster.Observation, seen *status.Release) (*status.Hold, error) {
	source, release, err := fluxgen.Render(wanted)
	if err != nil {
		return nil, fmt.Errorf("generate release %q: %w", wanted.Name, err)
	}
	seen.Wanted = &wanted
	if source, err = r.Platform.ApplySource(ctx, observed.Sources[source.Name], source); err != nil {
		return nil, err
	}
	seen.Source = source
	if hold || !status.Fetched(seen.Source) && !installsFrom(seen.HelmRelease, source.Name) {
		return nil, nil
	}
	if gate != nil {
		if wait, err := gate.holds(ctx, seen.HelmRelease, release); wait != nil || err != nil {
			return wait, err
		}
	}
	if release, err = r.Platform.ApplyRelease(ctx, seen.HelmRelease, release); err != nil {
		return nil, err
	}
	seen.HelmRelease = release
	return nil, nil
}

func installsFrom(release *helmv2.HelmRelease, source string) bool {
	return release != nil && release.Spec.ChartRef != nil && release.Spec.ChartRef.Name == source
}

// prune removes sources and copies that are no longer used, once both HelmReleases run from the wanted sources: until then the older ones
// are in use, with the Secrets that they refer to.
func (r *Reconciler) prune(ctx context.Context, secrets []plan.GeneratedSecret, observed cluster.Observation, observation *status.Observation) error {
	sources, used := map[string]bool{}, map[string]bool{}
	for _, seen := range []status.Release{observation.ControlPlane, observation.Server} {
		if !status.Installed(seen) {
			return nil
		}
		sources[fluxgen.SourceName(seen.Wanted.Chart)] = true
	}
	for _, secret := range secrets {
		used[secret.Name] = true
	}
	return r.Platform.Prune(ctx, observed, sources, used)
}
