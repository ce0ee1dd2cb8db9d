package clusterprovider

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"

	"github.com/openmcp-project/service-provider-velero/test/landscape/apiserver"
	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

// PurposeWithoutApps asks for a control plane that does not serve apps/v1, as the smallest ones do not. A tenant gets one
// through the purpose override label of its ControlPlane.
const PurposeWithoutApps = "mcp-without-apps"

const (
	clusterFinalizer = "local.clusters.openmcp.cloud/cluster"
	readyCondition   = "Ready"
)

// clusters reconciles Cluster objects of the profiles that name this provider.
type clusters struct {
	platform client.Client
	site     *site.Site
}

// Reconcile starts, binds or ends the API server of one Cluster.
func (r *clusters) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cluster := &clustersv1alpha1.Cluster{}
	if err := r.platform.Get(ctx, req.NamespacedName, cluster); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if ours, err := r.ours(ctx, cluster); err != nil || !ours {
		return ctrl.Result{}, err
	}
	if !cluster.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.remove(ctx, cluster)
	}
	if err := r.mark(ctx, cluster); err != nil {
		return ctrl.Result{}, err
	}
	server, err := r.serve(ctx, cluster)
	return ctrl.Result{}, r.report(ctx, cluster, server, err)
}

func (r *clusters) ours(ctx context.Context, cluster *clustersv1alpha1.Cluster) (bool, error) {
	profile := &clustersv1alpha1.ClusterProfile{}
	err := r.platform.Get(ctx, client.ObjectKey{Name: cluster.Spec.Profile}, profile)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && profile.Spec.ProviderRef.Name == Name, err
}

// mark puts our finalizer and labels on the Cluster.
func (r *clusters) mark(ctx context.Context, cluster *clustersv1alpha1.Cluster) error {
	before := cluster.DeepCopy()
	controllerutil.AddFinalizer(cluster, clusterFinalizer)
	metav1.SetMetaDataLabel(&cluster.ObjectMeta, clustersv1alpha1.ProviderLabel, Name)
	metav1.SetMetaDataLabel(&cluster.ObjectMeta, clustersv1alpha1.K8sVersionLabel, strings.TrimPrefix(r.site.KubernetesVersion, "v"))
	return patchIfChanged(ctx, r.platform, before, cluster)
}

// serve returns the server of a Cluster: one of its own for a control plane, the shared one for every other purpose.
func (r *clusters) serve(ctx context.Context, cluster *clustersv1alpha1.Cluster) (apiserver.Server, error) {
	name := ServerName(cluster)
	if !exclusive(cluster) {
		server, found, err := apiserver.Open(r.site, name)
		if err == nil && !found {
			err = fmt.Errorf("no server for the purposes %s", strings.Join(cluster.Spec.Purposes, ", "))
		}
		return server, err
	}
	spec := apiserver.Spec{Name: name}
	if slices.Contains(cluster.Spec.Purposes, PurposeWithoutApps) {
		spec.Flags = append(spec.Flags, "--runtime-config=apps/v1=false")
	}
	server, err := apiserver.Start(ctx, r.site, spec)
	if err != nil {
		return server, err
	}
	return server, server.StartControllers(apiserver.NodelessControllers()...)
}

// report writes what became of the Cluster into its status, and returns the error that was reported.
func (r *clusters) report(ctx context.Context, cluster *clustersv1alpha1.Cluster, server apiserver.Server, failure error) error {
	before := cluster.DeepCopy()
	cluster.Status.ObservedGeneration = cluster.Generation
	if failure != nil {
		cluster.Status.Phase = clustersv1alpha1.CLUSTER_PHASE_ERROR
		setReady(&cluster.Status.Status, cluster.Generation, failure)
		return firstError(failure, patchStatusIfChanged(ctx, r.platform, before, cluster))
	}
	cluster.Status.Phase = clustersv1alpha1.CLUSTER_PHASE_READY
	cluster.Status.Endpoints.Set(clustersv1alpha1.APISERVER_ENDPOINT_EXTERNAL, server.URL())
	cluster.Status.Endpoints.Set(clustersv1alpha1.APISERVER_ENDPOINT_INTERNAL, server.URL())
	setReady(&cluster.Status.Status, cluster.Generation, nil)
	return patchStatusIfChanged(ctx, r.platform, before, cluster)
}

// remove ends the server of a Cluster that nobody requests any more.
func (r *clusters) remove(ctx context.Context, cluster *clustersv1alpha1.Cluster) error {
	if cluster.GetTenancyCount() > 0 || !controllerutil.ContainsFinalizer(cluster, clusterFinalizer) {
		return nil
	}
	if exclusive(cluster) {
		server, found, err := apiserver.Open(r.site, ServerName(cluster))
		if err != nil {
			return err
		}
		if found {
			if err := server.Stop(ctx); err != nil {
				return err
			}
		}
	}
	before := cluster.DeepCopy()
	controllerutil.RemoveFinalizer(cluster, clusterFinalizer)
	return client.IgnoreNotFound(patchIfChanged(ctx, r.platform, before, cluster))
}

// ServerName is the name of the API server behind a Cluster.
func ServerName(cluster *clustersv1alpha1.Cluster) string {
	if exclusive(cluster) {
		return cluster.Namespace + "." + cluster.Name
	}
	for _, purpose := range []string{clustersv1alpha1.PURPOSE_PLATFORM, clustersv1alpha1.PURPOSE_ONBOARDING} {
		if slices.Contains(cluster.Spec.Purposes, purpose) {
			return purpose
		}
	}
	return clustersv1alpha1.PURPOSE_WORKLOAD
}

// exclusive says whether a Cluster gets a server of its own.
func exclusive(cluster *clustersv1alpha1.Cluster) bool {
	return slices.ContainsFunc(cluster.Spec.Purposes, func(purpose string) bool {
		return strings.HasPrefix(purpose, clustersv1alpha1.PURPOSE_MCP)
	})
}

// setReady records success, or the failure given.
func setReady(status *commonapi.Status, generation int64, failure error) {
	condition := metav1.Condition{
		Type: readyCondition, Status: metav1.ConditionTrue, Reason: "Reconciled", ObservedGeneration: generation,
	}
	if failure != nil {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "ReconcileError", failure.Error()
	}
	meta.SetStatusCondition(&status.Conditions, condition)
}
