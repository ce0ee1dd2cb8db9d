package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// deletionOfReleases deletes Veleros in every state of their releases, and with a configuration that is gone.
func deletionOfReleases(t *testing.T) {
	tenant := newTenant(t, "team-releases", "release-mcp")
	defer tenant.leave(t)
	tenant.orderControlPlane(t)
	t.Run("deletion: a release failed | complete", tenant.deletionOfFailed)
	t.Run("deletion: the server does not become ready | blocked while Flux waits for it, for minutes at most, then complete", tenant.deletionOfUnready)
	t.Run("deletion: a release is stalled | complete", tenant.deletionOfStalled)
	t.Run("deletion: the releases are suspended | complete", tenant.deletionOfSuspended)
	t.Run("deletion: version and plugin are no longer offered | complete", tenant.deletionOfWithdrawn)
	t.Run("deletion: the ProviderConfig is being deleted | complete", tenant.deletionWhileConfigGoes)
	t.Run("deletion: the ProviderConfig is gone | complete", tenant.deletionWithoutConfig)
}

// brokenChart is the version under which both charts are published, that of the server with a template that fails.
const brokenChart = "0.9.1"

// publishBroken publishes the two charts.
func publishBroken(t *testing.T) {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", "charts"))
	must(t, err)
	broken := filepath.Join(t.TempDir(), plan.ServerRelease)
	must(t, os.CopyFS(broken, os.DirFS(filepath.Join(root, plan.ServerRelease))))
	must(t, os.WriteFile(filepath.Join(broken, "templates", "broken.yaml"), []byte(`{{ fail "broken" }}`), 0o600))
	must(t, world.PublishChart(t.Context(), filepath.Join(root, plan.ControlPlaneRelease), brokenChart))
	must(t, world.PublishChart(t.Context(), broken, brokenChart))
}

// awaitServer waits for a reason of the condition of the server.
func (s tenant) awaitServer(t *testing.T, reason string) {
	t.Helper()
	eventually(t, installed, "the server of "+s.String()+" is "+reason, func(ctx context.Context) error {
		velero, err := s.velero(ctx)
		if err != nil {
			return err
		}
		return hasCondition(velero, v1alpha1.ConditionServerInstalled, metav1.ConditionFalse, reason)
	})
}

func (s tenant) deletionOfFailed(t *testing.T) {
	publishBroken(t)
	changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) { spec.Charts.Version = brokenChart })
	defer changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) { spec.Charts.Version = "" })
	s.orderVelero(t, oldVersion)
	s.awaitServer(t, v1alpha1.ReasonInstallFailed)
	s.startDeletion(t)
	s.awaitDeleted(t)
	s.assertGone(t)
}

// deletionOfUnready asks for a node that there is none of. Flux looks at a deletion only between two actions.
func (s tenant) deletionOfUnready(t *testing.T) {
	values := &v1alpha1.ChartValues{Server: &apiextensionsv1.JSON{Raw: []byte(`{"nodeSelector":{"test.example/none":"such"}}`)}}
	changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) { spec.Values = values })
	defer changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) { spec.Values = nil })
	s.orderVelero(t, oldVersion)
	s.awaitServer(t, v1alpha1.ReasonInstalling)
	eventually(t, installed, "the server waits for a node", func(ctx context.Context) error {
		_, err := s.deployment(ctx)
		return err
	})
	s.startDeletion(t)
	s.awaitBlocked(t, v1alpha1.ReasonRemovingServer, "Flux first finishes what it is doing", "5m0s")
	// Waiting for Flux to give up would only take time.
	deployment, err := s.deployment(t.Context())
	must(t, err)
	must(t, workload.Patch(t.Context(), deployment, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"template":{"spec":{"nodeSelector":null}}}}`))))
	s.awaitDeleted(t)
	s.assertGone(t)
}

// patchRelease edits a HelmRelease behind the operator's back.
func (s tenant) patchRelease(t *testing.T, name, patch string) {
	t.Helper()
	release, err := s.helmRelease(t.Context(), name)
	must(t, err)
	must(t, platform.Patch(t.Context(), release, client.RawPatch(types.MergePatchType, []byte(patch))))
}

func (s tenant) deletionOfStalled(t *testing.T) {
	s.order(t)
	s.startDeletionAfter(t, func() {
		s.patchRelease(t, plan.ServerRelease, `{"spec":{"healthCheckExprs":[{"apiVersion":"v1","kind":"Secret","current":"no expression ("}]}}`)
		eventually(t, installed, "the release is stalled", func(ctx context.Context) error {
			release, err := s.helmRelease(ctx, plan.ServerRelease)
			if err != nil {
				return err
			}
			if !apimeta.IsStatusConditionTrue(release.Status.Conditions, fluxmeta.StalledCondition) {
				return errors.New("it is not")
			}
			return nil
		})
	})
	s.awaitDeleted(t)
	s.assertGone(t)
}

func (s tenant) deletionOfSuspended(t *testing.T) {
	s.order(t)
	for _, name := range []string{plan.ServerRelease, plan.ControlPlaneRelease} {
		s.patchRelease(t, name, `{"spec":{"suspend":true}}`)
	}
	s.awaitServer(t, v1alpha1.ReasonSuspended)
	s.startDeletion(t)
	s.awaitDeleted(t)
	s.assertGone(t)
}

func (s tenant) deletionOfWithdrawn(t *testing.T) {
	s.order(t, aws)
	defer changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) { spec.AvailableImages = offered().Spec.AvailableImages })
	changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) {
		spec.AvailableImages = spec.AvailableImages[:1]
		spec.AvailableImages[0].Versions = []string{newVersion}
	})
	s.awaitConfiguration(t, v1alpha1.ReasonVersionNotOffered)
	s.startDeletion(t)
	s.awaitDeleted(t)
	s.assertGone(t)
}

func (s tenant) awaitConfiguration(t *testing.T, reason string) {
	t.Helper()
	eventually(t, installed, "the configuration of "+s.String()+" is "+reason, func(ctx context.Context) error {
		velero, err := s.velero(ctx)
		if err != nil {
			return err
		}
		return hasCondition(velero, v1alpha1.ConditionConfigurationValid, metav1.ConditionFalse, reason)
	})
}

func (s tenant) deletionWhileConfigGoes(t *testing.T) {
	s.order(t)
	must(t, setFinalizers(t.Context(), platform, offered(), holder))
	must(t, platform.Delete(t.Context(), offered()))
	s.startDeletion(t)
	s.awaitDeleted(t)
	s.assertGone(t)
	must(t, setFinalizers(t.Context(), platform, offered()))
	eventually(t, soon, "the ProviderConfig is gone", func(ctx context.Context) error { return isGone(ctx, platform, offered()) })
	must(t, platform.Create(t.Context(), offered()))
}

func (s tenant) deletionWithoutConfig(t *testing.T) {
	s.order(t)
	must(t, platform.Delete(t.Context(), offered()))
	s.awaitConfiguration(t, v1alpha1.ReasonProviderConfigNotFound)
	s.startDeletion(t)
	s.awaitDeleted(t)
	s.assertGone(t)
	must(t, platform.Create(t.Context(), offered()))
}
