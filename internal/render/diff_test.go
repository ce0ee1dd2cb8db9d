package render_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/internal/render"
)

func secret(value string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "values", UID: "uid", ResourceVersion: "1", Finalizers: []string{"f"}, Labels: map[string]string{"l": value[:1]}},
		Data:       map[string][]byte{"a": []byte(value), "b": []byte("same")},
	}
}

func TestDiffOfSecrets(t *testing.T) {
	tests := map[string]struct {
		before, after client.Object
		show          bool
		has, hasNot   []string
	}{
		"Changed": {secret("one"), secret("two"), false, []string{"--- before Secret values", "+++ after Secret values", "+  a: '(masked: 4 characters of base64, changed)'", "-    l: o", "+    l: t"}, []string{"b2", "dH", "one", "uid", "finalizers", "resourceVersion"}},
		"Created": {nil, secret("two"), false, []string{"--- (none)", "+  a: '(masked: 4 characters of base64)'"}, []string{"dHdv", "changed"}},
		"Removed": {secret("one"), nil, false, []string{"+++ (none)", "-  name: values"}, []string{"b25l"}},
		"Shown":   {secret("one"), secret("two"), true, []string{"-  a: b25l", "+  a: dHdv"}, []string{"masked"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := render.Diff("Secret", test.before, test.after, test.show)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range test.has {
				if !strings.Contains(got, part) {
					t.Errorf("%q is missing in:\n%s", part, got)
				}
			}
			for _, part := range test.hasNot {
				if strings.Contains(got, part) {
					t.Errorf("%q is in:\n%s", part, got)
				}
			}
		})
	}
}
