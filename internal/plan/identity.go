package plan

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/fluxgen"
)

// Identity is the generated Secret with the server's own credentials on the control plane. It depends on the grant alone, and not on a Plan:
// a server that runs must keep its access while its configuration cannot be used, or has to wait for its turn.
func Identity(server Grant) GeneratedSecret {
	source := Source{Reference: Reference{Secret, server.Secret}, Key: server.Key, Tenant: true}
	return GeneratedSecret{Name: serverIdentityName, Fingerprint: fingerprint(serverIdentityName, source, server.Version), Sources: []Source{source}}
}

// GenerateIdentity builds that Secret from the granted kubeconfig, or says why the server cannot use it. What it says never quotes contents.
func GenerateIdentity(names Names, wanted GeneratedSecret, contents map[Source]Content) (*corev1.Secret, *Blocked) {
	source := wanted.Sources[0]
	kubeconfig, token, err := serverKubeconfig(contents[source].Data[source.Key])
	if err != nil {
		// The Secret has an internal name.
		return nil, block(v1alpha1.ReasonCredentialsInvalid, fmt.Sprintf("the kubeconfig that was granted for the control plane cannot be used: %s", err))
	}
	values := map[string]any{"kubeconfig": kubeconfig, "token": token}
	secret, err := fluxgen.ValuesSecret(wanted.Name, names.TenantNamespace, names.Labels(), annotations(wanted, fluxgen.ValuesKey), values)
	if err != nil {
		return nil, block(v1alpha1.ReasonCredentialsInvalid, "the kubeconfig that was granted for the control plane cannot be passed on")
	}
	return secret, nil
}

// Identity says whether this is the Secret of that function.
func (s GeneratedSecret) Identity() bool { return s.Name == serverIdentityName }
