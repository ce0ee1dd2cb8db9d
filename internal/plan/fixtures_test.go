package plan_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

const (
	secretText = "s3cr3t"
	kubeconfig = "kubeconfig"
)

func file(t testing.TB, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// request reads the two manifests of a case; everything that the ProviderConfig refers to exists.
func request(t testing.TB, name string) plan.Request {
	t.Helper()
	var velero v1alpha1.Velero
	var config v1alpha1.ProviderConfig
	for path, object := range map[string]any{"velero.yaml": &velero, "providerconfig.yaml": &config} {
		if err := yaml.UnmarshalStrict(file(t, name, path), object); err != nil {
			t.Fatal(err)
		}
	}
	return plan.Request{
		Velero: types.NamespacedName{Namespace: velero.Namespace, Name: velero.Name},
		Spec:   velero.Spec, Config: &config.Spec, Sources: versions(&config.Spec, "1"),
	}
}

// versions has everything that a ProviderConfig refers to, in one version.
func versions(config *v1alpha1.ProviderConfigSpec, version string) map[plan.Reference]plan.Version {
	sources := map[plan.Reference]plan.Version{}
	for _, reference := range plan.References(config) {
		sources[reference] = plan.Version{UID: "uid", ResourceVersion: version}
	}
	return sources
}

func grants() plan.Grants {
	grant := func(secret string) plan.Grant {
		return plan.Grant{Secret: secret, Key: kubeconfig, Version: plan.Version{UID: "uid", ResourceVersion: "1"}}
	}
	return plan.Grants{ControlPlane: grant("mcp-kubeconfig"), Server: grant("server-kubeconfig"), Workload: grant("workload-kubeconfig")}
}

// contents is what the sources of all generated Secrets hold.
func contents(t testing.TB, secrets []plan.GeneratedSecret) map[plan.Source]plan.Content {
	t.Helper()
	auth := base64.StdEncoding.EncodeToString([]byte("user:" + secretText))
	byName := map[string]plan.Content{
		"privateregcred":    pull(corev1.SecretTypeDockerConfigJson, `{"auths":{"https://index.docker.io/v1/":{"auth":"`+auth+`"}}}`),
		"legacy":            pull(corev1.SecretTypeDockercfg, `{"registry.example:5000":{"auth":"`+auth+`"}}`),
		"chartcred":         pull(corev1.SecretTypeDockerConfigJson, `{"auths":{"https://registry.example:5000/v2/":{"auth":"`+auth+`"}}}`),
		"cosign-pub":        {Data: map[string][]byte{"cosign.pub": file(t, "cosign.pub"), "cosign.key": []byte(secretText)}},
		"proxy":             {Data: map[string][]byte{"address": []byte("http://proxy.example:3128"), "username": []byte("user"), "password": []byte(secretText), "other": []byte("x")}},
		"custom-ca":         {Data: map[string][]byte{"ca-bundle.crt": file(t, "ca.crt")}},
		"server-kubeconfig": {Data: map[string][]byte{kubeconfig: grantedKubeconfig(t)}},
	}
	all := map[plan.Source]plan.Content{}
	for _, secret := range secrets {
		for _, source := range secret.Sources {
			all[source] = byName[source.Name]
		}
	}
	return all
}

func pull(kind corev1.SecretType, config string) plan.Content {
	key := corev1.DockerConfigJsonKey
	if kind == corev1.SecretTypeDockercfg {
		key = corev1.DockerConfigKey
	}
	return plan.Content{Type: kind, Data: map[string][]byte{key: []byte(config)}}
}

// granted is a kubeconfig as a ClusterProvider writes it.
func granted(t testing.TB) map[string]any {
	t.Helper()
	return map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "id",
		"clusters": []any{map[string]any{"name": "id", "cluster": map[string]any{
			"server":                     "https://api.mcp.example:6443",
			"certificate-authority-data": base64.StdEncoding.EncodeToString(file(t, "ca.crt")),
		}}},
		"contexts": []any{map[string]any{"name": "id", "context": map[string]any{"cluster": "id", "user": "id"}}},
		"users":    []any{map[string]any{"name": "id", "user": map[string]any{"token": secretText}}},
	}
}

func grantedKubeconfig(t testing.TB) []byte {
	t.Helper()
	data, err := yaml.Marshal(granted(t))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func resolve(t testing.TB, request plan.Request) *plan.Plan {
	t.Helper()
	resolved, blocked := plan.Resolve(request)
	if blocked != nil {
		t.Fatalf("blocked: %+v", blocked)
	}
	return resolved
}
