package plan

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UpToDate says whether nothing is to be done about a generated Secret, and no source is to be read, given its metadata; nil: there is none.
func (s GeneratedSecret) UpToDate(existing *metav1.PartialObjectMetadata) bool {
	return existing != nil && existing.Annotations[SourcesAnnotation] == s.Fingerprint && Untouched(existing)
}

// SameSources says whether an existing Secret was made from the same sources and additions, although maybe from other versions of them; nil:
// there is none.
func (s GeneratedSecret) SameSources(existing *metav1.PartialObjectMetadata) bool {
	if existing == nil {
		return false
	}
	wanted, _, _ := strings.Cut(s.Fingerprint, versionsFollow)
	made, _, _ := strings.Cut(existing.Annotations[SourcesAnnotation], versionsFollow)
	return wanted == made
}

// Untouched says whether a generated Secret holds what was last written into it. It needs no contents: the API server records who wrote which
// key, and takes a key away from us as soon as somebody else changes its value.
func Untouched(secret metav1.Object) bool {
	own, foreign, readable := writers(secret.GetManagedFields())
	recorded, found := secret.GetAnnotations()[KeysAnnotation]
	if !readable || !found {
		return false
	}
	for key := range foreign {
		if !own[key] {
			return false
		}
	}
	for _, key := range strings.FieldsFunc(recorded, func(r rune) bool { return r == ',' }) {
		if !own[key] {
			return false
		}
	}
	return true
}

// writers are the keys that hold what we wrote, and those that hold what others did; both wrote the same to those that are in both.
func writers(records []metav1.ManagedFieldsEntry) (own, foreign map[string]bool, readable bool) {
	own, foreign = map[string]bool{}, map[string]bool{}
	for _, record := range records {
		keys, readable := writtenKeys(record)
		if !readable {
			return nil, nil, false
		}
		written := foreign
		if record.Manager == UserAgent && record.Operation == metav1.ManagedFieldsOperationUpdate {
			written = own
		}
		for _, key := range keys {
			written[key] = true
		}
	}
	return own, foreign, true
}

// writtenKeys are the keys of a Secret that a writer is recorded for. Who applied some as text (stringData) changed data, and no record of
// data says so.
func writtenKeys(record metav1.ManagedFieldsEntry) ([]string, bool) {
	var fields struct {
		Data       map[string]json.RawMessage `json:"f:data"`
		StringData map[string]json.RawMessage `json:"f:stringData"`
	}
	if record.FieldsV1 == nil {
		return nil, true
	}
	if json.Unmarshal(record.FieldsV1.GetRawBytes(), &fields) != nil || len(fields.StringData) > 0 {
		return nil, false
	}
	keys := make([]string, 0, len(fields.Data))
	for field := range fields.Data {
		if key, isKey := strings.CutPrefix(field, "f:"); isKey {
			keys = append(keys, key)
		}
	}
	return keys, true
}
