package integration

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/access"
	"github.com/openmcp-project/service-provider-velero/internal/app"
	"github.com/openmcp-project/service-provider-velero/internal/cli"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// installed is a Velero that the operator brought to Ready on the stage.
func installed(t *testing.T, namespace string) *life {
	t.Helper()
	lived := newLife(t, namespace, &line{})
	lived.reconciler.Access = access.New(lived.stage, lived.stage, app.TenantPermissions())
	lived.until(t, "Ready", func(velero *v1alpha1.Velero) bool {
		return velero.Status.Phase == string(v1alpha1.Ready) && velero.Status.ObservedGeneration == velero.Generation
	})
	return lived
}

// exported are objects as kubectl get -o yaml prints them.
func (s *stage) exported(t *testing.T, objects ...client.Object) string {
	t.Helper()
	list := map[string]any{"apiVersion": "v1", "kind": "List"}
	var items []any
	for _, object := range objects {
		gvk, err := apiutil.GVKForObject(object, scheme())
		must(t, err)
		found := &unstructured.Unstructured{}
		found.SetGroupVersionKind(gvk)
		must(t, s.Get(t.Context(), client.ObjectKeyFromObject(object), found))
		items = append(items, found.Object)
	}
	list["items"] = items
	content, err := json.Marshal(list)
	must(t, err)
	return string(content)
}

func secretOf(namespace, name string) *corev1.Secret {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = namespace, name
	return secret
}

// inputs are everything that render is given about a life.
func (l *life) inputs(t *testing.T) string {
	t.Helper()
	velero, config := &v1alpha1.Velero{}, &v1alpha1.ProviderConfig{}
	velero.Namespace, velero.Name, config.Name = l.velero.Namespace, l.velero.Name, "default"
	grants, err := access.Granted(t.Context(), l.stage, l.velero)
	must(t, err)
	return l.stage.exported(t, velero, config, secretOf(landscape.SystemNamespace, "privateregcred"), secretOf(landscape.SystemNamespace, "chartcred"),
		secretOf(l.names.TenantNamespace, grants.Server.Secret), secretOf(l.names.TenantNamespace, grants.ControlPlane.Secret), secretOf(l.names.TenantNamespace, grants.Workload.Secret))
}

func renderOf(t *testing.T, in string, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	must(t, cli.Render(t.Context(), args, cli.Streams{In: strings.NewReader(in), Out: &out, Err: t.Output()}))
	return out.String()
}

// TestRenderIsWhatTheOperatorWrites, object by object.
func TestRenderIsWhatTheOperatorWrites(t *testing.T) {
	lived := installed(t, "render")
	var list struct{ Items []map[string]any }
	must(t, json.Unmarshal([]byte(renderOf(t, lived.inputs(t), "-f", "-", "-c", "-", "-o", "json", "--show-secrets")), &list))
	want := map[string]any{}
	for _, item := range list.Items {
		object := unstructured.Unstructured{Object: item}
		want[object.GetKind()+" "+object.GetName()] = essence(object)
	}
	if diff := cmp.Diff(want, lived.written(t)); diff != "" {
		t.Errorf("objects (-rendered +written):\n%s", diff)
	}
}

// written is everything of ours that is in the tenant namespace.
func (l *life) written(t *testing.T) map[string]any {
	t.Helper()
	found := map[string]any{}
	for _, list := range []client.ObjectList{
		&clustersv1alpha1.AccessRequestList{}, &clustersv1alpha1.ClusterRequestList{}, &sourcev1.OCIRepositoryList{}, &helmv2.HelmReleaseList{}, &corev1.SecretList{},
	} {
		gvk, err := apiutil.GVKForObject(list, scheme())
		must(t, err)
		objects := &unstructured.UnstructuredList{}
		objects.SetGroupVersionKind(gvk)
		must(t, l.stage.List(t.Context(), objects, client.InNamespace(l.names.TenantNamespace), client.MatchingLabels{plan.ManagedByLabel: plan.ProviderName}))
		for _, object := range objects.Items {
			found[object.GetKind()+" "+object.GetName()] = essence(object)
		}
	}
	return found
}

// essence is what somebody wrote, without what others add to it.
func essence(object unstructured.Unstructured) map[string]any {
	annotations := map[string]string{}
	for _, key := range []string{plan.SourcesAnnotation, plan.KeysAnnotation} {
		annotations[key] = object.GetAnnotations()[key]
	}
	finalizers := slices.DeleteFunc(object.GetFinalizers(), func(finalizer string) bool { return finalizer == theirs })
	return map[string]any{
		"apiVersion": object.GetAPIVersion(), "namespace": object.GetNamespace(), "labels": object.GetLabels(), "annotations": annotations,
		"finalizers": strings.Join(finalizers, " "), "spec": asPlain(object.Object["spec"]), "data": object.Object["data"], "type": object.Object["type"],
	}
}

// asPlain makes the numbers of different decoders comparable.
func asPlain(value any) string {
	content, _ := json.Marshal(value)
	return string(content)
}

// TestRenderDiff shows what the operator then does.
func TestRenderDiff(t *testing.T) {
	lived := installed(t, "render-diff")
	kubeconfig := lived.stage.kubeconfigFile(t)
	velero, config := &v1alpha1.Velero{}, &v1alpha1.ProviderConfig{}
	velero.Namespace, velero.Name, config.Name = lived.velero.Namespace, lived.velero.Name, "default"
	veleros, current := lived.stage.exported(t, velero), lived.stage.exported(t, config)
	before := asPlain(lived.written(t))
	diff := func(config string) string {
		path := filepath.Join(t.TempDir(), "config.json")
		must(t, os.WriteFile(path, []byte(config), 0o600))
		return renderOf(t, veleros, "--diff", "--kubeconfig", kubeconfig, "-f", "-", "-c", path)
	}
	if got, want := diff(current), "# velero render-diff/life: no change\n"; got != want {
		t.Errorf("without an edit:\n%s", got)
	}
	edited := strings.NewReplacer(`"image":"velero/velero"`, `"image":"mirror.example/velero"`, `"repository":"oci://`, `"repository":"oci://mirror.example/`,
		`"imagePullSecrets":[{"name":"privateregcred"}]`, `"imagePullSecrets":[{"name":"chartcred"}]`).Replace(current)
	got := diff(edited)
	for _, part := range []string{
		"# velero render-diff/life: 2 created, 3 changed, 2 removed once unused\n",
		"-    image: velero/velero:v1.17.1\n+    image: mirror.example/velero:v1.17.1\n", "-    - name: privateregcred\n+    - name: chartcred\n",
		"+  url: oci://mirror.example/", "--- before Secret sp-velero-server-values", "changed)'", "+++ (none)",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is missing in:\n%s", part, got)
		}
	}
	for _, part := range []string{"dXNlcjpwYXNz", "uid", "resourceVersion", "managedFields"} {
		if strings.Contains(got, part) {
			t.Errorf("%q is in:\n%s", part, got)
		}
	}
	if after := asPlain(lived.written(t)); after != before {
		t.Error("the preview wrote something")
	}
}

func (s *stage) kubeconfigFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(path, s.kubeconfig, 0o600))
	return path
}
