package clusterprovider

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/controller-utils/pkg/clusteraccess"
	ctrlutils "github.com/openmcp-project/controller-utils/pkg/controller"
	"github.com/openmcp-project/controller-utils/pkg/pairs"
	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
)

// accountNamespace holds the ServiceAccounts on every cluster.
const accountNamespace = "access-requests"

// rights is everything a request asks for, by kind and in the form in which it is created on the cluster.
type rights struct {
	namespaces   []string
	roles        []rbacv1.Role
	clusterRoles []rbacv1.ClusterRole
	bindings     []binding
}

// binding gives a Role, or a ClusterRole where the namespace is empty, to the request's ServiceAccount.
type binding struct{ namespace, name, role string }

// rightsOf computes what a request asks for. Names depend on the request and the place in its lists only, so that a
// changed permission changes a Role and does not add one.
func rightsOf(request *clustersv1alpha1.AccessRequest) rights {
	wanted := rights{}
	base := accountName(request)
	for i, permission := range request.Spec.Token.Permissions {
		name := permission.Name
		if name == "" {
			name = fmt.Sprintf("%s-%d", base, i)
		}
		wanted.add(name, permission)
	}
	for i, ref := range request.Spec.Token.RoleRefs {
		name := fmt.Sprintf("%s-ref-%d", base, i)
		wanted.bindings = append(wanted.bindings, binding{namespace: ref.Namespace, name: name, role: ref.Name})
	}
	return wanted
}

func (w *rights) add(name string, permission clustersv1alpha1.PermissionsRequest) {
	w.bindings = append(w.bindings, binding{namespace: permission.Namespace, name: name, role: name})
	if permission.Namespace == "" {
		role := rbacv1.ClusterRole{Rules: permission.Rules}
		role.Name = name
		w.clusterRoles = append(w.clusterRoles, role)
		return
	}
	role := rbacv1.Role{Rules: permission.Rules}
	role.Namespace, role.Name = permission.Namespace, name
	w.roles = append(w.roles, role)
	if !permission.DisableAutomaticNamespaceCreation {
		w.namespaces = append(w.namespaces, permission.Namespace)
	}
}

// keys are the objects the request wants on the cluster.
func (w *rights) keys() map[objectKey]bool {
	wanted := map[objectKey]bool{}
	for _, role := range w.roles {
		wanted[objectKey{"Role", role.Namespace, role.Name}] = true
	}
	for _, role := range w.clusterRoles {
		wanted[objectKey{"ClusterRole", "", role.Name}] = true
	}
	for _, b := range w.bindings {
		kind := "RoleBinding"
		if b.namespace == "" {
			kind = "ClusterRoleBinding"
		}
		wanted[objectKey{kind, b.namespace, b.name}] = true
	}
	return wanted
}

type objectKey struct{ kind, namespace, name string }

// ensureRights brings ServiceAccount, Roles and bindings of a request up to date, and removes those it no longer asks for.
func ensureRights(ctx context.Context, c client.Client, request *clustersv1alpha1.AccessRequest) (*corev1.ServiceAccount, error) {
	wanted, labels := rightsOf(request), ownerLabels(request)
	for _, namespace := range append([]string{accountNamespace}, wanted.namespaces...) {
		if _, err := clusteraccess.EnsureNamespace(ctx, c, namespace); err != nil {
			return nil, err
		}
	}
	account, err := clusteraccess.EnsureServiceAccount(ctx, c, accountName(request), accountNamespace, labels...)
	if err != nil {
		return nil, err
	}
	for _, role := range wanted.roles {
		if _, err := clusteraccess.EnsureRole(ctx, c, role.Name, role.Namespace, role.Rules, labels...); err != nil {
			return nil, err
		}
	}
	for _, role := range wanted.clusterRoles {
		if _, err := clusteraccess.EnsureClusterRole(ctx, c, role.Name, role.Rules, labels...); err != nil {
			return nil, err
		}
	}
	if err := ensureBindings(ctx, c, wanted.bindings, account, labels); err != nil {
		return nil, err
	}
	return account, removeUnwanted(ctx, c, request, wanted.keys())
}

func ensureBindings(ctx context.Context, c client.Client, bindings []binding, account *corev1.ServiceAccount, labels []clusteraccess.Label) error {
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}}
	for _, b := range bindings {
		var err error
		if b.namespace == "" {
			_, err = clusteraccess.EnsureClusterRoleBinding(ctx, c, b.name, b.role, subjects, labels...)
		} else {
			_, err = clusteraccess.EnsureRoleBinding(ctx, c, b.name, b.namespace, b.role, subjects, labels...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeRights takes everything back that a request was granted. Namespaces stay: others may use them by now.
func removeRights(ctx context.Context, c client.Client, request *clustersv1alpha1.AccessRequest) error {
	if err := removeUnwanted(ctx, c, request, nil); err != nil {
		return err
	}
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = accountNamespace, accountName(request)
	return client.IgnoreNotFound(c.Delete(ctx, account))
}

// removeUnwanted deletes the Roles and bindings of a request that are not wanted.
func removeUnwanted(ctx context.Context, c client.Client, request *clustersv1alpha1.AccessRequest, wanted map[objectKey]bool) error {
	owned, err := ownedObjects(ctx, c, request)
	if err != nil {
		return err
	}
	for key, object := range owned {
		if wanted[key] {
			continue
		}
		if err := client.IgnoreNotFound(c.Delete(ctx, object)); err != nil {
			return fmt.Errorf("remove %s %s: %w", key.kind, key.name, err)
		}
	}
	return nil
}

// ownedObjects lists the Roles and bindings that carry a request's labels. Bindings come to nothing with their Role, but
// not the other way round.
func ownedObjects(ctx context.Context, c client.Client, request *clustersv1alpha1.AccessRequest) (map[objectKey]client.Object, error) {
	owner := client.MatchingLabels(pairs.PairsToMap(ownerLabels(request)))
	roles, bindings := &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}
	clusterRoles, clusterBindings := &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}
	for _, list := range []client.ObjectList{roles, bindings, clusterRoles, clusterBindings} {
		if err := c.List(ctx, list, owner); err != nil {
			return nil, fmt.Errorf("list what the request was granted: %w", err)
		}
	}
	owned := map[objectKey]client.Object{}
	collect(owned, "Role", roles.Items, func(o *rbacv1.Role) client.Object { return o })
	collect(owned, "RoleBinding", bindings.Items, func(o *rbacv1.RoleBinding) client.Object { return o })
	collect(owned, "ClusterRole", clusterRoles.Items, func(o *rbacv1.ClusterRole) client.Object { return o })
	collect(owned, "ClusterRoleBinding", clusterBindings.Items, func(o *rbacv1.ClusterRoleBinding) client.Object { return o })
	return owned, nil
}

func collect[T any](into map[objectKey]client.Object, kind string, items []T, object func(*T) client.Object) {
	for i := range items {
		o := object(&items[i])
		into[objectKey{kind, o.GetNamespace(), o.GetName()}] = o
	}
}

// accountName is unique per request, also where several Cluster objects stand for the same server.
func accountName(request *clustersv1alpha1.AccessRequest) string {
	return "access-" + ctrlutils.NameHashSHAKE128Base32(request.Namespace, request.Name)
}

// ownerLabels mark everything on a cluster that belongs to a request.
func ownerLabels(request *clustersv1alpha1.AccessRequest) []clusteraccess.Label {
	return []clusteraccess.Label{
		pairs.New("clusters.openmcp.cloud/provider", Name),
		pairs.New("clusters.openmcp.cloud/accessrequest", accountName(request)),
	}
}
