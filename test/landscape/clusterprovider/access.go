package clusterprovider

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"
	libutils "github.com/openmcp-project/openmcp-operator/lib/utils"

	"github.com/openmcp-project/service-provider-velero/test/landscape/apiserver"
	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

const accessFinalizer = "local.clusters.openmcp.cloud/accessrequest"

// access reconciles the AccessRequests for this provider's Clusters.
type access struct {
	platform client.Client
	site     *site.Site
	lifetime time.Duration
	now      func() time.Time
}

// Reconcile grants one AccessRequest, renews its token in time, or takes the access back.
func (r *access) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	request := &clustersv1alpha1.AccessRequest{}
	if err := r.platform.Get(ctx, req.NamespacedName, request); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !request.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.revoke(ctx, request)
	}
	if !libutils.IsClusterProviderResponsibleForAccessRequest(request, Name) || request.Spec.ClusterRef == nil {
		return ctrl.Result{}, nil
	}
	before := request.DeepCopy()
	if controllerutil.AddFinalizer(request, accessFinalizer) {
		if err := patchIfChanged(ctx, r.platform, before, request); err != nil {
			return ctrl.Result{}, err
		}
	}
	renewal, err := r.grant(ctx, request)
	if errors.Is(err, errClusterNotReady) {
		return ctrl.Result{}, nil // its own change brings us back
	}
	if err != nil {
		return ctrl.Result{}, r.reportFailure(ctx, request, err)
	}
	return ctrl.Result{RequeueAfter: time.Until(renewal)}, nil
}

var errClusterNotReady = errors.New("the cluster is not ready")

// grant brings the rights and the token of a request up to date and returns when the token must be renewed.
func (r *access) grant(ctx context.Context, request *clustersv1alpha1.AccessRequest) (renewal time.Time, err error) {
	if request.Spec.Token == nil {
		return time.Time{}, errors.New("only spec.token is supported by this provider")
	}
	target, err := r.target(ctx, request)
	if err != nil {
		return time.Time{}, err
	}
	account, err := ensureRights(ctx, target.client, request)
	if err != nil {
		return time.Time{}, err
	}
	secret, renewal, err := r.ensureSecret(ctx, request, target, account)
	if err != nil {
		return time.Time{}, err
	}
	before := request.DeepCopy()
	request.Status.Phase = clustersv1alpha1.REQUEST_GRANTED
	request.Status.ObservedGeneration = request.Generation
	request.Status.SecretRef = &commonapi.LocalObjectReference{Name: secret}
	setReady(&request.Status.Status, request.Generation, nil)
	return renewal, patchStatusIfChanged(ctx, r.platform, before, request)
}

func (r *access) reportFailure(ctx context.Context, request *clustersv1alpha1.AccessRequest, failure error) error {
	before := request.DeepCopy()
	setReady(&request.Status.Status, request.Generation, failure)
	return firstError(failure, patchStatusIfChanged(ctx, r.platform, before, request))
}

// revoke removes what a request was granted. A cluster that is gone has taken it along.
func (r *access) revoke(ctx context.Context, request *clustersv1alpha1.AccessRequest) error {
	if !controllerutil.ContainsFinalizer(request, accessFinalizer) {
		return nil
	}
	target, err := r.target(ctx, request)
	switch {
	case errors.Is(err, errClusterGone):
	case err != nil:
		return err
	default:
		if err := removeRights(ctx, target.client, request); err != nil {
			return err
		}
	}
	before := request.DeepCopy()
	controllerutil.RemoveFinalizer(request, accessFinalizer)
	return client.IgnoreNotFound(patchIfChanged(ctx, r.platform, before, request))
}

// target is the cluster a request is for, with an administrator's client.
type target struct {
	server apiserver.Server
	client client.Client
}

var errClusterGone = errors.New("the cluster is gone")

func (r *access) target(ctx context.Context, request *clustersv1alpha1.AccessRequest) (target, error) {
	cluster := &clustersv1alpha1.Cluster{}
	ref := request.Spec.ClusterRef
	if ref == nil {
		return target{}, errClusterGone
	}
	err := r.platform.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, cluster)
	if apierrors.IsNotFound(err) {
		return target{}, errClusterGone
	}
	if err != nil {
		return target{}, err
	}
	if request.DeletionTimestamp.IsZero() && cluster.Status.Phase != clustersv1alpha1.CLUSTER_PHASE_READY {
		return target{}, errClusterNotReady
	}
	return connect(r.site, ServerName(cluster))
}

func connect(s *site.Site, name string) (target, error) {
	server, found, err := apiserver.Open(s, name)
	if err != nil {
		return target{}, err
	}
	if !found {
		return target{}, errClusterGone
	}
	config, err := server.RESTConfig()
	if err != nil {
		return target{}, err
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		return target{}, fmt.Errorf("connect to %s: %w", name, err)
	}
	return target{server: server, client: c}, nil
}

// secretKey is where the kubeconfig of a request is.
func secretKey(request *clustersv1alpha1.AccessRequest) *corev1.Secret {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = request.Namespace, secretName(request.Name)
	return secret
}
