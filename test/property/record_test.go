package property

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// record notes, as the API server does, who wrote the keys of a Secret: here whoever changed any of them, for all of them.
func record(before, after client.Object, manager string) {
	secret, ok := after.(*corev1.Secret)
	if !ok {
		return
	}
	if old, ok := before.(*corev1.Secret); ok && equality.Semantic.DeepEqual(old.Data, secret.Data) {
		secret.ManagedFields = old.ManagedFields
		return
	}
	keys := map[string]any{}
	for key := range secret.Data {
		keys["f:"+key] = struct{}{}
	}
	fields, err := json.Marshal(map[string]any{"f:data": keys})
	utilruntime.Must(err)
	secret.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(fields)),
	}}
}
