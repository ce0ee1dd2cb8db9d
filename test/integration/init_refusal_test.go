package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// refusedCRDs: a kind that is registered although its CRD could not be written blocks the deletion of every control plane.
func refusedCRDs(t *testing.T, program program) {
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "veleros.velero.services.openmcp.cloud"}}
	must(t, onboarding.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	// As an older version of the provider left it behind.
	crd.Spec.Versions[0].AdditionalPrinterColumns = nil
	must(t, onboarding.Update(t.Context(), crd))
	denyCRDs(t, crd.Name)
	code, printed := program.init(t, landscape.SystemNamespace, "--provider-name=velero")
	if code != 1 || !strings.Contains(printed, "not for you") {
		t.Errorf("exit code %d:\n%s", code, printed)
	}
	if registered := serviceProvider(t).Status.Resources; len(registered) > 0 {
		t.Errorf("it registered %v", registered)
	}
}

// denyCRDs has the onboarding cluster refuse updates of a CRD to everybody but its administrators.
func denyCRDs(t *testing.T, crd string) {
	t.Helper()
	const name = "deny-crds"
	rule := admissionregistrationv1.Rule{APIGroups: []string{apiextensionsv1.GroupName}, APIVersions: []string{"*"}, Resources: []string{"customresourcedefinitions"}}
	operations := admissionregistrationv1.RuleWithOperations{Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update}, Rule: rule}
	objects := []client.Object{
		&admissionregistrationv1.ValidatingAdmissionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{ResourceNames: []string{crd}, RuleWithOperations: operations}}},
				Validations:      []admissionregistrationv1.Validation{{Expression: `request.userInfo.groups.exists(group, group == "system:masters") && !has(object.metadata.annotations.probe)`, Message: "not for you"}},
			},
		},
		&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}},
		},
	}
	for _, object := range objects {
		must(t, onboarding.Create(t.Context(), object))
		t.Cleanup(func() { must(t, onboarding.Delete(context.WithoutCancel(t.Context()), object)) })
	}
	probe := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"probe":"true"}}}`))
	eventually(t, "the policy is in force", func(ctx context.Context) error {
		err := onboarding.Patch(ctx, &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: crd}}, probe, client.DryRunAll)
		if err != nil && strings.Contains(err.Error(), "not for you") {
			return nil
		}
		return fmt.Errorf("a probe answers %w", err)
	})
}

// runsOnlyWithAccess: without the onboarding cluster there is nothing to do; the process says so and ends.
func runsOnlyWithAccess(t *testing.T, program program) {
	denyGrants(t, "run-denied")
	code, printed := program.execute(t, "run", "run-denied", "--provider-name=velero", "--access-timeout=3s", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	if code != 1 || !strings.Contains(printed, "access to the onboarding cluster") || strings.Contains(printed, "panic") {
		t.Errorf("exit code %d:\n%s", code, printed)
	}
}
