package plan_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

func wrote(manager string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
}

func TestUntouched(t *testing.T) {
	const update, apply = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	we := func(fields string) metav1.ManagedFieldsEntry { return wrote(plan.UserAgent, update, fields) }
	all := we(`{"f:data":{".":{},"f:a":{},"f:.b":{}},"f:metadata":{"f:labels":{"f:c":{}}},"f:type":{}}`)
	for name, test := range map[string]struct {
		keys    string
		records []metav1.ManagedFieldsEntry
		want    bool
	}{
		"as written":                       {"a,.b", []metav1.ManagedFieldsEntry{all}, true},
		"labels of somebody else":          {"a,.b", []metav1.ManagedFieldsEntry{all, wrote("kubectl", update, `{"f:metadata":{"f:labels":{"f:d":{}}}}`)}, true},
		"the same value by somebody else":  {"a,.b", []metav1.ManagedFieldsEntry{all, wrote("kubectl", apply, `{"f:data":{"f:a":{}}}`)}, true},
		"immutable by somebody else":       {"a,.b", []metav1.ManagedFieldsEntry{all, wrote("kubectl", update, `{"f:immutable":{}}`)}, true},
		"the map by somebody else":         {"a,.b", []metav1.ManagedFieldsEntry{all, wrote("kubectl", update, `{"f:data":{".":{}}}`)}, true},
		"more keys by us than recorded":    {"a", []metav1.ManagedFieldsEntry{all}, true},
		"no contents":                      {"", []metav1.ManagedFieldsEntry{we(`{"f:type":{}}`)}, true},
		"a record without fields":          {"a,.b", []metav1.ManagedFieldsEntry{all, {Manager: "kubectl"}}, true},
		"another value":                    {"a,.b", []metav1.ManagedFieldsEntry{we(`{"f:data":{".":{},"f:.b":{}}}`), wrote("kubectl", update, `{"f:data":{"f:a":{}}}`)}, false},
		"another key":                      {"a,.b", []metav1.ManagedFieldsEntry{all, wrote("kubectl", update, `{"f:data":{"f:c":{}}}`)}, false},
		"a key less":                       {"a,.b", []metav1.ManagedFieldsEntry{we(`{"f:data":{".":{},"f:a":{}}}`)}, false},
		"no key left":                      {"a,.b", []metav1.ManagedFieldsEntry{we(`{"f:type":{}}`)}, false},
		"applied as text":                  {"a,.b", []metav1.ManagedFieldsEntry{all, wrote("kubectl", apply, `{"f:stringData":{"f:a":{}}}`)}, false},
		"applied in our name":              {"a,.b", []metav1.ManagedFieldsEntry{we(`{"f:data":{"f:.b":{}}}`), wrote(plan.UserAgent, apply, `{"f:data":{"f:a":{}}}`)}, false},
		"another key where there was none": {"", []metav1.ManagedFieldsEntry{we(`{"f:type":{}}`), wrote("kubectl", update, `{"f:data":{"f:a":{}}}`)}, false},
		"no records":                       {"a", nil, false},
		"records that cannot be read":      {"a,.b", []metav1.ManagedFieldsEntry{all, wrote("kubectl", update, `[`)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{plan.KeysAnnotation: test.keys}, ManagedFields: test.records}}
			if got := plan.Untouched(secret); got != test.want {
				t.Errorf("untouched: %v", got)
			}
			secret.Annotations = nil
			if plan.Untouched(secret) {
				t.Error("nobody recorded the keys, so some may be gone")
			}
		})
	}
}

// TestUpToDate: a generated Secret is left alone only when its sources are the same and its contents are as written.
func TestUpToDate(t *testing.T) {
	resolved := resolve(t, request(t, "full"))
	secrets := resolved.Secrets(grants())
	held := contents(t, secrets)
	for _, wanted := range secrets {
		generated, blocked := resolved.Generate(wanted, held)
		if blocked != nil {
			t.Fatal(blocked)
		}
		fields := `{"f:data":{`
		for key := range generated.Data {
			fields += `"f:` + key + `":{},`
		}
		existing := &metav1.PartialObjectMetadata{ObjectMeta: generated.ObjectMeta}
		existing.ManagedFields = []metav1.ManagedFieldsEntry{wrote(plan.UserAgent, metav1.ManagedFieldsOperationUpdate, fields+`".":{}}}`)}
		if !wanted.UpToDate(existing) {
			t.Errorf("%s: as generated, it is out of date: %+v", wanted.Name, existing)
		}
		older := wanted
		older.Fingerprint = "other"
		if wanted.UpToDate(nil) || older.UpToDate(existing) {
			t.Errorf("%s: one that is missing, or made from something else, is up to date", wanted.Name)
		}
		existing.ManagedFields = append(existing.ManagedFields, wrote("kubectl", metav1.ManagedFieldsOperationUpdate, `{"f:data":{"f:other":{}}}`))
		if wanted.UpToDate(existing) {
			t.Errorf("%s: with another key it is up to date", wanted.Name)
		}
	}
}
