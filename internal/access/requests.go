package access

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/openmcp-project/controller-utils/pkg/logging"
	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"
	"github.com/openmcp-project/openmcp-operator/lib/clusteraccess/advanced"

	"github.com/openmcp-project/service-provider-velero/fluxgen"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

func registrations(permissions Permissions) map[string]advanced.ClusterRegistration {
	return map[string]advanced.ClusterRegistration{
		ControlPlane: advanced.ExistingClusterRequest(ControlPlane, ControlPlane, controlPlaneReference).
			WithTokenAccess(&clustersv1alpha1.TokenConfig{Permissions: permissions.ControlPlane}).
			WithNamespaceGenerator(advanced.DefaultNamespaceGeneratorForMCP).Build(),
		Server: advanced.ExistingClusterRequest(Server, Server, controlPlaneReference).
			WithTokenAccess(&clustersv1alpha1.TokenConfig{RoleRefs: permissions.ServerRoles}).
			WithNamespaceGenerator(advanced.DefaultNamespaceGeneratorForMCP).Build(),
		Workload: advanced.NewClusterRequest(Workload, Workload, workloadRequest).
			WithTokenAccessGenerator(workloadAccess(permissions)).
			WithNamespaceGenerator(advanced.DefaultNamespaceGeneratorForMCP).Build(),
	}
}

// write has the library create or update one AccessRequest, and returns the request as it was written; nil when it was already as it should be, or
// has to wait for its cluster.
//
// Each request has a library reconciler of its own: a single one would hold back every request until the workload cluster is there, in an order
// that changes from run to run. It remembers only deletions, which are not left to it. It asks to be called again after a while, which the watch
// on its requests does better, and it logs every call.
func (a *Access) write(ctx context.Context, velero types.NamespacedName, id string) (*clustersv1alpha1.AccessRequest, error) {
	observed := &observedWrites{Client: a.client}
	library := advanced.NewClusterAccessReconciler(observed, plan.ProviderName).Register(a.requests[id]).WithManagedLabels(managedLabels)
	_, err := library.Reconcile(logging.NewContext(ctx, logging.Discard()), reconcile.Request{NamespacedName: velero})
	return observed.request, err
}

// observedWrites is a client that keeps the AccessRequest that was written through it.
type observedWrites struct {
	client.Client
	request *clustersv1alpha1.AccessRequest
}

// Create implements client.Client.
func (o *observedWrites) Create(ctx context.Context, object client.Object, opts ...client.CreateOption) error {
	return o.keep(object, o.Client.Create(ctx, object, opts...))
}

// Update implements client.Client.
func (o *observedWrites) Update(ctx context.Context, object client.Object, opts ...client.UpdateOption) error {
	return o.keep(object, o.Client.Update(ctx, object, opts...))
}

func (o *observedWrites) keep(object client.Object, err error) error {
	if request, ok := object.(*clustersv1alpha1.AccessRequest); ok && err == nil {
		o.request = request
	}
	return err
}

// controlPlaneReference is the ClusterRequest that the ControlPlane controller makes: of the control plane's name, in its tenant namespace.
func controlPlaneReference(request reconcile.Request, _ ...any) (*commonapi.ObjectReference, error) {
	names, err := plan.NamesOf(request.NamespacedName)
	if err != nil {
		return nil, err
	}
	return &commonapi.ObjectReference{Name: request.Name, Namespace: names.TenantNamespace}, nil
}

func workloadRequest(reconcile.Request, ...any) (*clustersv1alpha1.ClusterRequestSpec, error) {
	return &clustersv1alpha1.ClusterRequestSpec{Purpose: clustersv1alpha1.PURPOSE_WORKLOAD}, nil
}

func workloadAccess(permissions Permissions) func(reconcile.Request, ...any) (*clustersv1alpha1.TokenConfig, error) {
	return func(request reconcile.Request, _ ...any) (*clustersv1alpha1.TokenConfig, error) {
		names, err := plan.NamesOf(request.NamespacedName)
		if err != nil {
			return nil, err
		}
		return &clustersv1alpha1.TokenConfig{Permissions: permissions.Workload(names.WorkloadNamespace)}, nil
	}
}

func managedLabels(provider string, request reconcile.Request, registration advanced.ClusterRegistration) (string, string, map[string]string) {
	managedBy, purpose, _ := advanced.DefaultManagedLabelGenerator(provider, request, registration)
	// A name that cannot be derived fails everywhere else already.
	names, _ := plan.NamesOf(request.NamespacedName)
	return managedBy, purpose, names.Labels()
}

func requestKey(velero types.NamespacedName, names plan.Names, id string) types.NamespacedName {
	return types.NamespacedName{
		Namespace: names.TenantNamespace,
		Name:      advanced.StableRequestName(plan.ProviderName, reconcile.Request{NamespacedName: velero}, id),
	}
}

// guarded adds our finalizer and labels to the Secret of a grant and says whether that changed anything.
func guarded(secret *metav1.PartialObjectMetadata, names plan.Names) bool {
	changed := controllerutil.AddFinalizer(secret, plan.Finalizer)
	for key, value := range map[string]string{plan.InstanceLabel: names.Instance, fluxgen.WatchLabel: fluxgen.WatchEnabled} {
		if secret.Labels[key] != value {
			changed = true
			metav1.SetMetaDataLabel(&secret.ObjectMeta, key, value)
		}
	}
	return changed
}
