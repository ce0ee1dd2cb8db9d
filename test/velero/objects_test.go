package velero

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// customResources is how many custom resources a tenant has.
const customResources = 50

// teams are the namespaces of the tenant.
var teams = []string{"team-a", "team-b", "team-c"}

// cooks is the kind of the tenant's custom resources.
func cooks() *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "cooks.kitchen.example"}}
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "kitchen.example", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "cooks", Singular: "cook", Kind: "Cook", ListKind: "CookList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: ptr.To(true),
			}},
		}},
	}
	return crd
}

// belongings are all objects of the tenant that lie in namespaces, and those that lie in none.
func belongings() []client.Object {
	var objects []client.Object
	for i := range customResources {
		cook := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kitchen.example/v1", "kind": "Cook",
			"spec": map[string]any{"number": int64(i), "dishes": []any{"soup", "bread"}, "nested": map[string]any{"true": true, "none": nil}},
		}}
		cook.SetNamespace(teams[i%len(teams)])
		cook.SetName(fmt.Sprintf("cook-%02d", i))
		cook.SetLabels(map[string]string{"shift": fmt.Sprint(i % 2)})
		cook.SetAnnotations(map[string]string{"kitchen.example/note": "ümläut, \"quotes\" and\nlines"})
		objects = append(objects, cook)
	}
	for _, namespace := range teams {
		objects = append(objects, inNamespace(namespace)...)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "cook-watcher"}, Rules: watching()}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "cook-watchers"}}
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
	binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "guests"}}
	return append(objects, role, binding)
}

func inNamespace(namespace string) []client.Object {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "menu", Labels: map[string]string{"team": namespace}}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: watching()}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name}}
	binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "menu"}}
	return []client.Object{
		&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"menu": "soup\n"}, BinaryData: map[string][]byte{"picture": {0, 1, 0xff}}},
		&corev1.Secret{ObjectMeta: meta, Type: "kitchen.example/recipe", Data: map[string][]byte{"recipe": {0xff, 0, 10}}},
		&corev1.ServiceAccount{ObjectMeta: meta},
		role, binding,
	}
}

func watching() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{"kitchen.example"}, Resources: []string{"cooks"}, Verbs: []string{"get", "watch"}}}
}

// moveIn creates all that the tenant has.
func moveIn(t *testing.T, c client.Client) {
	t.Helper()
	must(t, c.Create(t.Context(), cooks()))
	for _, name := range teams {
		must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	for _, object := range belongings() {
		eventually(t, done, "create "+describe(object), func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(c.Create(ctx, object))
		})
	}
}

// moveOut deletes it again, down to the namespaces and the kind of the custom resources.
func moveOut(t *testing.T, c client.Client) {
	t.Helper()
	objects := belongings()
	for _, name := range teams {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	objects = append(objects, cooks())
	for _, object := range objects {
		must(t, client.IgnoreNotFound(c.Delete(t.Context(), object)))
	}
	for _, object := range objects {
		eventually(t, done, describe(object)+" is gone", func(ctx context.Context) error {
			err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
			if err == nil {
				return fmt.Errorf("it is still there")
			}
			if apierrors.IsNotFound(err) || strings.Contains(err.Error(), "no matches for kind") {
				return nil
			}
			return err
		})
	}
}

// inventory reads all that the tenant has, without what an API server decides on and what Velero notes on what it restored.
func inventory(t *testing.T, c client.Client) map[string]any {
	t.Helper()
	found := map[string]any{}
	for _, object := range belongings() {
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		must(t, err)
		plain := &unstructured.Unstructured{Object: content}
		for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"} {
			unstructured.RemoveNestedField(plain.Object, "metadata", field)
		}
		for _, label := range []string{"velero.io/backup-name", "velero.io/restore-name"} {
			unstructured.RemoveNestedField(plain.Object, "metadata", "labels", label)
		}
		if len(plain.GetLabels()) == 0 {
			unstructured.RemoveNestedField(plain.Object, "metadata", "labels")
		}
		found[describe(object)] = plain.Object
	}
	return found
}

func describe(object client.Object) string {
	if custom, ok := object.(*unstructured.Unstructured); ok {
		return custom.GetKind() + " " + client.ObjectKeyFromObject(object).String()
	}
	return fmt.Sprintf("%T %s", object, client.ObjectKeyFromObject(object))
}
