package property

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"
)

// grants is a fake of the platform's scheduler and of its ClusterProvider: it grants every request, with a kubeconfig for theRemote.
type grants struct {
	platform *apiServer
	token    string
}

func (g grants) step(ctx context.Context, namespace string) error {
	var clusters clustersv1alpha1.ClusterRequestList
	if err := g.platform.List(ctx, &clusters, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range clusters.Items {
		if request := &clusters.Items[i]; !request.Status.IsGranted() {
			request.Status.Phase = clustersv1alpha1.REQUEST_GRANTED
			request.Status.Cluster = &commonapi.ObjectReference{Namespace: namespace, Name: request.Name}
			if err := g.platform.Status().Update(ctx, request); err != nil {
				return fmt.Errorf("grant a cluster: %w", err)
			}
		}
	}
	var requests clustersv1alpha1.AccessRequestList
	if err := g.platform.List(ctx, &requests, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range requests.Items {
		if err := g.grant(ctx, &requests.Items[i]); err != nil {
			return fmt.Errorf("grant access: %w", err)
		}
	}
	return nil
}

func (g grants) grant(ctx context.Context, request *clustersv1alpha1.AccessRequest) error {
	kubeconfig := g.kubeconfig(request.Name)
	key := types.NamespacedName{Namespace: request.Namespace, Name: request.Name + ".kubeconfig"}
	secret := &corev1.Secret{}
	err := g.platform.Get(ctx, key, secret)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if string(secret.Data[clustersv1alpha1.SecretKeyKubeconfig]) != kubeconfig {
		if err := put(ctx, g.platform, key, secret, func(secret *corev1.Secret) {
			secret.Data = map[string][]byte{clustersv1alpha1.SecretKeyKubeconfig: []byte(kubeconfig)}
		}); err != nil {
			return err
		}
	}
	if request.Status.IsGranted() && request.Status.ObservedGeneration == request.Generation {
		return nil
	}
	request.Status.Phase, request.Status.ObservedGeneration = clustersv1alpha1.REQUEST_GRANTED, request.Generation
	request.Status.SecretRef = &commonapi.LocalObjectReference{Name: key.Name}
	return g.platform.Status().Update(ctx, request)
}

func (g grants) kubeconfig(user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "%[3]s", certificate-authority-data: %[4]s}}]
contexts: [{name: c, context: {cluster: c, user: %[1]s}}]
users: [{name: %[1]s, user: {token: %[2]s}}]
`, user, g.token, server().URL, authority())
}
