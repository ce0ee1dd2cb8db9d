package access

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// Granted says what is granted for a Velero, and what is foreseen where that is nothing yet. Unlike Look, it only reads.
func Granted(ctx context.Context, platform client.Reader, velero types.NamespacedName) (plan.Grants, error) {
	grants, err := Foreseen(velero)
	if err != nil {
		return grants, err
	}
	names, err := plan.NamesOf(velero)
	if err != nil {
		return grants, err
	}
	for id, grant := range map[string]*plan.Grant{ControlPlane: &grants.ControlPlane, Server: &grants.Server, Workload: &grants.Workload} {
		request := &clustersv1alpha1.AccessRequest{}
		err := platform.Get(ctx, requestKey(velero, names, id), request)
		if err == nil && judge(request, id) == nil {
			grant.Secret = request.Status.SecretRef.Name
			grant.Version, err = versionOf(ctx, platform, types.NamespacedName{Namespace: request.Namespace, Name: grant.Secret})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return grants, fmt.Errorf("read access %q: %w", id, err)
		}
	}
	return grants, nil
}

func versionOf(ctx context.Context, platform client.Reader, key types.NamespacedName) (plan.Version, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := platform.Get(ctx, key, secret)
	return plan.Version{UID: secret.UID, ResourceVersion: secret.ResourceVersion}, err
}
