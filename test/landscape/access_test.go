package landscape_test

import (
	"bytes"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"

	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

func TestAccessIsExactlyWhatWasAskedFor(t *testing.T) {
	l := up(t)
	request := ask(t, l, "exactly", permission("exactly", "secrets"))
	user := userOf(t, l, request)
	if err := user.List(t.Context(), &corev1.SecretList{}, client.InNamespace("exactly")); err != nil {
		t.Errorf("what was asked for is not allowed: %v", err)
	}
	if err := user.List(t.Context(), &corev1.SecretList{}, client.InNamespace("default")); !apierrors.IsForbidden(err) {
		t.Errorf("another namespace answers %v", err)
	}
	if err := user.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("exactly")); !apierrors.IsForbidden(err) {
		t.Errorf("another kind answers %v", err)
	}
}

func TestChangedPermissionsReplaceTheOldOnes(t *testing.T) {
	l := up(t)
	platform := clientOf(t, l.Platform)
	request := ask(t, l, "changed", permission("changed-a", "secrets"), permission("", "nodes"))
	before := request.DeepCopy()
	request.Spec.Token.Permissions = []clustersv1alpha1.PermissionsRequest{permission("changed-b", "configmaps")}
	if err := platform.Patch(t.Context(), request, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	awaitGrant(t, l, request)
	user := userOf(t, l, request)
	if err := user.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("changed-b")); err != nil {
		t.Errorf("the new permission is not there: %v", err)
	}
	if err := user.List(t.Context(), &corev1.SecretList{}, client.InNamespace("changed-a")); !apierrors.IsForbidden(err) {
		t.Errorf("the old namespace answers %v", err)
	}
	if err := user.List(t.Context(), &corev1.NodeList{}); !apierrors.IsForbidden(err) {
		t.Errorf("the old cluster-wide permission answers %v", err)
	}
}

func TestTokenIsRenewedInPlace(t *testing.T) {
	l := up(t)
	platform := clientOf(t, l.Platform)
	request := ask(t, l, "renewed", permission("renewed", "secrets"))
	secret := secretOf(t, l, request)
	old := secret.DeepCopy()
	secret.Labels = map[string]string{"somebody": "else"}
	controllerutil.AddFinalizer(secret, "example.com/guard")
	// An end in the past asks for a new token now, as the clock would in time.
	secret.Data[clustersv1alpha1.SecretKeyExpirationTimestamp] = secret.Data[clustersv1alpha1.SecretKeyCreationTimestamp]
	if err := platform.Patch(t.Context(), secret, client.MergeFrom(old)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the token is new", func() error {
		secret = secretOf(t, l, request)
		if bytes.Equal(secret.Data[clustersv1alpha1.SecretKeyKubeconfig], old.Data[clustersv1alpha1.SecretKeyKubeconfig]) {
			return fmt.Errorf("it is still the old one")
		}
		return nil
	})
	if secret.UID != old.UID || secret.Labels["somebody"] != "else" || !controllerutil.ContainsFinalizer(secret, "example.com/guard") {
		t.Errorf("the Secret lost what others put on it: %+v", secret.ObjectMeta)
	}
	if err := userOf(t, l, request).List(t.Context(), &corev1.SecretList{}, client.InNamespace("renewed")); err != nil {
		t.Errorf("the new token does not work: %v", err)
	}
	released := secret.DeepCopy()
	controllerutil.RemoveFinalizer(released, "example.com/guard")
	if err := platform.Patch(t.Context(), released, client.MergeFrom(secret)); err != nil {
		t.Fatal(err)
	}
}

func TestDeletedSecretAndRecreatedAccountHeal(t *testing.T) {
	l := up(t)
	request := ask(t, l, "heal", permission("heal", "secrets"))
	secret := secretOf(t, l, request)
	if err := clientOf(t, l.Platform).Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new Secret works", func() error {
		user, err := tryUserOf(t, l, request)
		if err != nil {
			return err
		}
		return user.List(t.Context(), &corev1.SecretList{}, client.InNamespace("heal"))
	})
}

func TestDeletedRequestTakesItsRightsAlong(t *testing.T) {
	l := up(t)
	request := ask(t, l, "deleted", permission("deleted", "secrets"))
	user, secret := userOf(t, l, request), secretOf(t, l, request)
	platform := clientOf(t, l.Platform)
	if err := platform.Delete(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the AccessRequest is gone", func() error { return gone(t.Context(), platform, request) })
	eventually(t, "its Secret is gone", func() error { return gone(t.Context(), platform, secret) })
	eventually(t, "its token is refused", func() error {
		err := user.List(t.Context(), &corev1.SecretList{}, client.InNamespace("deleted"))
		if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
			return nil
		}
		return fmt.Errorf("the token answers %w", err)
	})
	roles := &rbacv1.RoleList{}
	if err := clientOf(t, l.Workload).List(t.Context(), roles, client.InNamespace("deleted")); err != nil {
		t.Fatal(err)
	}
	if len(roles.Items) > 0 {
		t.Errorf("%d Roles are left", len(roles.Items))
	}
}

// ask makes a ClusterRequest for the workload cluster and an AccessRequest for it, and waits until it is granted.
func ask(t *testing.T, l *landscape.Landscape, name string, permissions ...clustersv1alpha1.PermissionsRequest) *clustersv1alpha1.AccessRequest {
	t.Helper()
	platform := clientOf(t, l.Platform)
	cluster := &clustersv1alpha1.ClusterRequest{Spec: clustersv1alpha1.ClusterRequestSpec{Purpose: clustersv1alpha1.PURPOSE_WORKLOAD}}
	cluster.Namespace, cluster.Name = "default", name
	request := &clustersv1alpha1.AccessRequest{Spec: clustersv1alpha1.AccessRequestSpec{
		RequestRef: &commonapi.ObjectReference{Namespace: cluster.Namespace, Name: cluster.Name},
		Token:      &clustersv1alpha1.TokenConfig{Permissions: permissions},
	}}
	request.Namespace, request.Name = "default", name
	for _, object := range []client.Object{cluster, request} {
		if err := platform.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	awaitGrant(t, l, request)
	return request
}

func awaitGrant(t *testing.T, l *landscape.Landscape, request *clustersv1alpha1.AccessRequest) {
	t.Helper()
	platform := clientOf(t, l.Platform)
	eventually(t, "AccessRequest "+request.Name+" is granted", func() error {
		if err := platform.Get(t.Context(), client.ObjectKeyFromObject(request), request); err != nil {
			return err
		}
		if !request.Status.IsGranted() || request.Status.ObservedGeneration != request.Generation {
			return fmt.Errorf("generation %d, status %+v", request.Generation, request.Status)
		}
		return nil
	})
}

func permission(namespace, resource string) clustersv1alpha1.PermissionsRequest {
	return clustersv1alpha1.PermissionsRequest{Namespace: namespace, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"list"}},
	}}
}

func secretOf(t *testing.T, l *landscape.Landscape, request *clustersv1alpha1.AccessRequest) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: request.Namespace, Name: request.Status.SecretRef.Name}
	if err := clientOf(t, l.Platform).Get(t.Context(), key, secret); err != nil {
		t.Fatal(err)
	}
	return secret
}

// userOf is a client with the access a request was granted.
func userOf(t *testing.T, l *landscape.Landscape, request *clustersv1alpha1.AccessRequest) client.Client {
	t.Helper()
	user, err := tryUserOf(t, l, request)
	if err != nil {
		t.Fatal(err)
	}
	return user
}

func tryUserOf(t *testing.T, l *landscape.Landscape, request *clustersv1alpha1.AccessRequest) (client.Client, error) {
	t.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: request.Namespace, Name: request.Status.SecretRef.Name}
	if err := clientOf(t, l.Platform).Get(t.Context(), key, secret); err != nil {
		return nil, err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[clustersv1alpha1.SecretKeyKubeconfig])
	if err != nil {
		return nil, err
	}
	return client.New(config, client.Options{Scheme: landscape.Scheme()})
}

func TestDeletedNamespaceStaysDeletedWhenOthersTouchTheSecret(t *testing.T) {
	l := up(t)
	request := ask(t, l, "left-alone", permission("left-alone", "secrets"))
	workload, platform := clientOf(t, l.Workload), clientOf(t, l.Platform)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "left-alone"}}
	if err := workload.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace is gone", func() error { return gone(t.Context(), workload, namespace) })
	secret := secretOf(t, l, request)
	before := secret.DeepCopy()
	secret.Labels = map[string]string{"somebody": "else"}
	if err := platform.Patch(t.Context(), secret, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	// The deletion of the request is handled after whatever the label has caused.
	if err := platform.Delete(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the AccessRequest is gone", func() error { return gone(t.Context(), platform, request) })
	if err := gone(t.Context(), workload, namespace); err != nil {
		t.Error(err)
	}
}
