package plan

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"sigs.k8s.io/yaml"
)

// identityFile is where the server chart mounts the token. Velero reads it again and again, so a renewed token needs no restart.
const identityFile = "/var/run/secrets/velero/control-plane/token"

// kubeconfig has the fields that matter here. What runs programs, impersonates, or refers to files of another machine is known so that it can
// be refused.
type kubeconfig struct {
	CurrentContext string `json:"current-context"`
	Contexts       []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster string `json:"cluster"`
			User    string `json:"user"`
		} `json:"context"`
	} `json:"contexts"`
	Clusters []struct {
		Name    string            `json:"name"`
		Cluster kubeconfigCluster `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string         `json:"name"`
		User kubeconfigUser `json:"user"`
	} `json:"users"`
}

type kubeconfigCluster struct {
	Server        string `json:"server"`
	CAData        []byte `json:"certificate-authority-data"`
	CAFile        string `json:"certificate-authority"`
	TLSServerName string `json:"tls-server-name"`
	ProxyURL      string `json:"proxy-url"`
	SkipTLSVerify bool   `json:"insecure-skip-tls-verify"`
}

type kubeconfigUser struct {
	Token        string         `json:"token"`
	TokenFile    string         `json:"tokenFile"`
	CertFile     string         `json:"client-certificate"`
	KeyFile      string         `json:"client-key"`
	As           string         `json:"as"`
	AsUID        string         `json:"as-uid"`
	AsGroups     []string       `json:"as-groups"`
	AsExtra      map[string]any `json:"as-user-extra"`
	Exec         map[string]any `json:"exec"`
	AuthProvider map[string]any `json:"auth-provider"`
}

// serverKubeconfig takes a granted kubeconfig apart: one without credentials that reads the token from a file, and the token.
func serverKubeconfig(granted []byte) (config, token string, err error) {
	var parsed kubeconfig
	if len(granted) == 0 || yaml.Unmarshal(granted, &parsed) != nil {
		// The cause may quote the contents.
		return "", "", errors.New("it is not a kubeconfig")
	}
	cluster, user, err := parsed.current()
	if err != nil {
		return "", "", err
	}
	if err := cluster.check(); err != nil {
		return "", "", err
	}
	if token, err = user.plainToken(); err != nil {
		return "", "", err
	}
	data, err := yaml.Marshal(cluster.kubeconfig())
	return string(data), token, err
}

// current are the cluster and the user of the current context.
func (k kubeconfig) current() (kubeconfigCluster, kubeconfigUser, error) {
	var clusterName, userName string
	for _, entry := range k.Contexts {
		if entry.Name == k.CurrentContext {
			clusterName, userName = entry.Context.Cluster, entry.Context.User
			break
		}
	}
	for _, cluster := range k.Clusters {
		for _, user := range k.Users {
			if cluster.Name == clusterName && user.Name == userName && clusterName != "" && userName != "" {
				return cluster.Cluster, user.User, nil
			}
		}
	}
	return kubeconfigCluster{}, kubeconfigUser{}, errors.New("its current context does not lead to a cluster and a user")
}

func (c kubeconfigCluster) check() error {
	server, err := url.Parse(c.Server)
	switch {
	case err != nil || server.Scheme != "https" || server.Host == "" || server.User != nil:
		return errors.New("its server is not https://HOST[:PORT]")
	case c.SkipTLSVerify:
		return errors.New("it skips the verification of certificates")
	case c.CAFile != "":
		return errors.New("it refers to files")
	case len(c.CAData) == 0:
		return nil
	}
	if _, err := certificatesOf(c.CAData); err != nil {
		return errors.New("its certificate authority is not a certificate")
	}
	return nil
}

func (u kubeconfigUser) plainToken() (string, error) {
	token := strings.TrimSpace(u.Token)
	switch {
	case u.Exec != nil || u.AuthProvider != nil:
		return "", errors.New("it runs a program to authenticate")
	case u.TokenFile != "" || u.CertFile != "" || u.KeyFile != "":
		return "", errors.New("it refers to files")
	case u.impersonates():
		return "", errors.New("it impersonates another user")
	case token == "":
		return "", errors.New("it has no token")
	}
	return token, nil
}

func (u kubeconfigUser) impersonates() bool {
	return u.As != "" || u.AsUID != "" || len(u.AsGroups) > 0 || len(u.AsExtra) > 0
}

func (c kubeconfigCluster) kubeconfig() map[string]any {
	const name, user = "control-plane", "velero"
	cluster := map[string]any{"server": c.Server}
	if len(c.CAData) > 0 {
		cluster["certificate-authority-data"] = c.CAData
	}
	if c.TLSServerName != "" {
		cluster["tls-server-name"] = c.TLSServerName
	}
	if c.ProxyURL != "" {
		cluster["proxy-url"] = c.ProxyURL
	}
	return map[string]any{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": name,
		"clusters":        []any{map[string]any{"name": name, "cluster": cluster}},
		"contexts":        []any{map[string]any{"name": name, "context": map[string]any{"cluster": name, "user": user}}},
		"users":           []any{map[string]any{"name": user, "user": map[string]any{"tokenFile": identityFile}}},
	}
}

// maxBundleSize leaves room in Helm's record of a release, a Secret of at most 1 MiB that holds the bundle twice, compressed; the CAs that a
// Linux distribution trusts take about half of it.
const maxBundleSize = 384 << 10

// caData is the CA bundle as Flux reads it.
func caData(content Content, key string) (map[string][]byte, error) {
	bundle, err := caBundle(content, key)
	return map[string][]byte{"ca.crt": []byte(bundle)}, err
}

// caBundle are the certificates under a key, and nothing else that may be there, such as a private key.
func caBundle(content Content, key string) (string, error) {
	data, present := content.Data[key]
	if !present {
		return "", fmt.Errorf("it has no key %q", key)
	}
	certificates, err := certificatesOf(data)
	if err != nil {
		return "", fmt.Errorf("key %q: %w", key, err)
	}
	return string(certificates), nil
}

// certificatesOf leaves out what Go cannot parse, as every user of the bundle does; bundles of old have some odd ones.
func certificatesOf(data []byte) ([]byte, error) {
	var certificates bytes.Buffer
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			continue
		}
		certificates.Write(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes}))
	}
	switch {
	case certificates.Len() == 0:
		return nil, errors.New("it has no usable certificate in PEM form")
	case certificates.Len() > maxBundleSize:
		return nil, fmt.Errorf("its certificates take more than %d KiB", maxBundleSize>>10)
	}
	return certificates.Bytes(), nil
}

func holdsPublicKey(data []byte) bool {
	block, _ := pem.Decode(data)
	if block == nil {
		return false
	}
	_, err := x509.ParsePKIXPublicKey(block.Bytes)
	return err == nil
}
