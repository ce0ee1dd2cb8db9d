package landscape

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// bindOperator gives the operator under test exactly these rights on the platform cluster, or all when there are none.
func bindOperator(ctx context.Context, c client.Client, rules []rbacv1.PolicyRule) error {
	if len(rules) == 0 {
		all := []string{"*"}
		rules = []rbacv1.PolicyRule{{APIGroups: all, Resources: all, Verbs: all}, {NonResourceURLs: all, Verbs: all}}
	}
	role := &rbacv1.ClusterRole{}
	role.Name = OperatorUser
	if _, err := controllerutil.CreateOrUpdate(ctx, c, role, func() error {
		role.Rules = rules
		return nil
	}); err != nil {
		return fmt.Errorf("give the operator its rights: %w", err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: OperatorUser}},
	}
	binding.Name = OperatorUser
	return create(ctx, c, binding)
}
