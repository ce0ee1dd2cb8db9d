package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// fluxIssues are what others ran into with Flux; test/regressions.md says who. They change where charts come from and kill helm-controller, so
// nothing else can go on beside them.
func fluxIssues(t *testing.T) {
	one, other := newTenant(t, "flux", "one"), newTenant(t, "flux", "other")
	monitored := newTenant(t, "flux", "monitored")
	for _, tenant := range []tenant{one, other} {
		tenant.orderControlPlane(t)
		tenant.orderVelero(t, oldVersion, aws)
	}
	one.awaitReady(t)
	other.awaitReady(t)
	t.Run("installation: everything is there before Flux begins | no attempt fails, and the records are small and on the target", one.installedAtOnce)
	t.Run("ProviderConfig: an edit that concerns nobody | no Velero is written", one.uselessEdit)
	t.Run("drift: there is none | Flux writes nothing when it looks", one.nothingDrifts)
	t.Run("drift: a rule of the cluster changes what Flux writes | Flux leaves it so", one.mutatedByTheCluster)
	t.Run("credentials of Flux: the cluster refuses the token | unreachable, Ready once it is renewed", one.tokenRefused)
	t.Run("upgrade: the intent changes while Flux waits for the one before | it runs as soon as Flux gives up waiting", one.changedWhileFluxWaits)
	t.Run("upgrade: helm-controller is killed in the middle | it runs", one.fluxKilled)
	t.Run("chart: it is published under another version than its own | ChartUnavailable, what runs is left alone, Ready with one that is right", one.retaggedChart)
	t.Run("chart registry: it takes the call and never answers | FetchingChart, what runs is left alone, Ready with one that answers", one.silentRegistry)
	t.Run("deletion: somebody deleted Velero's CRDs | complete", other.deletionWithoutCRDs)
	t.Run("upgrade: a neighbour's control plane takes calls and never answers | it runs as fast as ever", func(t *testing.T) { besideHanging(t, one, other) })
	t.Run("deletion: an object of the server does not go | Flux forgets the release, and all the rest waits for the object", one.deletionOfHeldObject)
	t.Run("deletion: the server has an object of a kind that is gone | blocked, complete after a platform operator suspended the release", monitored.deletionWithoutMonitoring)
	monitored.leave(t)
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

// uselessEdit is seen by everybody, and nobody has to do anything about it.
func (s tenant) uselessEdit(t *testing.T) {
	before, err := s.velero(t.Context())
	must(t, err)
	touched := s.generations(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: pullSecret}}
	annotate(t, platform, secret, "test.example/note", "seen")
	changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) {
		spec.AvailableImages[0].Versions = append(spec.AvailableImages[0].Versions, "v9.9.9")
	})
	eventually(t, soon, "the ProviderConfig tells what it offers", func(ctx context.Context) error {
		config := offered()
		if err := platform.Get(ctx, client.ObjectKeyFromObject(config), config); err != nil {
			return err
		}
		if config.Status.ObservedGeneration != config.Generation || config.Status.Veleros < 2 || !slices.Contains(config.Status.Offered[0].Versions, "v9.9.9") {
			return fmt.Errorf("status is %+v", config.Status)
		}
		return nil
	})
	time.Sleep(settle)
	after, err := s.velero(t.Context())
	must(t, err)
	if before.ResourceVersion != after.ResourceVersion {
		t.Errorf("the Velero was written: was %+v, is %+v", before, after)
	}
	assertUntouched(t, touched, s)
	changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) { spec.AvailableImages = offered().Spec.AvailableImages })
	annotate(t, platform, secret, "test.example/note", "")
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
	since := time.Now()
	s.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = newVersion })
	s.awaitRunning(t, newVersion)
	must(t, grace(t.Context()))
	if len(s.writesOfFlux(t, since)) == 0 {
		t.Fatal("what Flux writes is not seen")
	}
	since = time.Now()
	s.poke(t)
	if writes := s.writesOfFlux(t, since); len(writes) > 0 {
		t.Errorf("Flux wrote %q", writes)
	}
	s.awaitReady(t)
	rule.remove(t)
	// The API server follows its rules only after a while. What Flux corrects then must not be taken for somebody else's doing.
	eventually(t, installed, "it is as the chart has it", func(ctx context.Context) error {
		s.poke(t)
		if grace(ctx) == nil {
			return errors.New("the rule is still followed")
		}
		return nil
	})
	s.awaitReady(t)
}
