package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// admissionRule is a rule that somebody made on a cluster, for what one tenant has there.
type admissionRule struct {
	cluster client.Client
	objects []client.Object
}

// create makes the rule for as long as the test runs.
func (r admissionRule) create(t *testing.T) admissionRule {
	t.Helper()
	for _, object := range r.objects {
		must(t, r.cluster.Create(t.Context(), object))
	}
	t.Cleanup(func() {
		for _, object := range r.objects {
			if err := r.cluster.Delete(context.WithoutCancel(t.Context()), object); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	})
	return r
}

func (r admissionRule) remove(t *testing.T) {
	t.Helper()
	for _, object := range r.objects {
		must(t, r.cluster.Delete(t.Context(), object))
	}
}

// only is the objects of a kind in a namespace.
func only(namespace, group, version, resource string, operations ...admissionregistrationv1.OperationType) *admissionregistrationv1.MatchResources {
	return &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: operations,
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
		}}},
	}
}

// denyDeployments has the API server deny an operation on the tenant's Deployments, and waits until it does.
func denyDeployments(t *testing.T, tenant tenant, operation admissionregistrationv1.OperationType) admissionRule {
	t.Helper()
	name := strings.ToLower(string(operation)) + "-" + tenant.names.Instance
	rule := admissionRule{workload, []client.Object{
		&admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: only(tenant.names.WorkloadNamespace, "apps", "v1", "deployments", operation),
				Validations:      []admissionregistrationv1.Validation{{Expression: "false", Message: "not here"}},
			},
		},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}},
		},
	}}.create(t)
	eventually(t, installed, "the rule holds", func(ctx context.Context) error { return denied(ctx, tenant, operation) })
	return rule
}

// denied tries the operation without carrying it out.
func denied(ctx context.Context, tenant tenant, operation admissionregistrationv1.OperationType) error {
	probe := foreignDeployment(tenant.names.WorkloadNamespace)
	probe.Name = "probe"
	var err error
	if operation == admissionregistrationv1.Create {
		err = workload.Create(ctx, probe, client.DryRunAll)
	} else if deployment, getErr := tenant.deployment(ctx); getErr != nil {
		return getErr
	} else {
		deployment.Annotations["probe"] = "true"
		err = workload.Update(ctx, deployment, client.DryRunAll)
	}
	if err == nil {
		return errors.New("it is permitted")
	}
	if !strings.Contains(err.Error(), "not here") {
		return fmt.Errorf("it is refused for another reason: %w", err)
	}
	return nil
}

// setField has an API server set a field of the objects of a kind in a namespace.
func setField(name string, match *admissionregistrationv1.MatchResources, path, value string) []client.Object {
	fail := admissionregistrationv1.Fail
	return []client.Object{
		&admissionregistrationv1.MutatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
				MatchConstraints: match, FailurePolicy: &fail, ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
				Mutations: []admissionregistrationv1.Mutation{{
					PatchType: admissionregistrationv1.PatchTypeJSONPatch,
					JSONPatch: &admissionregistrationv1.JSONPatch{Expression: fmt.Sprintf(`[JSONPatch{op: "add", path: %q, value: %s}]`, path, value)},
				}},
			},
		},
		&admissionregistrationv1.MutatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
		},
	}
}
