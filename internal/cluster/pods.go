package cluster

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// serverDeployment is the name that chart velero-server gives the Deployment.
const serverDeployment = "velero"

// ServerPods lists the pods of a server. Where there is none, refusal is what the cluster wrote when it did not take one; it is for programs.
func ServerPods(ctx context.Context, remote client.Client, namespace string) (pods []corev1.Pod, refusal string, err error) {
	var list corev1.PodList
	if err := remote.List(ctx, &list, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": plan.ServerRelease}); err != nil {
		return nil, "", remoteError(err)
	}
	if len(list.Items) > 0 {
		return list.Items, "", nil
	}
	deployment := &appsv1.Deployment{}
	err = remote.Get(ctx, types.NamespacedName{Namespace: namespace, Name: serverDeployment}, deployment)
	if err != nil {
		return nil, "", remoteError(client.IgnoreNotFound(err))
	}
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue {
			return nil, condition.Message, nil
		}
	}
	return nil, "", nil
}
