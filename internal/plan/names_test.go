package plan_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

func TestNamesFitAndAreUnique(t *testing.T) {
	seen := map[string]types.NamespacedName{}
	for _, velero := range []types.NamespacedName{
		{Namespace: "project-a", Name: "test-mcp"},
		{Namespace: "project-b", Name: "test-mcp"},
		{Namespace: "project-a", Name: "test-mcp-2"},
		{Namespace: "project-a-test", Name: "mcp"},
		{Namespace: "project-a", Name: strings.Repeat("a", 253)},
		{Namespace: "project-a", Name: strings.Repeat("a", 252) + "b"},
		{Namespace: strings.Repeat("n", 63), Name: strings.Repeat("a.", 62) + "a"},
		{Namespace: "project-a", Name: strings.Repeat("a", 53) + strings.Repeat(".b", 20)},
	} {
		names, err := plan.NamesOf(velero)
		if err != nil {
			t.Fatal(err)
		}
		for _, namespace := range []string{names.TenantNamespace, names.WorkloadNamespace, names.ControlPlaneNamespace} {
			if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
				t.Errorf("%v: %s: %v", velero, namespace, problems)
			}
		}
		if names.TenantNamespace != "mcp--"+names.Instance || names.WorkloadNamespace != "velero--"+names.Instance || names.ControlPlaneNamespace != "velero" {
			t.Errorf("%v: %+v", velero, names)
		}
		for key, value := range names.Labels() {
			if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
				t.Errorf("%v: label %s: %q", velero, key, value)
			}
		}
		if other, taken := seen[names.Instance]; taken {
			t.Errorf("%v and %v have the same names", velero, other)
		}
		seen[names.Instance] = velero
	}
}

func TestTheZeroNamesHaveLabels(t *testing.T) {
	if _, err := plan.NamesOf(types.NamespacedName{}); err == nil {
		t.Error("names of nothing")
	}
	if labels := (plan.Names{}).Labels(); labels[plan.ManagedByLabel] != plan.ProviderName {
		t.Errorf("labels %v", labels)
	}
}
