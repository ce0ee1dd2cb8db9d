package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/access"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// fluxIssues are what others ran into with Flux; test/regressions.md says who.
func fluxIssues(t *testing.T) {
	one, other := newTenant(t, "flux", "one"), newTenant(t, "flux", "other")
	for _, tenant := range []tenant{one, other} {
		tenant.orderControlPlane(t)
		tenant.orderVelero(t, oldVersion, aws)
	}
	one.awaitReady(t)
	other.awaitReady(t)
	t.Run("installation: everything is there before Flux begins | no attempt fails, and the records are small and on the target", one.installedAtOnce)
	t.Run("drift: there is none | Flux writes nothing when it looks", one.nothingDrifts)
	t.Run("drift: a rule of the cluster changes what Flux writes | Flux leaves it so", one.mutatedByTheCluster)
	t.Run("credentials of Flux: the cluster refuses the token | unreachable, Ready once it is renewed", one.tokenRefused)
	t.Run("upgrade: the intent changes while Flux waits for the one before | it runs as soon as Flux gives up waiting", one.changedWhileFluxWaits)
	t.Run("upgrade: helm-controller is killed in the middle | it runs", one.fluxKilled)
	t.Run("chart: it is published under another version than its own | ChartUnavailable, what runs is left alone, Ready with one that is right", one.retaggedChart)
	t.Run("chart registry: it takes the call and never answers | FetchingChart, what runs is left alone, Ready with one that answers", one.silentRegistry)
	t.Run("deletion: somebody deleted Velero's CRDs | complete", other.deletionWithoutCRDs)
	t.Run("upgrade: the control plane of a neighbour is unreachable | it runs as fast as ever", func(t *testing.T) { besideUnreachable(t, one, other) })
	t.Run("deletion: an object of the server does not go | Flux forgets the release, and all the rest waits for the object", one.deletionOfHeldObject)
	one.leave(t)
	other.leave(t)
}

var bothReleases = []string{plan.ControlPlaneRelease, plan.ServerRelease}

// targets are where the two releases are, and in which namespaces.
func (s tenant) targets(t *testing.T) map[string]client.Client {
	t.Helper()
	return map[string]client.Client{s.names.ControlPlaneNamespace: s.controlPlane(t), s.names.WorkloadNamespace: workload}
}

// recordLimit is half of what a Secret can hold.
const recordLimit = 512 << 10

func (s tenant) installedAtOnce(t *testing.T) {
	for _, reason := range []string{v1alpha1.ReasonInstallFailed, v1alpha1.ReasonTargetUnreachable} {
		if warnings := s.warnings(t, reason); len(warnings) > 0 {
			t.Errorf("an attempt failed: %q", warnings)
		}
	}
	for namespace, target := range s.targets(t) {
		var records corev1.SecretList
		must(t, target.List(t.Context(), &records, client.InNamespace(namespace), client.MatchingLabels{"owner": "helm"}))
		if len(records.Items) != 1 {
			t.Errorf("namespace %s has %d records", namespace, len(records.Items))
		}
		for _, record := range records.Items {
			if size := len(record.Data["release"]); size > recordLimit {
				t.Errorf("record %s has %d bytes", record.Name, size)
			}
		}
		must(t, isGone(t.Context(), target, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.names.TenantNamespace}}))
	}
}

// poke has Flux look at both releases now, and waits until it has.
func (s tenant) poke(t *testing.T) {
	t.Helper()
	token := time.Now().Format(time.RFC3339Nano)
	for _, name := range bothReleases {
		s.patchRelease(t, name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, fluxmeta.ReconcileRequestAnnotation, token))
	}
	eventually(t, reached, "Flux has looked", func(ctx context.Context) error {
		for _, name := range bothReleases {
			release, err := s.helmRelease(ctx, name)
			if err != nil {
				return err
			}
			if release.Status.GetLastHandledReconcileRequest() != token || apimeta.IsStatusConditionTrue(release.Status.Conditions, fluxmeta.ReconcilingCondition) {
				return fmt.Errorf("status of %s is %+v", name, release.Status.Conditions)
			}
		}
		return nil
	})
}

// writesOfFlux are those on the two targets that change something.
func (s tenant) writesOfFlux(t *testing.T, since time.Time) []string {
	t.Helper()
	controlPlane, err := world.ControlPlane(t.Context(), s.Namespace, s.Name)
	must(t, err)
	var writes []string
	for _, cluster := range []landscape.Cluster{controlPlane, world.Workload} {
		events, err := cluster.AuditEvents(since, func(event landscape.AuditEvent) bool {
			ours := cluster.Name != world.Workload.Name || event.Object.Namespace == s.names.WorkloadNamespace
			return ours && event.Writes() && strings.HasPrefix(event.UserAgent, "helm-controller") && !strings.Contains(event.URI, "dryRun=")
		})
		must(t, err)
		for _, event := range events {
			writes = append(writes, event.Verb+" "+event.URI)
		}
	}
	return writes
}

func (s tenant) nothingDrifts(t *testing.T) {
	since := time.Now()
	for range 2 {
		s.poke(t)
	}
	if writes := s.writesOfFlux(t, since); len(writes) > 0 {
		t.Errorf("Flux wrote %q", writes)
	}
}

// mutatedByTheCluster: the chart has another value for the field, so that each look finds a difference, unless it asks the cluster.
func (s tenant) mutatedByTheCluster(t *testing.T) {
	deployments := only(s.names.WorkloadNamespace, "apps", "v1", "deployments", admissionregistrationv1.Create, admissionregistrationv1.Update)
	rule := admissionRule{workload, setField("grace-"+s.names.Instance, deployments, "/spec/template/spec/terminationGracePeriodSeconds", "7")}.create(t)
	grace := func(ctx context.Context, options ...client.UpdateOption) error {
		deployment, err := s.deployment(ctx)
		if err != nil {
			return err
		}
		if len(options) > 0 {
			if err := workload.Update(ctx, deployment, options...); err != nil {
				return err
			}
		}
		if seconds := deployment.Spec.Template.Spec.TerminationGracePeriodSeconds; seconds == nil || *seconds != 7 {
			return errors.New("it is as the chart has it")
		}
		return nil
	}
	eventually(t, installed, "the rule holds", func(ctx context.Context) error { return grace(ctx, client.DryRunAll) })
	s.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = newVersion })
	s.awaitRunning(t, newVersion)
	must(t, grace(t.Context()))
	since := time.Now()
	s.poke(t)
	if writes := s.writesOfFlux(t, since); len(writes) > 0 {
		t.Errorf("Flux wrote %q", writes)
	}
	s.awaitReady(t)
	rule.remove(t)
}

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
	pods := only(s.names.WorkloadNamespace, "", "v1", "pods", admissionregistrationv1.Create)
	rule := admissionRule{workload, setField("nowhere-"+s.names.Instance, pods, "/spec/nodeSelector", `{"test.example/none": "such"}`)}.create(t)
	probe := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.names.WorkloadNamespace, Name: "probe"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/probe:v1"}}},
	}
	eventually(t, installed, "the rule holds", func(ctx context.Context) error {
		pod := probe.DeepCopy()
		err := workload.Create(ctx, pod, client.DryRunAll)
		if err == nil && pod.Spec.NodeSelector == nil {
			err = errors.New("the pod may run anywhere")
		}
		return err
	})
	return rule
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
	rule.remove(t)
	s.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = newVersion })
	// Not after the minute in which Flux tries again what failed.
	eventually(t, 20*time.Second+reached, "the last one runs", func(ctx context.Context) error {
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
	rule.remove(t)
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

func (s tenant) deletionWithoutCRDs(t *testing.T) {
	controlPlane := s.controlPlane(t)
	for _, name := range veleroCRDs(t, controlPlane) {
		definition := crd("velero.io", "v1", strings.TrimSuffix(name, ".velero.io"), "Any")
		must(t, controlPlane.Delete(t.Context(), definition))
	}
	eventually(t, installed, "the CRDs are gone", func(context.Context) error {
		if left := veleroCRDs(t, controlPlane); len(left) > 0 {
			return fmt.Errorf("%q are left", left)
		}
		return nil
	})
	s.startDeletion(t)
	s.awaitDeleted(t)
	s.assertGone(t)
}

// besideUnreachable keeps the operator and Flux busy with a control plane that does not answer.
func besideUnreachable(t *testing.T, one, other tenant) {
	t.Helper()
	other.orderVelero(t, oldVersion)
	other.awaitReady(t)
	cluster, err := world.ControlPlane(t.Context(), other.Namespace, other.Name)
	must(t, err)
	resume, err := cluster.Interrupt(t.Context())
	must(t, err)
	t.Cleanup(func() { _ = resume(context.WithoutCancel(t.Context())) })
	other.patchRelease(t, plan.ControlPlaneRelease, fmt.Sprintf(`{"metadata":{"annotations":{%q:"now"}}}`, fluxmeta.ReconcileRequestAnnotation))
	other.startDeletion(t)
	other.awaitBlocked(t, v1alpha1.ReasonTargetUnreachable, "cannot be reached")
	one.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = newVersion })
	eventually(t, reached, newVersion+" runs", func(ctx context.Context) error {
		images, err := one.running(ctx)
		if err == nil && images[0] != serverImage+":"+newVersion {
			err = fmt.Errorf("%s runs", images[0])
		}
		return err
	})
	one.awaitReady(t)
	must(t, resume(t.Context()))
	other.awaitDeleted(t)
	other.assertGone(t)
}

// deletionOfHeldObject: Flux waits for the object for a while, and at its next attempt there is no release any more.
func (s tenant) deletionOfHeldObject(t *testing.T) {
	releases := only(s.names.TenantNamespace, helmv2.GroupVersion.Group, helmv2.GroupVersion.Version, "helmreleases", admissionregistrationv1.Update)
	admissionRule{platform, setField("uninstall-"+s.names.Instance, releases, "/spec/uninstall/timeout", `"5s"`)}.create(t)
	held := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.names.WorkloadNamespace, Name: "velero"}}
	must(t, setFinalizers(t.Context(), workload, held, holder))
	eventually(t, soon, "Flux is to wait for five seconds", func(ctx context.Context) error {
		release, err := s.helmRelease(ctx, plan.ServerRelease)
		if err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&release.ObjectMeta, "test.example/poke", "true")
		if err := platform.Update(ctx, release); err != nil || release.Spec.Uninstall.Timeout.Duration == 5*time.Second {
			return err
		}
		return fmt.Errorf("it is to wait for %s", release.Spec.Uninstall.Timeout.Duration)
	})
	s.startDeletion(t)
	s.awaitBlocked(t, v1alpha1.ReasonRemovingWorkloadNamespace)
	must(t, isGone(t.Context(), platform, &helmv2.HelmRelease{ObjectMeta: metav1.ObjectMeta{Namespace: s.names.TenantNamespace, Name: plan.ServerRelease}}))
	must(t, workload.Get(t.Context(), client.ObjectKeyFromObject(held), held))
	s.assertRestWaits(t)
	must(t, setFinalizers(t.Context(), workload, held))
	s.awaitDeleted(t)
	s.assertGone(t)
}

// assertRestWaits looks for what must not go before the server has: the control plane's release with all that Flux needs for it.
func (s tenant) assertRestWaits(t *testing.T) {
	t.Helper()
	release, err := s.helmRelease(t.Context(), plan.ControlPlaneRelease)
	must(t, err)
	if !release.DeletionTimestamp.IsZero() {
		t.Error("the control plane's release is deleted before the server is gone")
	}
	must(t, s.everySource(t.Context(), notDeleted))
	for _, id := range []string{access.ControlPlane, access.Server, access.Workload} {
		request, err := s.accessRequest(t.Context(), id)
		must(t, err)
		if !request.DeletionTimestamp.IsZero() {
			t.Errorf("access %s is given back", id)
		}
	}
	var names []string
	var secrets corev1.SecretList
	must(t, platform.List(t.Context(), &secrets, client.InNamespace(s.names.TenantNamespace), client.MatchingLabels{plan.ManagedByLabel: plan.ProviderName}))
	for _, secret := range secrets.Items {
		names = append(names, secret.Name)
	}
	if diff := cmp.Diff([]string{"sp-velero-server-identity", "sp-velero-server-values"}, names); diff != "" {
		t.Errorf("generated Secrets (-want +got):\n%s", diff)
	}
}
