package apiserver

import (
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/openmcp-project/service-provider-velero/test/landscape/pki"
)

// URL is where the server listens.
func (s Server) URL() string { return fmt.Sprintf("https://%s:%d", s.Address, s.Port) }

// CA is the certificate of the server's authority.
func (s Server) CA() ([]byte, error) {
	ca, err := os.ReadFile(s.path("pki", "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read the authority of %s: %w", s.Name, err)
	}
	return ca, nil
}

// Kubeconfig is the file with the administrator's access.
func (s Server) Kubeconfig() string { return s.kubeconfig("admin") }

// AuditLog is the file with one JSON line per finished request.
func (s Server) AuditLog() string { return s.path("audit.log") }

// Log is what the server prints.
func (s Server) Log() string { return s.site.Log(s.process()) }

// RESTConfig is the administrator's access.
func (s Server) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig())
	if err != nil {
		return nil, fmt.Errorf("read the access to %s: %w", s.Name, err)
	}
	// Tests measure the programs, not the patience of their own client.
	config.QPS = -1
	return config, nil
}

// UserKubeconfig writes a kubeconfig with a client certificate for user and returns its path.
func (s Server) UserKubeconfig(user string, groups ...string) (string, error) {
	authority, err := pki.Open(s.path("pki"))
	if err != nil {
		return "", err
	}
	pair, err := authority.Client(user, groups...)
	if err != nil {
		return "", err
	}
	content, err := s.kubeconfigFor(user, pair)
	if err != nil {
		return "", err
	}
	return s.kubeconfig(user), s.site.Write(content, "servers", s.Name, user+".kubeconfig")
}

func (s Server) kubeconfig(user string) string { return s.path(user + ".kubeconfig") }

// kubeconfigFor holds its certificates itself, so that it can be copied.
func (s Server) kubeconfigFor(user string, pair pki.Pair) ([]byte, error) {
	cluster := &clientcmdapi.Cluster{Server: s.URL()}
	auth := &clientcmdapi.AuthInfo{}
	for path, target := range map[string]*[]byte{
		s.path("pki", "ca.crt"): &cluster.CertificateAuthorityData,
		pair.Cert:               &auth.ClientCertificateData,
		pair.Key:                &auth.ClientKeyData,
	} {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("make the kubeconfig of %s: %w", user, err)
		}
		*target = content
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[s.Name] = cluster
	config.AuthInfos[user] = auth
	config.Contexts[s.Name] = &clientcmdapi.Context{Cluster: s.Name, AuthInfo: user}
	config.CurrentContext = s.Name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("make the kubeconfig of %s: %w", user, err)
	}
	return content, nil
}
