package velero

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	openmcpconst "github.com/openmcp-project/openmcp-operator/api/constants"

	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// operatorInAPod ends the operator's process and runs its image on the node of the platform cluster, as openmcp-operator does.
func operatorInAPod() features.Feature {
	return features.New("operator in a pod").
		Setup(func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			must(t, world.PublishOperator(ctx, "test"))
			must(t, world.StopOperators(ctx))
			for _, object := range operatorObjects() {
				must(t, platform.Create(ctx, object))
			}
			return ctx
		}).
		Assess("it becomes ready, with the access that every pod has", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			deployment := &appsv1.Deployment{}
			key := client.ObjectKey{Namespace: landscape.SystemNamespace, Name: landscape.OperatorImage}
			eventually(t, done, "the operator's Deployment is available", func(ctx context.Context) error {
				if err := platform.Get(ctx, key, deployment); err != nil {
					return err
				}
				if deployment.Status.AvailableReplicas != 1 {
					return fmt.Errorf("status %+v", deployment.Status)
				}
				return nil
			})
			return ctx
		}).
		Feature()
}

// operatorObjects run the operator with the rights that its process had.
func operatorObjects() []client.Object {
	meta := metav1.ObjectMeta{Namespace: landscape.SystemNamespace, Name: landscape.OperatorImage}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "service-provider-velero-pod"}}
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: landscape.OperatorUser}
	binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: meta.Name}}
	labels := map[string]string{"app": meta.Name}
	deployment := &appsv1.Deployment{ObjectMeta: meta}
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	deployment.Spec.Template.Labels = labels
	deployment.Spec.Template.Spec = corev1.PodSpec{
		ServiceAccountName: meta.Name,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{operatorContainer(meta.Name)},
	}
	return []client.Object{&corev1.ServiceAccount{ObjectMeta: meta}, binding, deployment}
}

func operatorContainer(account string) corev1.Container {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	return corev1.Container{
		Name: "operator", Image: world.ImageAt(landscape.OperatorImage + ":test"),
		Args: []string{
			"run", "--environment=" + landscape.Environment, "--provider-name=" + landscape.ProviderName, "--verbosity=INFO",
			"--health-probe-bind-address=:8081",
		},
		Env: []corev1.EnvVar{
			field(openmcpconst.EnvVariablePodName, "metadata.name"), field(openmcpconst.EnvVariablePodNamespace, "metadata.namespace"),
			field(openmcpconst.EnvVariablePodIP, "status.podIP"), {Name: openmcpconst.EnvVariablePodServiceAccountName, Value: account},
		},
		ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(8081)},
		}},
		SecurityContext: &corev1.SecurityContext{
			ReadOnlyRootFilesystem: ptr.To(true), AllowPrivilegeEscalation: ptr.To(false),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}
