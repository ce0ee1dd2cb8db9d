package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

const (
	controlPlaneChart = "charts/velero-control-plane"
	serverChart       = "charts/velero-server"
)

// upgrades change what runs, and what it is made from. What cannot be had never touches what runs; what fails is told in the user's words;
// and when the cause is gone, nobody has to do anything.
func upgrades(t *testing.T) {
	tenant := newTenant(t, "upgrade", "changing")
	tenant.order(t, aws)
	changesOfVersion(t, tenant)
	changeDuringBackup(t, tenant)
	changesOfChart(t, tenant)
	tenant.leave(t)
}

func changesOfVersion(t *testing.T, tenant tenant) {
	t.Run("upgrade: version up, then down | the wanted one runs, and Ready never holds for the other", func(t *testing.T) {
		for _, version := range []string{newVersion, oldVersion} {
			tenant.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = version })
			tenant.awaitRunning(t, version)
		}
	})
	t.Run("upgrade: the intent changes again before the change is done | the last one runs", func(t *testing.T) {
		for _, version := range []string{newVersion, oldVersion, newVersion} {
			tenant.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = version })
		}
		tenant.awaitRunning(t, newVersion)
	})
}

func changesOfChart(t *testing.T, tenant tenant) {
	const next, unpublished = "0.1.1", "0.1.2"
	publish(t, next, "")
	t.Run("upgrade: another chart version | it runs, and the pod is not restarted", func(t *testing.T) {
		pod := tenant.podState(t)
		changeCharts(t, func(charts *v1alpha1.Charts) { charts.Version = next })
		tenant.awaitChart(t, next)
		tenant.awaitSources(t, 2)
		tenant.assertNotRestarted(t, pod)
	})
	t.Run("upgrade: a chart version that is not published | ChartNotFound, what runs is left alone, Ready once it is published", func(t *testing.T) {
		before := tenant.generations(t)
		changeCharts(t, func(charts *v1alpha1.Charts) { charts.Version = unpublished })
		tenant.awaitChartNotFound(t, "velero-server "+unpublished, "(chart version "+next+") stays as it is")
		assertUntouched(t, before, tenant)
		publish(t, unpublished, "")
		tenant.awaitChart(t, unpublished)
		tenant.awaitSources(t, 2)
	})
	t.Run("upgrade: a digest that the registry does not have | ChartNotFound, what runs is left alone, Ready with the right one", func(t *testing.T) {
		before := tenant.generations(t)
		wrong := "sha256:" + strings.Repeat("0123456789abcdef", 4)
		changeCharts(t, func(charts *v1alpha1.Charts) {
			charts.Digests = &v1alpha1.ChartDigests{ControlPlane: wrong, Server: wrong}
		})
		tenant.awaitChartNotFound(t, "with the wanted digest")
		assertUntouched(t, before, tenant)
		changeCharts(t, func(charts *v1alpha1.Charts) { charts.Digests = digestsOf(t, unpublished) })
		tenant.awaitChart(t, unpublished)
	})
	t.Run("upgrade: the chart repository moves | what runs comes from there, and the pod is not restarted", func(t *testing.T) {
		const moved = "moved/elsewhere"
		pod := tenant.podState(t)
		publish(t, next, moved)
		changeCharts(t, func(charts *v1alpha1.Charts) {
			*charts = v1alpha1.Charts{Repository: world.RepositoryAt(moved), Version: next}
		})
		tenant.awaitChart(t, next)
		tenant.awaitSources(t, 2)
		tenant.assertNotRestarted(t, pod)
	})
	t.Run("upgrade: back to the chart version of before | it runs", func(t *testing.T) {
		changeCharts(t, func(charts *v1alpha1.Charts) { *charts = *offered().Spec.Charts })
		tenant.awaitChart(t, plan.ChartVersion)
	})
}

// publish publishes both charts under a version; at another path than usual unless that is empty.
func publish(t *testing.T, version, path string) {
	t.Helper()
	for _, dir := range []string{controlPlaneChart, serverChart} {
		if path == "" {
			must(t, world.PublishChart(t.Context(), dir, version))
			continue
		}
		must(t, world.PublishChartAt(t.Context(), dir, version, path))
	}
}

func changeCharts(t *testing.T, edit func(*v1alpha1.Charts)) {
	t.Helper()
	changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) { edit(spec.Charts) })
}

// digestsOf asks the registry.
func digestsOf(t *testing.T, version string) *v1alpha1.ChartDigests {
	t.Helper()
	digest := func(chart string) string {
		url := "http://" + strings.TrimPrefix(world.ChartRepository(), "oci://")
		url = strings.Replace(url, world.Registry, world.Registry+"/v2", 1) + "/" + chart + "/manifests/" + version
		request, err := http.NewRequestWithContext(t.Context(), http.MethodHead, url, nil)
		must(t, err)
		request.Header.Set("Accept", "application/vnd.oci.image.manifest.v1+json")
		response, err := http.DefaultClient.Do(request)
		must(t, err)
		must(t, response.Body.Close())
		return response.Header.Get("Docker-Content-Digest")
	}
	return &v1alpha1.ChartDigests{ControlPlane: digest(plan.ControlPlaneRelease), Server: digest(plan.ServerRelease)}
}

// awaitRunning waits until a version of the server runs and Ready says so.
func (s tenant) awaitRunning(t *testing.T, version string) {
	t.Helper()
	eventually(t, installed, version+" runs", func(ctx context.Context) error {
		velero, err := s.velero(ctx)
		if err != nil {
			return err
		}
		images, err := s.running(ctx)
		if err != nil {
			return err
		}
		runs := images[0] == serverImage+":"+version
		if !runs && velero.Spec.Version == version && hasCondition(velero, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady) == nil {
			t.Fatalf("Ready at generation %d while %s runs", velero.Generation, images[0])
		}
		if !runs {
			return fmt.Errorf("%s runs", images[0])
		}
		return nil
	})
	s.awaitReady(t)
}

// awaitChart waits until both releases run a version of their chart and Ready says so.
func (s tenant) awaitChart(t *testing.T, version string) {
	t.Helper()
	eventually(t, installed, "both releases run chart version "+version, func(ctx context.Context) error {
		velero, err := s.velero(ctx)
		if err != nil {
			return err
		}
		for _, name := range []string{plan.ControlPlaneRelease, plan.ServerRelease} {
			release, err := s.helmRelease(ctx, name)
			if err != nil {
				return err
			}
			if err := runsChart(release, version); err != nil {
				return fmt.Errorf("%w; status is %+v", err, velero.Status.Conditions)
			}
		}
		return nil
	})
	s.awaitReady(t)
}

func runsChart(release *helmv2.HelmRelease, version string) error {
	latest := release.Status.History.Latest()
	if latest == nil || latest.Status != "deployed" || !strings.HasPrefix(latest.ChartVersion, version+"+") {
		return fmt.Errorf("%s runs %+v", release.Name, latest)
	}
	return nil
}

// awaitSources waits until exactly so many OCIRepositories are left.
func (s tenant) awaitSources(t *testing.T, count int) {
	t.Helper()
	eventually(t, soon, fmt.Sprintf("%d OCIRepositories are left", count), func(ctx context.Context) error {
		var sources sourcev1.OCIRepositoryList
		if err := platform.List(ctx, &sources, client.InNamespace(s.names.TenantNamespace)); err != nil {
			return err
		}
		if len(sources.Items) != count {
			return fmt.Errorf("there are %d", len(sources.Items))
		}
		return nil
	})
}

// awaitChartNotFound waits until the Velero says that a chart is not there, and whom that concerns.
func (s tenant) awaitChartNotFound(t *testing.T, words ...string) {
	t.Helper()
	s.awaitCondition(t, v1alpha1.ConditionServerInstalled, metav1.ConditionFalse, v1alpha1.ReasonChartNotFound, words...)
	s.awaitCondition(t, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonChartNotFound)
	velero, err := s.velero(t.Context())
	must(t, err)
	if velero.Status.Phase != string(v1alpha1.Failed) {
		t.Errorf("phase is %s, want %s", velero.Status.Phase, v1alpha1.Failed)
	}
}

// awaitCondition waits for a condition whose message has all words.
func (s tenant) awaitCondition(t *testing.T, conditionType string, status metav1.ConditionStatus, reason string, words ...string) {
	t.Helper()
	eventually(t, installed, fmt.Sprintf("%s of %s is %s/%s", conditionType, s, status, reason), func(ctx context.Context) error {
		velero, err := s.velero(ctx)
		if err != nil {
			return err
		}
		if err := hasCondition(velero, conditionType, status, reason); err != nil {
			return err
		}
		message := apimeta.FindStatusCondition(velero.Status.Conditions, conditionType).Message
		for _, word := range words {
			if !strings.Contains(message, word) {
				return fmt.Errorf("message %q does not have %q", message, word)
			}
		}
		return withoutInternals(message)
	})
}

// withoutInternals looks for what is nobody's business: addresses, namespaces of the platform, names of the operator's Secrets.
func withoutInternals(message string) error {
	for _, internal := range []string{"127.0.0.1", "mcp--", "velero--", "sp-velero-", "oci://", "http"} {
		if strings.Contains(message, internal) {
			return fmt.Errorf("message %q has %q in it", message, internal)
		}
	}
	return nil
}

func assertUntouched(t *testing.T, before untouched, tenant tenant) {
	t.Helper()
	if diff := cmp.Diff(before, tenant.generations(t)); diff != "" {
		t.Errorf("what runs was touched (-before +after):\n%s", diff)
	}
}

// podState changes when the server is restarted, or will be.
type podState struct {
	Deployment int64
	Pods       []string
}

func (s tenant) podState(t *testing.T) podState {
	t.Helper()
	var state podState
	eventually(t, installed, "the server's pod runs", func(ctx context.Context) error {
		deployment, err := s.deployment(ctx)
		if err != nil {
			return err
		}
		pods, err := s.pods(ctx)
		if err != nil {
			return err
		}
		state = podState{Deployment: deployment.Generation}
		for _, pod := range pods {
			state.Pods = append(state.Pods, string(pod.UID))
		}
		if len(state.Pods) != 1 {
			return errors.New("there is not one pod")
		}
		return nil
	})
	return state
}

func (s tenant) assertNotRestarted(t *testing.T, before podState) {
	t.Helper()
	if diff := cmp.Diff(before, s.podState(t)); diff != "" {
		t.Errorf("the server was restarted (-before +after):\n%s", diff)
	}
}
