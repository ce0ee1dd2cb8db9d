package plan

import (
	"fmt"
	"time"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/fluxgen"
)

const (
	// ChartVersion is the version of the two charts that this operator is released with.
	ChartVersion = "0.1.0"
	// ChartRepository is where the two charts are published.
	ChartRepository = "oci://ghcr.io/openmcp-project/charts"

	// defaultMaxConcurrent is what the API server writes, too.
	defaultMaxConcurrent = 10

	controlPlaneTimeout = 3 * time.Minute
	// A Velero server starts within seconds once its images are pulled.
	serverTimeout = 5 * time.Minute
)

// Releases are the two releases to run: that of the control plane, then that of the server.
func (p *Plan) Releases(grants Grants) ([]fluxgen.Release, error) {
	controlPlane, err := p.release(ControlPlaneRelease, grants.ControlPlane, p.Names.ControlPlaneNamespace)
	if err != nil {
		return nil, err
	}
	controlPlane.Values = p.controlPlaneValues()
	controlPlane.Timeout = controlPlaneTimeout
	// The control plane is the tenant's own, and may have the namespace and Velero's CRDs already. The chart sees to it that nothing else is
	// adopted: Flux cannot limit it.
	controlPlane.Policy = fluxgen.Policy{CreateNamespace: true, Adopt: true}

	server, err := p.release(ServerRelease, grants.Workload, p.Names.WorkloadNamespace)
	if err != nil {
		return nil, err
	}
	server.Values = p.serverValues()
	server.ValuesSecrets = []string{serverValuesName, serverIdentityName}
	server.Timeout = serverTimeout
	// The workload cluster is shared: nothing there that exists already is ours.
	server.Policy = fluxgen.Policy{Wait: true}
	return []fluxgen.Release{controlPlane, server}, nil
}

// MaxConcurrent is how many Veleros one edit of the ProviderConfig may change at the same time.
func (p *Plan) MaxConcurrent() int {
	if p.config.Rollout == nil || p.config.Rollout.MaxConcurrent < 1 {
		return defaultMaxConcurrent
	}
	return int(p.config.Rollout.MaxConcurrent)
}

// release is what the two have in common.
func (p *Plan) release(name string, grant Grant, namespace string) (fluxgen.Release, error) {
	target, err := fluxgen.NewTarget(grant.Secret, grant.Key, namespace)
	if err != nil {
		return fluxgen.Release{}, fmt.Errorf("release %s: %w", name, err)
	}
	return fluxgen.Release{
		Name:      name,
		Namespace: p.Names.TenantNamespace,
		Labels:    p.Names.Labels(),
		Shard:     p.config.FluxShard,
		Chart:     p.chart(name),
		Target:    target,
		Interval:  p.interval,
	}, nil
}

func (p *Plan) chart(name string) fluxgen.Chart {
	chart := fluxgen.Chart{Repository: ChartRepository, Name: name, Version: ChartVersion, Credentials: p.chartCredentials()}
	if p.config.CABundleRef != nil {
		chart.CertSecret = chartCACopy
	}
	charts := p.config.Charts
	if charts == nil {
		return chart
	}
	if charts.Repository != "" {
		chart.Repository = charts.Repository
	}
	if charts.Version != "" {
		chart.Version = charts.Version
	}
	chart.Digest, chart.Insecure = chartDigest(charts.Digests, name), charts.Insecure
	if charts.PullSecret != nil {
		chart.PullSecret = chartPullCopy
	}
	if charts.ProxySecretRef != nil {
		chart.ProxySecret = chartProxyCopy
	}
	if charts.Verify != nil {
		chart.CosignSecret = chartVerifyCopy
	}
	return chart
}

func chartDigest(digests *v1alpha1.ChartDigests, name string) string {
	switch {
	case digests == nil:
		return ""
	case name == ServerRelease:
		return digests.Server
	}
	return digests.ControlPlane
}
