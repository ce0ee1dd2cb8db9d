package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/cluster"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// editor is somebody who edits generated Secrets.
type editor struct {
	*testing.T
	client client.Client
	secret *corev1.Secret
}

func (e editor) merge(manager, patch string) {
	e.Helper()
	must(e.T, e.client.Patch(e.Context(), e.secret.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(manager)))
}

// edits are what people and programs do to a Secret; after each, it holds something else than what was generated, or did for a while.
var edits = map[string]func(editor){
	"a value is changed": func(e editor) { e.merge("kubectl-edit", `{"data":{"values.yaml":"ZWRpdGVk"}}`) },
	"a value is changed, and back": func(e editor) {
		e.merge("kubectl-edit", `{"data":{"values.yaml":"ZWRpdGVk"}}`)
		before := e.secret.DeepCopy()
		must(e.T, e.client.Get(e.Context(), client.ObjectKeyFromObject(before), before))
		before.Data = e.secret.Data
		must(e.T, e.client.Update(e.Context(), before, client.FieldOwner("kubectl-edit")))
	},
	"a value is changed as text":   func(e editor) { e.merge("kubectl-patch", `{"stringData":{"values.yaml":"edited"}}`) },
	"the key is removed":           func(e editor) { e.merge("kubectl-edit", `{"data":{"values.yaml":null}}`) },
	"all is removed":               func(e editor) { e.merge("kubectl-edit", `{"data":null}`) },
	"a key is added":               func(e editor) { e.merge("kubectl-edit", `{"data":{"another":"ZWRpdGVk"}}`) },
	"the key is renamed":           func(e editor) { e.merge("kubectl-edit", `{"data":{"values.yaml":null,"another":"ZWRpdGVk"}}`) },
	"its contents are frozen, too": func(e editor) { e.merge("kubectl-edit", `{"immutable":true,"data":{"values.yaml":"ZWRpdGVk"}}`) },
	"the record of it is removed": func(e editor) {
		e.merge("kubectl-edit", `{"metadata":{"managedFields":[{}]},"data":{"values.yaml":"ZWRpdGVk"}}`)
	},
	"a value is applied as text": func(e editor) {
		edited := corev1ac.Secret(e.secret.Name, e.secret.Namespace).WithStringData(map[string]string{"values.yaml": "edited"})
		must(e.T, e.client.Apply(e.Context(), edited, client.FieldOwner("kubectl"), client.ForceOwnership))
	},
	"a value is applied": func(e editor) {
		edited := corev1ac.Secret(e.secret.Name, e.secret.Namespace).WithData(map[string][]byte{"values.yaml": []byte("edited")})
		must(e.T, e.client.Apply(e.Context(), edited, client.FieldOwner("kubectl"), client.ForceOwnership))
	},
	"it is replaced by an edited copy": func(e editor) {
		edited := e.secret.DeepCopy()
		edited.ResourceVersion, edited.UID, edited.Data = "", "", map[string][]byte{"values.yaml": []byte("edited")}
		must(e.T, e.client.Delete(e.Context(), e.secret.DeepCopy()))
		must(e.T, e.client.Create(e.Context(), edited, client.FieldOwner("kubectl-replace")))
	},
	// Of more writers than that, the API server forgets who wrote what.
	"many change it": func(e editor) {
		for i := range 15 {
			e.merge(fmt.Sprintf("writer-%d", i), fmt.Sprintf(`{"data":{"values.yaml":"ZWRpdGVk","key-%d":"MQ=="}}`, i))
		}
	},
}

// TestEditedSecretIsRepaired: whatever somebody does to the contents of a generated Secret is undone by the next reconcile, and the one after
// that has nothing to do.
func TestEditedSecretIsRepaired(t *testing.T) {
	line := &line{}
	life := newLife(t, "edited", line)
	life.until(t, "Ready", func(velero *v1alpha1.Velero) bool { return velero.Status.Phase == string(v1alpha1.Ready) })
	life.doesNothing(t)
	want := life.generated(t, "sp-velero-server-identity").Data
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			edit(editor{t, life.stage, life.generated(t, "sp-velero-server-identity")})
			life.reconcile(t)
			if diff := cmp.Diff(want, life.generated(t, "sp-velero-server-identity").Data); diff != "" {
				t.Errorf("data (-generated +there):\n%s", diff)
			}
			life.doesNothing(t)
		})
	}
}

// TestWhatIsNoEditChangesNothing: what somebody does that leaves the contents alone must not cause writes.
func TestWhatIsNoEditChangesNothing(t *testing.T) {
	life := newLife(t, "unedited", &line{})
	life.until(t, "Ready", func(velero *v1alpha1.Velero) bool { return velero.Status.Phase == string(v1alpha1.Ready) })
	secret := life.generated(t, "sp-velero-server-identity")
	e := editor{t, life.stage, secret}
	e.merge("kubectl-label", `{"metadata":{"labels":{"note":"of-an-SRE"},"annotations":{"note":"of an SRE"}}}`)
	e.merge("kubectl-edit", `{"immutable":true}`)
	same := corev1ac.Secret(secret.Name, secret.Namespace).WithData(secret.Data)
	must(t, life.stage.Apply(t.Context(), same, client.FieldOwner("kubectl")))
	life.doesNothing(t)
	// What is frozen is made anew when it has to change.
	life.renewCredentials(t)
	life.reconcile(t)
	if after := life.generated(t, secret.Name); after.UID == secret.UID || after.Immutable != nil {
		t.Errorf("it is still the frozen one: %+v", after.ObjectMeta)
	}
	life.doesNothing(t)
}

// renewCredentials has the ClusterProvider write all its Secrets again.
func (l *life) renewCredentials(t *testing.T) {
	t.Helper()
	var secrets corev1.SecretList
	must(t, l.stage.List(t.Context(), &secrets, client.InNamespace(l.names.TenantNamespace)))
	for i := range secrets.Items {
		if _, granted := secrets.Items[i].Data[clustersv1alpha1.SecretKeyKubeconfig]; granted {
			merge(t, l.stage, &secrets.Items[i], `{"data":{"renewed":"MQ=="}}`)
		}
	}
}

func (l *life) generated(t *testing.T, name string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	must(t, l.stage.Get(t.Context(), client.ObjectKey{Namespace: l.names.TenantNamespace, Name: name}, secret))
	return secret
}

func (l *life) reconcile(t *testing.T) {
	t.Helper()
	_, err := l.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: l.velero})
	must(t, err)
}

// doesNothing checks that a reconcile writes nothing and reads no contents.
func (l *life) doesNothing(t *testing.T) {
	t.Helper()
	done := len(l.calls)
	l.reconcile(t)
	for _, call := range l.calls[done:] {
		if call.write || strings.HasPrefix(call.what, "get *v1.Secret ") {
			t.Errorf("a reconcile with nothing to do: %s", call.what)
		}
	}
}

// TestCachesTellOfEdits: the caches have what an edit is recognised by, for generated Secrets and for nothing else.
func TestCachesTellOfEdits(t *testing.T) {
	_, names := newTenant(t, "cache-edits")
	source, release := rendered(t, names)
	applied(t, names)
	secret := generated(names, "sp-velero-copy", corev1.SecretTypeOpaque, map[string][]byte{"a": []byte("1")})
	must(t, platformOf().ApplySecret(t.Context(), secret.DeepCopy()))
	seen := observed(t, names, func(seen cluster.Observation) error {
		if seen.Secrets[secret.Name] == nil {
			return errors.New("the cache lacks the Secret")
		}
		return nil
	})
	if !plan.Untouched(seen.Secrets[secret.Name]) {
		t.Errorf("what was just written counts as edited: %+v", seen.Secrets[secret.Name].ManagedFields)
	}
	for _, object := range []client.Object{seen.Sources[source.Name], seen.Releases[release.Name]} {
		if len(object.GetManagedFields()) > 0 {
			t.Errorf("the caches hold what nobody looks at: %v", object.GetManagedFields())
		}
	}
	merge(t, platform, stored(t, secret), `{"data":{"a":"Mg=="}}`)
	observed(t, names, func(seen cluster.Observation) error {
		if plan.Untouched(seen.Secrets[secret.Name]) {
			return errors.New("the edit is not seen")
		}
		return nil
	})
}
