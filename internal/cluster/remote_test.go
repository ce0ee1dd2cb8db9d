package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// secret stands for what a kubeconfig holds; no error may quote it.
const secret = "s3cr3t-t0ken"

// granted is a kubeconfig as a ClusterProvider writes it, with the given cluster and user.
func granted(cluster, user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {%s}}]
users: [{name: u, user: {%s}}]
`, cluster, user)
}

const server, token = "server: 'https://127.0.0.1:6443'", "token: " + secret

func TestRestConfigAcceptsOnlyData(t *testing.T) {
	tests := map[string]struct {
		kubeconfig string
		accepted   bool
	}{
		"Token":               {granted(server, token), true},
		"TokenAndCA":          {granted(server+", certificate-authority-data: Zm9v", token), true},
		"CertificateAsData":   {granted(server, "client-certificate-data: Zm9v, client-key-data: Zm9v"), true},
		"Exec":                {granted(server, token+", exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [pwned], interactiveMode: Never}"), false},
		"ExecOfAnotherUser":   {granted(server, token) + "- {name: other, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, interactiveMode: Never}}}\n", false},
		"AuthProvider":        {granted(server, token+", auth-provider: {name: gcp}"), false},
		"TokenFile":           {granted(server, "tokenFile: /etc/passwd"), false},
		"TokenAndFile":        {granted(server, token+", tokenFile: /etc/passwd"), false},
		"CertificateFile":     {granted(server, token+", client-certificate: /etc/passwd"), false},
		"KeyFile":             {granted(server, token+", client-key: /etc/passwd"), false},
		"CAFile":              {granted(server+", certificate-authority: /etc/passwd", token), false},
		"Insecure":            {granted(server+", insecure-skip-tls-verify: true", token), false},
		"Impersonation":       {granted(server, token+", as: "+secret), false},
		"ImpersonatedUID":     {granted(server, token+", as-uid: "+secret), false},
		"ImpersonatedGroups":  {granted(server, token+", as-groups: ['system:masters']"), false},
		"ImpersonatedExtra":   {granted(server, token+", as-user-extra: {scopes: [all]}"), false},
		"NoContext":           {strings.Replace(granted(server, token), "current-context: c", "current-context: other", 1), false},
		"NoCurrentContext":    {strings.Replace(granted(server, token), "current-context: c", "", 1), false},
		"NoUserOfThatName":    {strings.Replace(granted(server, token), "{name: u, user", "{name: v, user", 1), false},
		"NoClusterOfThatName": {strings.Replace(granted(server, token), "{name: c, cluster", "{name: d, cluster", 1), false},
		"NoServer":            {granted("", token), false},
		"ServerThatIsNoURL":   {granted("server: '%%%"+secret+"'", token), false},
		"ServerWithoutTLS":    {granted("server: 'http://127.0.0.1:6443'", token), false},
		"NoCredentials":       {granted(server, ""), false},
		"OnlyAPassword":       {granted(server, "username: admin, password: "+secret), false},
		"NoKubeconfig":        {secret + ": [", false},
		"JSON":                {`{"token": "` + secret + `"}`, false},
		"OnlyTheToken":        {secret, false},
		"Binary":              {"\x00\xff" + secret, false},
		"Empty":               {"", false},
		"OtherKind":           {"apiVersion: v1\nkind: Secret\nmetadata: {name: " + secret + "}\n", false},
		"BadBase64":           {granted(server+", certificate-authority-data: '!"+secret+"'", token), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			config, err := restConfig([]byte(test.kubeconfig))
			if test.accepted != (err == nil) {
				t.Fatalf("accepted = %v, error %v", err == nil, err)
			}
			if err == nil {
				if config.Timeout != remoteTimeout {
					t.Errorf("a call may take %s", config.Timeout)
				}
				return
			}
			for _, hidden := range []string{secret, "/etc/passwd", "127.0.0.1", "touch"} {
				if strings.Contains(err.Error(), hidden) {
					t.Errorf("the error quotes the kubeconfig: %v", err)
				}
			}
		})
	}
}

// TestConnect: what cannot work is refused as credentials, not taken for a cluster that cannot be reached, and nobody is told what it says.
func TestConnect(t *testing.T) {
	tests := map[string]struct {
		kubeconfig string
		connects   bool
	}{
		"Token":              {granted(server, token), true},
		"ServerOfBadEscape":  {granted("server: 'https://%%%"+secret+"'", token), false},
		"ServerOfBadPort":    {granted("server: 'https://"+secret+":port'", token), false},
		"ServerWithoutHost":  {granted("server: 'https://'", token), false},
		"ServerWithPassword": {granted("server: 'https://user:"+secret+"@127.0.0.1:6443'", token), false},
		"ServerWithBlank":    {granted("server: 'https://"+secret+" .example'", token), false},
		"CAThatIsNone":       {granted(server+", certificate-authority-data: Zm9v", token), false},
		"CertificateIsNone":  {granted(server, "client-certificate-data: Zm9v, client-key-data: Zm9v"), false},
		"CertificateNoKey":   {granted(server, "client-certificate-data: Zm9v"), false},
		"ProxyThatIsNoURL":   {granted(server+", proxy-url: 'http://%%%"+secret+"'", token), false},
		"ProxyOfUnknownKind": {granted(server+", proxy-url: 'ftp://"+secret+"'", token), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := connect([]byte(test.kubeconfig))
			if test.connects != (err == nil) || err != nil && !errors.Is(err, ErrCredentials) {
				t.Fatalf("error %v", err)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error quotes the kubeconfig: %v", err)
			}
		})
	}
}

// TestRestConfigTakesNothingFromTheProcess: client-go falls back to the pod's own service account when a kubeconfig is empty, and reads
// $KUBECONFIG where it is left to its defaults. Either would have the operator delete on the wrong cluster.
func TestRestConfigTakesNothingFromTheProcess(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own")
	if err := os.WriteFile(own, []byte(granted("server: 'https://own.example'", token)), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", own)
	t.Setenv("KUBERNETES_SERVICE_HOST", "own.example")
	t.Setenv("KUBERNETES_SERVICE_PORT", "443")
	for name, kubeconfig := range map[string]string{
		"Empty": "", "NoServer": granted("", token), "NoCurrentContext": strings.Replace(granted(server, token), "current-context: c", "", 1),
	} {
		t.Run(name, func(t *testing.T) {
			if config, err := restConfig([]byte(kubeconfig)); err == nil {
				t.Errorf("it connects to %s", config.Host)
			}
		})
	}
}

func FuzzRestConfig(f *testing.F) {
	f.Add([]byte(granted(server, token)))
	f.Add([]byte(granted(server, token+", exec: {command: touch}")))
	f.Add([]byte(granted(server+", proxy-url: 'http://127.0.0.1:1'", token)))
	f.Fuzz(func(t *testing.T, kubeconfig []byte) {
		config, err := restConfig(kubeconfig)
		if err != nil {
			return
		}
		if config.ExecProvider != nil || config.AuthProvider != nil || config.BearerTokenFile != "" || config.Insecure ||
			config.CertFile != "" || config.KeyFile != "" || config.CAFile != "" || config.Impersonate.UserName != "" {
			t.Errorf("more than data was accepted: %+v", config)
		}
	})
}
