package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/fluxgen"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// identityFrom generates the server's identity from a granted kubeconfig.
func identityFrom(t testing.TB, kubeconfigData []byte) (map[string]any, *plan.Blocked) {
	t.Helper()
	wanted := plan.Identity(grants().Server)
	held := map[plan.Source]plan.Content{wanted.Sources[0]: {Data: map[string][]byte{kubeconfig: kubeconfigData}}}
	secret, blocked := plan.GenerateIdentity(resolve(t, request(t, "guide")).Names, wanted, held)
	if blocked != nil {
		return nil, blocked
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict(secret.Data[fluxgen.ValuesKey], &values); err != nil {
		t.Fatal(err)
	}
	return values, nil
}

func entry(config map[string]any, list, kind string) map[string]any {
	return config[list].([]any)[0].(map[string]any)[kind].(map[string]any)
}

func TestKubeconfigsThatAreNotJustDataAreRefused(t *testing.T) {
	user := func(key string, value any) func(map[string]any) {
		return func(config map[string]any) { entry(config, "users", "user")[key] = value }
	}
	cluster := func(key string, value any) func(map[string]any) {
		return func(config map[string]any) { entry(config, "clusters", "cluster")[key] = value }
	}
	for name, test := range map[string]struct {
		change func(map[string]any)
		want   string
	}{
		"exec":                   {user("exec", map[string]any{"command": "/bin/sh", "args": []any{secretText}}), "it runs a program to authenticate"},
		"an empty exec":          {user("exec", map[string]any{}), "it runs a program to authenticate"},
		"an auth provider":       {user("auth-provider", map[string]any{"name": "gcp"}), "it runs a program to authenticate"},
		"a token file":           {user("tokenFile", "/etc/"+secretText), "it refers to files"},
		"a certificate file":     {user("client-certificate", "/etc/"+secretText), "it refers to files"},
		"a key file":             {user("client-key", "/etc/"+secretText), "it refers to files"},
		"impersonation":          {user("as", secretText), "it impersonates another user"},
		"a group":                {user("as-groups", []any{secretText}), "it impersonates another user"},
		"a UID":                  {user("as-uid", secretText), "it impersonates another user"},
		"extra":                  {user("as-user-extra", map[string]any{"a": []any{secretText}}), "it impersonates another user"},
		"no token":               {user("token", ""), "it has no token"},
		"a blank token":          {user("token", " \n"), "it has no token"},
		"no verification":        {cluster("insecure-skip-tls-verify", true), "it skips the verification of certificates"},
		"a CA file":              {cluster("certificate-authority", "/etc/"+secretText), "it refers to files"},
		"a CA that is none":      {cluster("certificate-authority-data", "czNjcjN0"), "its certificate authority is not a certificate"},
		"a CA that is no base64": {cluster("certificate-authority-data", secretText+"!"), "it is not a kubeconfig"},
		"no server":              {cluster("server", ""), "its server is not https://HOST[:PORT]"},
		"plain HTTP":             {cluster("server", "http://"+secretText), "its server is not https://HOST[:PORT]"},
		"a password in the URL":  {cluster("server", "https://user:"+secretText+"@api.example"), "its server is not https://HOST[:PORT]"},
		"no current context":     {func(config map[string]any) { delete(config, "current-context") }, "its current context does not lead to a cluster and a user"},
		"an unknown context":     {func(config map[string]any) { config["current-context"] = secretText }, "its current context does not lead to a cluster and a user"},
		"no contexts":            {func(config map[string]any) { delete(config, "contexts") }, "its current context does not lead to a cluster and a user"},
		"no users":               {func(config map[string]any) { config["users"] = []any{} }, "its current context does not lead to a cluster and a user"},
		"an unknown cluster":     {func(config map[string]any) { entry(config, "contexts", "context")["cluster"] = secretText }, "its current context does not lead to a cluster and a user"},
		"names that are empty": {func(config map[string]any) {
			entry(config, "contexts", "context")["cluster"] = ""
			config["clusters"].([]any)[0].(map[string]any)["name"] = ""
		}, "its current context does not lead to a cluster and a user"},
		"lists that are texts": {func(config map[string]any) { config["users"] = secretText }, "it is not a kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			config := granted(t)
			test.change(config)
			data, err := yaml.Marshal(config)
			if err != nil {
				t.Fatal(err)
			}
			_, blocked := identityFrom(t, data)
			want := &plan.Blocked{Reason: v1alpha1.ReasonCredentialsInvalid, Message: "the kubeconfig that was granted for the control plane cannot be used: " + test.want}
			if diff := cmp.Diff(want, blocked); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheServersKubeconfigHasNoCredentials(t *testing.T) {
	config := granted(t)
	cluster := entry(config, "clusters", "cluster")
	cluster["tls-server-name"], cluster["proxy-url"] = "api.internal", "http://proxy.example:3128"
	user := entry(config, "users", "user")
	user["client-certificate-data"], user["client-key-data"], user["password"] = "czNjcjN0", "czNjcjN0", secretText
	config["users"] = append(config["users"].([]any), map[string]any{"name": "other", "user": map[string]any{"token": secretText}})
	config["clusters"] = append(config["clusters"].([]any), map[string]any{"name": "other", "cluster": map[string]any{"server": "https://other.example"}})
	data, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	values, blocked := identityFrom(t, data)
	if blocked != nil {
		t.Fatal(blocked)
	}
	if values["token"] != secretText {
		t.Errorf("token %q", values["token"])
	}
	text := values["kubeconfig"].(string)
	for _, forbidden := range []string{secretText, "czNjcjN0", "other", "password", "client-"} {
		if strings.Contains(text, forbidden) {
			t.Errorf("%q is in\n%s", forbidden, text)
		}
	}
	for _, kept := range []string{"server: https://api.mcp.example:6443", "tls-server-name: api.internal", "proxy-url: http://proxy.example:3128",
		"certificate-authority-data: ", "tokenFile: /var/run/secrets/velero/control-plane/token"} {
		if !strings.Contains(text, kept) {
			t.Errorf("%q is not in\n%s", kept, text)
		}
	}
}

func TestAKubeconfigWithoutCATrustsTheUsualOnes(t *testing.T) {
	config := granted(t)
	delete(entry(config, "clusters", "cluster"), "certificate-authority-data")
	data, err := yaml.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	values, blocked := identityFrom(t, data)
	if blocked != nil {
		t.Fatal(blocked)
	}
	if strings.Contains(values["kubeconfig"].(string), "certificate-authority") {
		t.Error(values["kubeconfig"])
	}
}

func FuzzServerKubeconfig(f *testing.F) {
	f.Add(grantedKubeconfig(f))
	f.Add([]byte("current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, cluster: {server: https://a}}]\nusers: [{name: a, user: {token: t, exec: {}}}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		values, blocked := identityFrom(t, data)
		if blocked != nil {
			if blocked.Reason != v1alpha1.ReasonCredentialsInvalid || len(blocked.Message) > 256 {
				t.Fatalf("%+v", blocked)
			}
			return
		}
		if values["token"] == "" {
			t.Fatalf("%v", values)
		}
		assertOnlyReadsAToken(t, values["kubeconfig"].(string))
	})
}

// assertOnlyReadsAToken: one cluster that is verified, and a user who reads a token from a file and does nothing else.
func assertOnlyReadsAToken(t *testing.T, text string) {
	t.Helper()
	config, err := clientcmd.Load([]byte(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil || len(config.Contexts) != 1 || len(config.Clusters) != 1 || len(config.AuthInfos) != 1 {
		t.Fatalf("not one context, cluster and user in\n%s", text)
	}
	want := &clientcmdapi.AuthInfo{TokenFile: "/var/run/secrets/velero/control-plane/token"}
	if diff := cmp.Diff(want, config.AuthInfos[context.AuthInfo], cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("user (-want +got):\n%s", diff)
	}
	if cluster := config.Clusters[context.Cluster]; cluster == nil || cluster.InsecureSkipTLSVerify || cluster.CertificateAuthority != "" {
		t.Fatalf("cluster in\n%s", text)
	}
}
