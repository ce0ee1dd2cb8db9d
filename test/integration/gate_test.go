package integration

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/internal/cluster"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// backupKind is a CRD as Velero's own, for what is looked at: its status is no subresource either.
func backupKind() *apiextensionsv1.CustomResourceDefinition {
	keep := true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "backups.velero.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "velero.io", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "backups", Singular: "backup", Kind: "Backup", ListKind: "BackupList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep},
			}}},
		},
	}
}

// stageWithBackups has a CRD that the other tests on the stage do without.
func stageWithBackups(t *testing.T) *stage {
	t.Helper()
	s, err := newStage(t.Context(), "stage-with-backups", func(string) bool { return true })
	must(t, err)
	must(t, establish(t.Context(), s, backupKind()))
	return s
}

func (s *stage) putBackup(t *testing.T, namespace, name, phase string) {
	t.Helper()
	must(t, ensure(t.Context(), s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	backup := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"phase": phase}}}
	backup.SetGroupVersionKind(schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: "Backup"})
	backup.SetNamespace(namespace)
	backup.SetName(name)
	must(t, s.Create(t.Context(), backup))
}

// TestWhatAServerIsAtWorkOn in its own namespace: nobody serves a Backup elsewhere.
func TestWhatAServerIsAtWorkOn(t *testing.T) {
	s := stageWithBackups(t)
	for name, phase := range map[string]string{
		"new": "New", "queued": "Queued", "runs": "InProgress", "waits": "WaitingForPluginOperationsPartiallyFailed", "ends": "Finalizing", "done": "Completed", "failed": "Failed",
	} {
		s.putBackup(t, "velero", name, phase)
	}
	s.putBackup(t, "elsewhere", "nobodys", "InProgress")
	found, err := cluster.Ongoing(t.Context(), s, "velero")
	must(t, err)
	if diff := cmp.Diff([]string{"backup ends", "backup runs", "backup waits"}, found); diff != "" {
		t.Errorf("at work on (-want +got):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cluster.Ongoing(ctx, s, "velero"); !cluster.Unseen(err) {
		t.Errorf("a look that failed: %v", err)
	}
}

func TestPodsOfAServer(t *testing.T) {
	s, err := theStage()
	must(t, err)
	const namespace = "velero--pods"
	must(t, ensure(t.Context(), s, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	pods, refusal, err := cluster.ServerPods(t.Context(), s, namespace)
	if len(pods) > 0 || refusal != "" || err != nil {
		t.Errorf("there is nothing, and it says %v, %q, %v", pods, refusal, err)
	}
	deployment := serverDeployment(namespace)
	must(t, s.Create(t.Context(), deployment))
	before := deployment.DeepCopy()
	deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: "exceeded quota"}}
	must(t, s.Status().Patch(t.Context(), deployment, client.MergeFrom(before)))
	if _, refusal, err = cluster.ServerPods(t.Context(), s, namespace); refusal != "exceeded quota" || err != nil {
		t.Errorf("no pod is taken, and it says %q, %v", refusal, err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}
	must(t, ensure(t.Context(), s, account))
	for name, app := range map[string]string{"the-server": plan.ServerRelease, "another": "else"} {
		must(t, s.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app.kubernetes.io/name": app}},
			Spec:       deployment.Spec.Template.Spec,
		}))
	}
	pods, refusal, err = cluster.ServerPods(t.Context(), s, namespace)
	must(t, err)
	if len(pods) != 1 || pods[0].Name != "the-server" || refusal != "" {
		t.Errorf("found %d pods, %q", len(pods), refusal)
	}
}

func serverDeployment(namespace string) *appsv1.Deployment {
	labels := map[string]string{"app": "velero"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "velero"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "velero", Image: "registry.example/velero:v1"}}},
			},
		},
	}
}
