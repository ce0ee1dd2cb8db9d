package fluxgen

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Target is a namespace on another cluster, and the credentials to get there. The zero Target is refused by Render: only NewTarget makes one
// that can be used, so there is always a kubeconfig.
type Target struct {
	secret, key, namespace string
}

// NewTarget takes the name of the Secret with the kubeconfig, which is in the Release's namespace, the key in it, and the namespace on the
// target that the release and its Helm storage go to.
func NewTarget(kubeconfigSecret, key, namespace string) (Target, error) {
	target := Target{secret: kubeconfigSecret, key: key, namespace: namespace}
	return target, target.validate()
}

// Namespace on the target.
func (t Target) Namespace() string { return t.namespace }

func (t Target) validate() error {
	var problems []error
	if len(validation.IsDNS1123Subdomain(t.secret)) > 0 {
		problems = append(problems, fmt.Errorf("target: %q is not the name of a kubeconfig Secret", t.secret))
	}
	if len(validation.IsConfigMapKey(t.key)) > 0 {
		problems = append(problems, fmt.Errorf("target: %q is not a key of a kubeconfig Secret", t.key))
	}
	if len(validation.IsDNS1123Label(t.namespace)) > 0 {
		problems = append(problems, fmt.Errorf("target: %q is not the name of a namespace", t.namespace))
	}
	return errors.Join(problems...)
}
