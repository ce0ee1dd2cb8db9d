package fluxgen

import (
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// ValuesKey is the key of a Secret that holds chart values.
const ValuesKey = "values.yaml"

// WatchLabel, with the value WatchEnabled, has helm-controller reconcile the releases that use a Secret as soon as the Secret changes, not at
// their next interval.
const (
	WatchLabel   = "reconcile.fluxcd.io/watch"
	WatchEnabled = "Enabled"
)

// ValuesSecret holds sensitive values for a Release that names it in ValuesSecrets. The same values give the same bytes.
func ValuesSecret(name, namespace string, labels, annotations map[string]string, values map[string]any) (*corev1.Secret, error) {
	data, err := yaml.Marshal(values)
	if err != nil {
		// The cause may quote the values.
		return nil, errors.New("values cannot be written as YAML")
	}
	watched := map[string]string{}
	maps.Copy(watched, labels)
	watched[WatchLabel] = WatchEnabled
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: watched, Annotations: maps.Clone(annotations)},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{ValuesKey: data},
	}, nil
}
