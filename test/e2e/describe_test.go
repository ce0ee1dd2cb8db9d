package e2e

import (
	"bufio"
	"context"
	"os"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// lastLines is how much of the operator's log about one tenant is worth reading.
const lastLines = 15

// describeFailed logs, when the test has failed, what the operator saw of the tenant: a failure on another machine can only be understood by what it
// left in the log.
func (s tenant) describeFailed(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		return
	}
	ctx := context.WithoutCancel(t.Context())
	if velero, err := s.velero(ctx); err == nil {
		// Its resources are many lines that say what the HelmReleases say.
		velero.Status.Resources = nil
		describe(t, "Velero "+s.String(), velero.Status)
	}
	var releases helmv2.HelmReleaseList
	if platform.List(ctx, &releases, client.InNamespace(s.names.TenantNamespace)) == nil {
		for i := range releases.Items {
			releases.Items[i].Status.Inventory = nil
			describe(t, "HelmRelease "+releases.Items[i].Name, map[string]any{"spec": releases.Items[i].Spec, "status": releases.Items[i].Status})
		}
	}
	var sources sourcev1.OCIRepositoryList
	if platform.List(ctx, &sources, client.InNamespace(s.names.TenantNamespace)) == nil {
		for i := range sources.Items {
			describe(t, "OCIRepository "+sources.Items[i].Name, sources.Items[i].Status)
		}
	}
	t.Logf("the operator's log:\n%s", strings.Join(s.logged(t), "\n"))
}

func describe(t *testing.T, what string, object any) {
	t.Helper()
	if text, err := yaml.Marshal(object); err == nil {
		t.Logf("%s:\n%s", what, text)
	}
}

// logged are the last lines of the operator's log that are about the tenant.
func (s tenant) logged(t *testing.T) []string {
	t.Helper()
	log, err := os.Open(operator.Log)
	if err != nil {
		return []string{err.Error()}
	}
	defer log.Close()
	var lines []string
	scanner := bufio.NewScanner(log)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if line := scanner.Text(); strings.Contains(line, s.Name) || strings.Contains(line, s.names.TenantNamespace) {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-lastLines):]
}
