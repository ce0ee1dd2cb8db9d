package access

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ctrlutils "github.com/openmcp-project/controller-utils/pkg/controller"
	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"
	openmcpconst "github.com/openmcp-project/openmcp-operator/api/constants"
	"github.com/openmcp-project/openmcp-operator/lib/clusteraccess/advanced"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// kubeconfigSuffix is what a ClusterProvider makes the name of a Secret with, from that of its AccessRequest.
const kubeconfigSuffix = ".kubeconfig"

// Foreseen are the grants that a Velero will get. The names of the Secrets are up to the ClusterProvider: these are the ones that openMCP's own
// gives. Versions are those of Secrets, so there are none yet.
func Foreseen(velero types.NamespacedName) (plan.Grants, error) {
	names, err := plan.NamesOf(velero)
	if err != nil {
		return plan.Grants{}, err
	}
	grant := func(id string) plan.Grant {
		request := requestKey(velero, names, id).Name
		secret := ctrlutils.ShortenToXCharactersUnsafe(request, ctrlutils.K8sMaxNameLength-len(kubeconfigSuffix)) + kubeconfigSuffix
		return plan.Grant{Secret: secret, Key: clustersv1alpha1.SecretKeyKubeconfig}
	}
	return plan.Grants{ControlPlane: grant(ControlPlane), Server: grant(Server), Workload: grant(Workload)}, nil
}

// Requests are the AccessRequests, and the ClusterRequest, that Ensure makes for a Velero.
func Requests(velero types.NamespacedName, permissions Permissions) ([]client.Object, error) {
	names, err := plan.NamesOf(velero)
	if err != nil {
		return nil, err
	}
	var objects []client.Object
	all := registrations(permissions)
	for _, id := range ids {
		wanted, err := requested(velero, names, all[id])
		if err != nil {
			return nil, fmt.Errorf("describe access %q: %w", id, err)
		}
		objects = append(objects, wanted...)
	}
	return objects, nil
}

// requested is what the library makes of one registration: it has no function that only says so.
func requested(velero types.NamespacedName, names plan.Names, registration advanced.ClusterRegistration) ([]client.Object, error) {
	parameters := registration.Parameterize(reconcile.Request{NamespacedName: velero})
	meta := requestMeta(velero, names, registration)
	access := &clustersv1alpha1.AccessRequest{TypeMeta: requestType("AccessRequest"), ObjectMeta: meta}
	var err error
	if access.Spec.Token, err = parameters.AccessRequestTokenConfig(); err != nil {
		return nil, err
	}
	if access.Spec.RequestRef, err = parameters.ClusterRequestReference(); err != nil {
		return nil, err
	}
	cluster, err := parameters.ClusterRequestSpec()
	if err != nil || cluster == nil {
		return []client.Object{access}, err
	}
	access.Spec.RequestRef = &commonapi.ObjectReference{Name: meta.Name, Namespace: meta.Namespace}
	request := &clustersv1alpha1.ClusterRequest{TypeMeta: requestType("ClusterRequest"), ObjectMeta: *meta.DeepCopy(), Spec: *cluster}
	return []client.Object{request, access}, nil
}

func requestType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: clustersv1alpha1.GroupVersion.String(), Kind: kind}
}

func requestMeta(velero types.NamespacedName, names plan.Names, registration advanced.ClusterRegistration) metav1.ObjectMeta {
	key := requestKey(velero, names, registration.ID())
	managedBy, purpose, labels := managedLabels(plan.ProviderName, reconcile.Request{NamespacedName: velero}, registration)
	labels[openmcpconst.ManagedByLabel] = ctrlutils.ShortenToXCharactersUnsafe(managedBy, ctrlutils.K8sMaxNameLength)
	labels[openmcpconst.ManagedPurposeLabel] = ctrlutils.ShortenToXCharactersUnsafe(purpose, ctrlutils.K8sMaxNameLength)
	return metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: labels, Finalizers: []string{advanced.Finalizer}}
}
