package e2e

import (
	"context"
	"fmt"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	corev2alpha1 "github.com/openmcp-project/openmcp-operator/api/core/v2alpha1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/access"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// deletionOfClusters deletes Veleros whose clusters, control plane or operator are not there.
func deletionOfClusters(t *testing.T) {
	shared := newTenant(t, "team-clusters", "cluster-mcp")
	defer shared.leave(t)
	lost, terminating, revoked := newTenant(t, "team-clusters", "lost-mcp"), newTenant(t, "team-clusters", "terminating-mcp"), newTenant(t, "team-clusters", "revoked-mcp")
	// All at once: to start an API server takes its time.
	for _, tenant := range []tenant{shared, lost, terminating, revoked} {
		tenant.orderControlPlane(t)
	}
	t.Run("deletion: the access secret is gone | blocked, complete as soon as it is granted again", shared.deletionWithoutSecret)
	t.Run("deletion: the operator is down, then up | complete", shared.deletionWhileDown)
	t.Run("deletion: a second Velero of the same name comes right after | complete, and the second is installed", shared.secondRightAfter)
	t.Run("deletion: the control plane is unreachable, then back | blocked, then complete", shared.deletionUnreachable)
	t.Run("deletion: the workload cluster is unreachable, then back | blocked, then complete", shared.deletionWorkloadUnreachable)
	t.Run("deletion: the workload Cluster is gone | complete", shared.deletionWorkloadGone)
	t.Run("deletion: the ControlPlane is deleted by its user | complete, with the Velero first", shared.deletionOfControlPlane)
	t.Run("deletion: the control plane's Cluster is gone | complete", lost.deletionClusterGone)
	release := holdWorkloadCluster(t)
	defer release()
	t.Run("deletion: the tenant namespace is terminating | complete, or blocked when the access went first", terminating.deletionNamespaceTerminating)
	t.Run("deletion: the tenant namespace is terminating and the access went first | blocked, complete after a platform operator suspended the release", revoked.deletionAfterRevocation)
}

func (s tenant) deletionWhileDown(t *testing.T) {
	s.order(t)
	s.startDeletionAfter(t, func() {})
	s.awaitDeleted(t)
	s.assertGone(t)
}

func (s tenant) secondRightAfter(t *testing.T) {
	s.order(t, aws)
	s.startDeletion(t)
	second := &v1alpha1.Velero{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name},
		Spec:       v1alpha1.VeleroSpec{Version: newVersion, Plugins: []v1alpha1.Plugin{gcp}},
	}
	eventually(t, installed, "the second is created", func(ctx context.Context) error {
		for {
			if err := onboarding.Create(ctx, second.DeepCopy()); !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
	})
	s.awaitReady(t)
	images, err := s.running(t.Context())
	must(t, err)
	if images[0] != serverImage+":"+newVersion {
		t.Errorf("images are %v", images)
	}
	s.startDeletion(t)
	s.awaitDeleted(t)
	s.assertGone(t)
}

func (s tenant) deletionUnreachable(t *testing.T) {
	s.order(t)
	cluster, err := world.ControlPlane(t.Context(), s.Namespace, s.Name)
	must(t, err)
	s.unreachable(t, cluster, "users' objects")
}

func (s tenant) deletionWorkloadUnreachable(t *testing.T) {
	s.order(t)
	s.unreachable(t, world.Workload, "removing the Velero server")
}

// unreachable deletes the Velero while a cluster does not answer, and brings that back once the status says so.
func (s tenant) unreachable(t *testing.T, cluster landscape.Cluster, words ...string) {
	t.Helper()
	resume, err := cluster.Interrupt(t.Context())
	must(t, err)
	s.startDeletion(t)
	t.Cleanup(func() { _ = resume(context.WithoutCancel(t.Context())) })
	s.awaitBlocked(t, v1alpha1.ReasonTargetUnreachable, append(words, "cannot be reached")...)
	must(t, resume(t.Context()))
	s.awaitDeleted(t)
	s.assertGone(t)
}

// clusterOf is the Cluster object of an access.
func (s tenant) clusterOf(t *testing.T, id string) *clustersv1alpha1.Cluster {
	t.Helper()
	request, err := s.accessRequest(t.Context(), id)
	must(t, err)
	cluster := &clustersv1alpha1.Cluster{}
	must(t, platform.Get(t.Context(), request.Spec.ClusterRef.NamespacedName(), cluster))
	return cluster
}

// deletionWorkloadGone: what was on the cluster is gone with it, so nothing is waited for. The landscape's API server stays, though.
func (s tenant) deletionWorkloadGone(t *testing.T) {
	s.order(t)
	cluster := s.clusterOf(t, access.Workload)
	must(t, platform.Delete(t.Context(), cluster))
	must(t, setFinalizers(t.Context(), platform, cluster))
	must(t, isGone(t.Context(), platform, cluster))
	s.startDeletion(t)
	s.awaitDeleted(t)
	must(t, workload.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.names.WorkloadNamespace}}))
	eventually(t, installed, "the namespace on the lost cluster is gone", func(ctx context.Context) error {
		return isGone(ctx, workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.names.WorkloadNamespace}})
	})
	s.assertGone(t)
}

func (s tenant) deletionOfControlPlane(t *testing.T) {
	s.order(t)
	must(t, onboarding.Delete(t.Context(), s.controlPlaneObject()))
	s.awaitDeleted(t)
	s.awaitControlPlaneGone(t)
	s.assertNothingOnPlatform(t)
	s.assertNoReleases(t)
	must(t, isGone(t.Context(), workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.names.WorkloadNamespace}}))
}

func (s tenant) controlPlaneObject() *corev2alpha1.ControlPlane {
	return &corev2alpha1.ControlPlane{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name}}
}

func (s tenant) awaitControlPlaneGone(t *testing.T) {
	t.Helper()
	eventually(t, installed, "the control plane is gone", func(ctx context.Context) error {
		return isGone(ctx, onboarding, s.controlPlaneObject())
	})
}

func (s tenant) assertNoReleases(t *testing.T) {
	t.Helper()
	var releases helmv2.HelmReleaseList
	must(t, platform.List(t.Context(), &releases, client.InNamespace(s.names.TenantNamespace)))
	for _, release := range releases.Items {
		t.Errorf("%s: HelmRelease %s is left", s, release.Name)
	}
}

// deletionClusterGone: the API server does not even answer any more.
func (s tenant) deletionClusterGone(t *testing.T) {
	s.order(t)
	server, err := world.ControlPlane(t.Context(), s.Namespace, s.Name)
	must(t, err)
	must(t, server.Stop(t.Context()))
	cluster := s.clusterOf(t, access.ControlPlane)
	must(t, platform.Delete(t.Context(), cluster))
	must(t, setFinalizers(t.Context(), platform, cluster))
	s.startDeletion(t)
	s.awaitDeleted(t)
	s.assertNothingOnPlatform(t)
	s.assertNoReleases(t)
	must(t, isGone(t.Context(), workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.names.WorkloadNamespace}}))
	s.leave(t)
}

// holdWorkloadCluster keeps the workload Cluster when the last tenant leaves: it is the platform's, not a tenant's.
func holdWorkloadCluster(t *testing.T) (release func()) {
	t.Helper()
	request := &clustersv1alpha1.ClusterRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: "workload-stays"},
		Spec:       clustersv1alpha1.ClusterRequestSpec{Purpose: clustersv1alpha1.PURPOSE_WORKLOAD},
	}
	must(t, ensure(t.Context(), platform, request))
	eventually(t, installed, "the workload Cluster is held", func(ctx context.Context) error {
		if err := platform.Get(ctx, client.ObjectKeyFromObject(request), request); err != nil {
			return err
		}
		if !request.Status.IsGranted() {
			return fmt.Errorf("the request is %s", request.Status.Phase)
		}
		return nil
	})
	return func() { must(t, platform.Delete(t.Context(), request)) }
}

// deletionNamespaceTerminating deletes everything in the tenant's namespace on the platform at once, the access too. Who is first, Flux with its
// uninstallation or the ClusterProvider with the rights, is not in our hands.
func (s tenant) deletionNamespaceTerminating(t *testing.T) {
	s.order(t)
	must(t, platform.Delete(t.Context(), s.platformNamespace()))
	s.startDeletion(t)
	refused := false
	eventually(t, installed, "the Velero is gone, or its credentials are refused", func(ctx context.Context) error {
		velero, err := s.velero(ctx)
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		if err := hasCondition(velero, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonCredentialsInvalid); err != nil {
			return err
		}
		refused = true
		return nil
	})
	if refused {
		s.dropServer(t)
	}
	s.assertNamespaceGone(t)
}

func (s tenant) platformNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.names.TenantNamespace}}
}

// deletionAfterRevocation: an AccessRequest cannot be brought back in a namespace that is going, so somebody has to decide what becomes of the
// server.
func (s tenant) deletionAfterRevocation(t *testing.T) {
	s.order(t)
	s.startDeletionAfter(t, func() {
		s.revoke(t, access.Workload)
		must(t, platform.Delete(t.Context(), s.platformNamespace()))
	})
	s.dropServer(t)
	s.assertNamespaceGone(t)
}

// dropServer does what the status asks a platform operator to do.
func (s tenant) dropServer(t *testing.T) {
	t.Helper()
	s.awaitBlocked(t, v1alpha1.ReasonCredentialsInvalid, "removing the Velero server", "a platform operator must", "suspend its HelmRelease")
	must(t, workload.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.names.WorkloadNamespace}}))
	s.patchRelease(t, plan.ServerRelease, `{"spec":{"suspend":true}}`)
}

// assertNamespaceGone is the end of a Velero whose tenant namespace was deleted.
func (s tenant) assertNamespaceGone(t *testing.T) {
	t.Helper()
	s.awaitVeleroGone(t)
	s.assertNoReleases(t)
	must(t, onboarding.Delete(t.Context(), s.controlPlaneObject()))
	s.awaitControlPlaneGone(t)
	eventually(t, installed, "nothing is left on the workload cluster", func(ctx context.Context) error {
		return isGone(ctx, workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.names.WorkloadNamespace}})
	})
}

// revoke deletes an AccessRequest and waits until its rights are gone. Our finalizer keeps the request, and its Secret, in sight.
func (s tenant) revoke(t *testing.T, id string) {
	t.Helper()
	request, err := s.accessRequest(t.Context(), id)
	must(t, err)
	must(t, platform.Delete(t.Context(), request))
	eventually(t, installed, "access "+id+" is withdrawn", func(ctx context.Context) error {
		request, err := s.accessRequest(ctx, id)
		if err != nil || len(request.Finalizers) == 1 {
			return err
		}
		return fmt.Errorf("finalizers are %v", request.Finalizers)
	})
}

// deletionWithoutFlux takes the HelmReleases away from everybody, and gives Flux its CRD back at the end.
func deletionWithoutFlux(t *testing.T) {
	tenant := newTenant(t, "team-flux", "flux-mcp")
	defer tenant.leave(t)
	t.Run("deletion: Flux's CRDs are gone | complete", func(t *testing.T) {
		tenant.order(t)
		definition := &apiextensionsv1.CustomResourceDefinition{}
		must(t, platform.Get(t.Context(), types.NamespacedName{Name: "helmreleases." + helmv2.GroupVersion.Group}, definition))
		again := &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: definition.Name, Labels: definition.Labels, Annotations: definition.Annotations}, Spec: definition.Spec,
		}
		must(t, platform.Delete(t.Context(), definition))
		eventually(t, installed, "the CRD is gone", func(ctx context.Context) error { return isGone(ctx, platform, definition) })
		tenant.startDeletion(t)
		tenant.awaitVeleroGone(t)
		must(t, platform.Create(t.Context(), again))
		eventually(t, installed, "the CRD is served", func(ctx context.Context) error { return platform.List(ctx, &helmv2.HelmReleaseList{}) })
		tenant.assertGone(t)
	})
	t.Run("installation: Flux's CRDs are back | installed without a restart", func(t *testing.T) {
		tenant.order(t)
	})
}

// awaitVeleroGone does not look at HelmReleases.
func (s tenant) awaitVeleroGone(t *testing.T) {
	t.Helper()
	eventually(t, installed, s.String()+" is gone", func(ctx context.Context) error {
		velero, err := s.velero(ctx)
		if err == nil {
			return fmt.Errorf("%w: %+v", errStillThere, velero.Status.Conditions)
		}
		return client.IgnoreNotFound(err)
	})
}
