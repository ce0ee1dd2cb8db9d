package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// refuse has the stage refuse an operation on objects of a tenant, as a platform's policy might, and returns how to take that back.
func (l *life) refuse(t *testing.T, operation admissionregistrationv1.OperationType, group, resource, allowed string) (takeBack func()) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: strings.ToLower(l.velero.Namespace + "." + string(operation))}
	rule := func(operation admissionregistrationv1.OperationType, group, resource string) admissionregistrationv1.NamedRuleWithOperations {
		return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{operation},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
		}}
	}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: l.names.TenantNamespace}},
			ResourceRules:     []admissionregistrationv1.NamedRuleWithOperations{rule(operation, group, resource), rule(admissionregistrationv1.Create, "", "configmaps")},
		},
		Validations: []admissionregistrationv1.Validation{{Expression: allowed, Message: "secret-policy"}},
	}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: meta.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}}
	must(t, l.stage.Create(t.Context(), policy))
	must(t, l.stage.Create(t.Context(), binding))
	eventually(t, "the policy is in force", func(ctx context.Context) error { return l.probed(ctx, true) })
	return func() {
		must(t, l.stage.Delete(t.Context(), binding))
		must(t, l.stage.Delete(t.Context(), policy))
		eventually(t, "the policy is gone", func(ctx context.Context) error { return l.probed(ctx, false) })
	}
}

// probed checks with a write that changes nothing whether the policy is in force.
func (l *life) probed(ctx context.Context, inForce bool) error {
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.names.TenantNamespace, Name: "sp-velero-probe"}}
	if err := l.stage.Create(ctx, probe, client.DryRunAll); apierrors.IsInvalid(err) != inForce {
		return fmt.Errorf("the probe has error %w", err)
	}
	return nil
}

// refusedIsTold reconciles until the Velero says that the platform refuses something. It must stay an error, so that it is tried again.
func (l *life) refusedIsTold(t *testing.T, conditionType string) {
	t.Helper()
	begin, told := time.Now(), false
	for !told && time.Since(begin) < limit {
		_, err := l.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: l.velero})
		velero := &v1alpha1.Velero{}
		must(t, l.stage.Get(t.Context(), l.velero, velero))
		if condition := apimeta.FindStatusCondition(velero.Status.Conditions, conditionType); condition != nil && condition.Reason == v1alpha1.ReasonPlatformRefuses {
			told = true
			if condition.Status != metav1.ConditionFalse || !strings.Contains(condition.Message, "an admission rule of the cluster does not accept") {
				t.Errorf("condition %+v", condition)
			}
			if err == nil {
				t.Error("it is not tried again")
			}
		}
		for _, condition := range velero.Status.Conditions {
			for _, internal := range []string{"secret-policy", l.names.TenantNamespace, "sp-velero-", "ValidatingAdmissionPolicy"} {
				if strings.Contains(condition.Message, internal) {
					t.Errorf("condition %s tells %q", condition.Type, condition.Message)
				}
			}
		}
		l.stage.play(t, l.names)
		time.Sleep(50 * time.Millisecond)
	}
	if !told {
		t.Fatal("nobody is told")
	}
	if early := 10 * time.Second; time.Since(begin) < early {
		t.Errorf("it is told before %s", early)
	}
}

// TestRefusedWrites: what the platform cluster refuses for long is told to the user, and heals when the platform allows it.
func TestRefusedWrites(t *testing.T) {
	for name, test := range map[string]struct{ group, resource, allowed, condition string }{
		"accessrequest": {"clusters.openmcp.cloud", "accessrequests", "false", v1alpha1.ConditionAccessGranted},
		"secret":        {"", "secrets", `!request.name.startsWith("sp-velero-")`, v1alpha1.ConditionConfigurationValid},
		"source":        {"source.toolkit.fluxcd.io", "ocirepositories", "false", v1alpha1.ConditionConfigurationValid},
		"release":       {"helm.toolkit.fluxcd.io", "helmreleases", "false", v1alpha1.ConditionConfigurationValid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := newLife(t, "refused-"+name, &line{})
			allow := one.refuse(t, admissionregistrationv1.Create, test.group, test.resource, test.allowed)
			one.refusedIsTold(t, test.condition)
			allow()
			one.heals(t)
		})
	}
}

// heals: after the first good look nothing is told any more.
func (l *life) heals(t *testing.T) {
	t.Helper()
	eventually(t, "Ready", func(ctx context.Context) error {
		_, err := l.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: l.velero})
		l.stage.play(t, l.names)
		velero := &v1alpha1.Velero{}
		if err := errors.Join(err, l.stage.Get(ctx, l.velero, velero)); err != nil {
			return err
		}
		if velero.Status.Phase != string(v1alpha1.Ready) {
			return fmt.Errorf("it is %s: %+v", velero.Status.Phase, velero.Status.Conditions)
		}
		return nil
	})
}

// TestRefusedRemoval: the same for what a deletion removes.
func TestRefusedRemoval(t *testing.T) {
	one := newLife(t, "refused-removal", &line{})
	one.heals(t)
	allow := one.refuse(t, admissionregistrationv1.Delete, "helm.toolkit.fluxcd.io", "helmreleases", "false")
	must(t, one.stage.Delete(t.Context(), &v1alpha1.Velero{ObjectMeta: metav1.ObjectMeta{Namespace: one.velero.Namespace, Name: one.velero.Name}}))
	one.refusedIsTold(t, v1alpha1.ConditionReady)
	allow()
	one.until(t, "the end", func(velero *v1alpha1.Velero) bool { return velero.Name == "" })
	must(t, one.stage.left(t.Context(), one.names, one.velero.Name))
}
