package plan_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestServersOfEveryFormAreKept: an address is not taken apart.
func TestServersOfEveryFormAreKept(t *testing.T) {
	for _, server := range []string{
		"https://api.mcp.example", "https://api.mcp.example:6443", "https://api.mcp.example:6443/clusters/one", "https://api.mcp.example/base/",
		"https://[fd00::1]", "https://[fd00::1]:6443/clusters/one", "https://10.0.0.1:443",
	} {
		config := granted(t)
		entry(config, "clusters", "cluster")["server"] = server
		data, err := yaml.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		values, blocked := identityFrom(t, data)
		if blocked != nil {
			t.Errorf("%s: %+v", server, blocked)
			continue
		}
		if text := values["kubeconfig"].(string); !strings.Contains(text, "server: "+server+"\n") && !strings.Contains(text, "server: '"+server+"'\n") {
			t.Errorf("%s is not in\n%s", server, text)
		}
	}
}
