package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/access"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// tokenRefused replaces the token as if it were over.
func (s tenant) tokenRefused(t *testing.T) {
	secret := s.secretOf(t, access.Workload)
	must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
	config, good := tokenIn(t, secret)
	before := s.generations(t)
	refused := secret.DeepCopy()
	refused.Data[keyOfKubeconfig] = []byte(strings.ReplaceAll(string(config), good, "refused"))
	must(t, platform.Patch(t.Context(), refused, client.MergeFrom(secret)))
	s.awaitCondition(t, v1alpha1.ConditionServerInstalled, metav1.ConditionUnknown, v1alpha1.ReasonTargetUnreachable, "refuses the credentials")
	assertUntouched(t, before, s)
	renewAccess(t, refused, "refused")
	s.awaitReady(t)
	assertUntouched(t, before, s)
}

// unschedulable has the pods of the server wait for a node, and Flux not wait as long as usual.
func (s tenant) unschedulable(t *testing.T, timeout string) admissionRule {
	t.Helper()
	server := only(s.names.TenantNamespace, helmv2.GroupVersion.Group, helmv2.GroupVersion.Version, "helmreleases", admissionregistrationv1.Update)
	admissionRule{platform, setField("timeout-"+s.names.Instance, server, "/spec/timeout", fmt.Sprintf("%q", timeout))}.create(t)
	s.awaitTimeout(t, timeout)
	pods := only(s.names.WorkloadNamespace, "", "v1", "pods", admissionregistrationv1.Create)
	rule := admissionRule{workload, setField("nowhere-"+s.names.Instance, pods, "/spec/nodeSelector", `{"test.example/none": "such"}`)}.create(t)
	s.awaitPinned(t, true)
	return rule
}

// schedulable lets the server's pods run again.
func (s tenant) schedulable(t *testing.T, rule admissionRule) {
	t.Helper()
	rule.remove(t)
	s.awaitPinned(t, false)
}

// awaitTimeout asks the API server what it makes of the server's HelmRelease: it follows its rules only after a while, and an upgrade that begins
// before has Flux wait for minutes.
func (s tenant) awaitTimeout(t *testing.T, want string) {
	t.Helper()
	eventually(t, installed, "Flux does not wait longer than "+want, func(ctx context.Context) error {
		release, err := s.helmRelease(ctx, plan.ServerRelease)
		if err != nil {
			return err
		}
		err = platform.Update(ctx, release, client.DryRunAll)
		if err == nil && (release.Spec.Timeout == nil || release.Spec.Timeout.Duration.String() != want) {
			err = fmt.Errorf("it waits for %v", release.Spec.Timeout)
		}
		return err
	})
}

// awaitPinned asks the API server what it makes of a pod: it follows its rules only after a while.
func (s tenant) awaitPinned(t *testing.T, want bool) {
	t.Helper()
	eventually(t, installed, fmt.Sprintf("a pod is pinned: %v", want), func(ctx context.Context) error {
		probe := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.names.WorkloadNamespace, Name: "probe"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/probe:v1"}}},
		}
		err := workload.Create(ctx, probe, client.DryRunAll)
		if pinned := len(probe.Spec.NodeSelector) > 0; err == nil && pinned != want {
			err = fmt.Errorf("pinned: %v", pinned)
		}
		return err
	})
}

// awaitPending waits until Flux is in the middle of an upgrade.
func (s tenant) awaitPending(t *testing.T, image string) {
	t.Helper()
	eventually(t, installed, "the upgrade is pending", func(ctx context.Context) error {
		var records corev1.SecretList
		if err := workload.List(ctx, &records, client.InNamespace(s.names.WorkloadNamespace), client.MatchingLabels{"owner": "helm", "status": "pending-upgrade"}); err != nil {
			return err
		}
		if len(records.Items) == 0 {
			return errors.New("nothing is pending")
		}
		images, err := s.running(ctx)
		if err == nil && images[0] != image {
			err = fmt.Errorf("%s runs", images[0])
		}
		return err
	})
}

func (s tenant) changedWhileFluxWaits(t *testing.T) {
	rule := s.unschedulable(t, "20s")
	s.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = oldVersion })
	s.awaitPending(t, serverImage+":"+oldVersion)
	s.awaitServer(t, v1alpha1.ReasonInstalling)
	s.schedulable(t, rule)
	s.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = newVersion })
	// Not after the minute in which Flux tries again what failed.
	eventually(t, 20*time.Second+reached+reached/2, "the last one runs", func(ctx context.Context) error {
		images, err := s.running(ctx)
		if err == nil && images[0] != serverImage+":"+newVersion {
			err = fmt.Errorf("%s runs", images[0])
		}
		return err
	})
	s.awaitReady(t)
}

func (s tenant) fluxKilled(t *testing.T) {
	rule := s.unschedulable(t, "2m0s")
	s.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = oldVersion })
	s.awaitPending(t, serverImage+":"+oldVersion)
	must(t, world.CrashHelmController(t.Context()))
	s.schedulable(t, rule)
	pods, err := s.pods(t.Context())
	must(t, err)
	for i := range pods {
		must(t, client.IgnoreNotFound(workload.Delete(t.Context(), &pods[i])))
	}
	s.awaitRunning(t, oldVersion)
	release, err := s.helmRelease(t.Context(), plan.ServerRelease)
	must(t, err)
	if latest := release.Status.History.Latest(); latest.Status != "deployed" {
		t.Errorf("the newest record is %+v", latest)
	}
}

// retaggedChart is what mirrors make of a chart when they rename it.
func (s tenant) retaggedChart(t *testing.T) {
	const wrong = "0.9.9"
	must(t, world.PublishChart(t.Context(), controlPlaneChart, wrong))
	retag(t, plan.ServerRelease, plan.ChartVersion, wrong)
	pod := s.podState(t)
	changeCharts(t, func(charts *v1alpha1.Charts) { charts.Version = wrong })
	s.awaitCondition(t, v1alpha1.ConditionServerInstalled, metav1.ConditionFalse, v1alpha1.ReasonChartUnavailable, "another version", "stays as it is")
	s.awaitPhase(t, v1alpha1.Failed)
	s.assertNotRestarted(t, pod)
	changeCharts(t, func(charts *v1alpha1.Charts) { *charts = *offered().Spec.Charts })
	s.awaitChart(t, plan.ChartVersion)
	s.assertNotRestarted(t, pod)
}

// silentRegistry: Flux waits for the answer without an end.
func (s tenant) silentRegistry(t *testing.T) {
	address, calls := silence(t)
	before := s.generations(t)
	changeCharts(t, func(charts *v1alpha1.Charts) { charts.Repository = "oci://" + address + "/charts" })
	eventually(t, reached, "Flux calls the registry", func(context.Context) error {
		if calls.Load() == 0 {
			return errors.New("it does not")
		}
		return nil
	})
	s.awaitCondition(t, v1alpha1.ConditionServerInstalled, metav1.ConditionFalse, v1alpha1.ReasonFetchingChart, "stays as it is")
	assertUntouched(t, before, s)
	changeCharts(t, func(charts *v1alpha1.Charts) { *charts = *offered().Spec.Charts })
	eventually(t, soon, "it is Ready", func(ctx context.Context) error {
		velero, err := s.velero(ctx)
		if err != nil {
			return err
		}
		return hasCondition(velero, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	})
	assertUntouched(t, before, s)
}
