package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/openmcp-project/service-provider-velero/internal/cli"
)

const (
	header = "apiVersion: velero.services.openmcp.cloud/v1alpha1\n"
	velero = header + `kind: Velero
metadata: {name: test-mcp}
spec: {version: v1.17.1, plugins: [{name: aws, version: v1.13.0}]}
`
	config = header + `kind: ProviderConfig
metadata: {name: default}
spec:
  availableImages:
  - {name: velero, versions: [v1.17.1], image: velero/velero}
  - {name: aws, versions: [v1.13.0], image: velero/velero-plugin-for-aws}
  imagePullSecrets: [{name: privateregcred}]
`
	password = "s3cr3t"
	secret   = `apiVersion: v1
kind: Secret
metadata: {name: privateregcred}
type: kubernetes.io/dockerconfigjson
stringData: {.dockerconfigjson: '{"auths":{"reg.example":{"username":"me","password":"` + password + `"}}}'}
`
)

// write puts a file into a directory of the test.
func write(t *testing.T, content string) string {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(content); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

func render(t *testing.T, in string, args ...string) (out string, err error) {
	t.Helper()
	var printed bytes.Buffer
	err = cli.Render(t.Context(), args, cli.Streams{In: strings.NewReader(in), Out: &printed, Err: t.Output()})
	return printed.String(), err
}

// kinds of all objects in documents of YAML.
func kinds(t *testing.T, documents string) []string {
	t.Helper()
	var all []string
	for _, document := range strings.Split(documents, "\n---\n") {
		var object struct {
			Kind     string
			Metadata struct{ Namespace, Name string }
		}
		if err := yaml.UnmarshalStrict([]byte(document), &object, yaml.DisallowUnknownFields); err != nil && object.Kind == "" {
			t.Fatalf("%v:\n%s", err, document)
		}
		all = append(all, object.Kind+" "+object.Metadata.Name)
	}
	return all
}

var rendered = []string{
	"AccessRequest velero.services.openmcp.cloud--test-mcp--mcp", "AccessRequest velero.services.openmcp.cloud--test-mcp--server",
	"ClusterRequest velero.services.openmcp.cloud--test-mcp--workload", "AccessRequest velero.services.openmcp.cloud--test-mcp--workload",
	"Secret sp-velero-server-identity", "Secret sp-velero-server-values",
	"OCIRepository velero-control-plane-434073ab30", "HelmRelease velero-control-plane",
	"OCIRepository velero-server-30c0788639", "HelmRelease velero-server",
}

func TestRender(t *testing.T) {
	out, err := render(t, velero, "-f", "-", "-c", write(t, config), "--secrets", write(t, secret))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(rendered, kinds(t, out)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if strings.Contains(out, password) || strings.Contains(out, "czNjcjN0") {
		t.Errorf("it shows a secret:\n%s", out)
	}
	for _, part := range []string{"name: velero.services.openmcp.cloud--test-mcp--workload.kubeconfig", "image: velero/velero-plugin-for-aws:v1.13.0", "(masked: "} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing in:\n%s", part, out)
		}
	}
}

// TestEveryWayIn gives the same manifests in other ways; what comes out is the same.
func TestEveryWayIn(t *testing.T) {
	want, err := render(t, "", "-f", write(t, velero), "-c", write(t, config), "--secrets", write(t, secret))
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := yaml.YAMLToJSON([]byte(velero))
	if err != nil {
		t.Fatal(err)
	}
	all := config + "---\n" + secret + "---\n# only a comment\n---\n" + velero
	list := "apiVersion: v1\nkind: List\nitems:\n- " + indent(velero)
	typed := header + "kind: VeleroList\nitems:\n- " + indent(strings.TrimPrefix(velero, header+"kind: Velero\n"))
	tests := map[string]struct {
		in   string
		args []string
	}{
		"OneStream":  {all, []string{"-f", "-", "-c", "-"}},
		"List":       {list, []string{"-f", "-", "-c", write(t, config), "--secrets", write(t, secret)}},
		"VeleroList": {typed, []string{"-f", "-", "-c", write(t, config), "--secrets", write(t, secret)}},
		"JSON":       {string(asJSON), []string{"-f", "-", "-c", write(t, config), "--secrets", write(t, secret)}},
		"Exported":   {strings.Replace(velero, "name: test-mcp", "name: test-mcp, namespace: default, uid: u, resourceVersion: '7', generation: 3, managedFields: []", 1) + "status: {phase: Ready}", []string{"-f", "-", "-c", write(t, config), "--secrets", write(t, secret)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := render(t, test.in, test.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-separate files +this way):\n%s", diff)
			}
		})
	}
}

func indent(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

func TestRenderJSON(t *testing.T) {
	out, err := render(t, velero, "-f", "-", "-c", write(t, config), "--secrets", write(t, secret), "-o", "json", "--show-secrets")
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Kind  string
		Items []struct {
			Kind     string
			Metadata struct{ Name string }
			Data     map[string][]byte
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatal(err)
	}
	var got []string
	shown := ""
	for _, item := range list.Items {
		got = append(got, item.Kind+" "+item.Metadata.Name)
		shown += string(item.Data["values.yaml"])
	}
	if diff := cmp.Diff(rendered, got); diff != "" || list.Kind != "List" {
		t.Errorf("%s (-want +got):\n%s", list.Kind, diff)
	}
	if !strings.Contains(shown, "privateregcred") || !strings.Contains(shown, "known-when-access-is-granted") {
		t.Errorf("the Secrets hold %s", shown)
	}
}

// TestBlockedVeleros: what is blocked is said in the operator's words, and what is not blocked is printed.
func TestBlockedVeleros(t *testing.T) {
	other := strings.NewReplacer("test-mcp", "other", "v1.17.1", "v9").Replace(velero)
	out, err := render(t, velero+"---\n"+other, "-f", "-", "-c", write(t, config), "--secrets", write(t, secret))
	const message = `velero default/other: VersionNotOffered: spec.version "v9" is not offered; offered: v1.17.1`
	if err == nil || err.Error() != message {
		t.Errorf("error %v, want %s", err, message)
	}
	if diff := cmp.Diff(rendered, kinds(t, out)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestBadInput(t *testing.T) {
	good := []string{"-f", write(t, velero), "-c", write(t, config), "--secrets", write(t, secret)}
	tests := map[string]struct {
		in    string
		args  []string
		names []string
	}{
		"NoVeleros":        {"", []string{"-c", good[3]}, []string{"-f"}},
		"NoConfig":         {"", []string{"-f", good[1]}, []string{"-c"}},
		"NoSuchFile":       {"", []string{"-f", "absent.yaml", "-c", good[3]}, []string{"absent.yaml"}},
		"UnknownOutput":    {"", append(good, "-o", "xml"), []string{"xml", "yaml"}},
		"UnknownFlag":      {"", append(good, "--frobnicate"), []string{"--frobnicate", "--help"}},
		"Argument":         {"", append(good, "more"), []string{`"more"`}},
		"EmptyInput":       {"", []string{"-f", "-", "-c", good[3]}, []string{"no Velero"}},
		"OnlyVeleros":      {"", []string{"-f", good[1], "-c", good[1]}, []string{"no ProviderConfig"}},
		"NoYAML":           {"{", []string{"-f", "-", "-c", good[3]}, []string{"standard input"}},
		"KeyTwice":         {velero + "kind: Velero\n", []string{"-f", "-", "-c", good[3]}, []string{`"kind" already set`}},
		"Invalid":          {strings.Replace(velero, "name: aws", "name: AWS", 1), []string{"-f", "-", "-c", good[3]}, []string{"standard input", "spec.plugins[0].name", `"AWS"`}},
		"InvalidConfig":    {strings.Replace(config, "image: velero/velero}", "image: velero/velero:v1}", 1), []string{"-f", good[1], "-c", "-"}, []string{"spec.availableImages[0].image", "velero/velero:v1"}},
		"UnknownField":     {strings.Replace(velero, "plugins:", "plugin:", 1), []string{"-f", "-", "-c", good[3]}, []string{`unknown field "spec.plugin"`}},
		"OtherKind":        {"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n", []string{"-f", "-", "-c", good[3]}, []string{`"Pod"`}},
		"SecretMissing":    {"", good[:4], []string{"SecretNotFound", `"privateregcred"`, "--secrets"}},
		"SecretElsewhere":  {strings.Replace(secret, "name: p", "namespace: other, name: p", 1), append(good[:4:4], "--secrets", "-"), []string{"SecretNotFound"}},
		"SecretInvalid":    {strings.Replace(secret, "type: kubernetes.io/dockerconfigjson", "", 1), append(good[:4:4], "--secrets", "-"), []string{"SecretInvalid", `"privateregcred"`, "type"}},
		"SecretTwice":      {secret, append(good[:6:6], "--secrets", "-"), []string{"privateregcred", "twice"}},
		"SecretNotDecoded": {"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {k: '#'}\n", append(good[:6:6], "--secrets", "-"), []string{`Secret "a"`}},
		"Kubeconfig":       {"", append(good, "--kubeconfig", "x"), []string{"--diff"}},
		"DiffAsJSON":       {"", append(good, "--diff", "-o", "json"), []string{"--diff"}},
		"DiffNowhere":      {"", append(good, "--diff", "--kubeconfig", filepath.Join(t.TempDir(), "absent")), []string{"platform cluster"}},
		"SeveralConfigs":   {strings.ReplaceAll(config+"---\n"+config, "name: default", "name: a"), []string{"-f", good[1], "-c", "-"}, []string{"--provider-name", `"default"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, test.in, test.args...)
			if err == nil {
				t.Fatal("it is accepted")
			}
			for _, name := range test.names {
				if !strings.Contains(err.Error(), name) {
					t.Errorf("%q does not name %q", err, name)
				}
			}
			if strings.Contains(err.Error(), password) {
				t.Errorf("it shows a secret: %v", err)
			}
		})
	}
}

// TestSecretsOfTheCluster: Secrets as kubectl prints them give the names and annotations that they lead to there.
func TestSecretsOfTheCluster(t *testing.T) {
	withCharts := config + "  charts: {pullSecret: {name: privateregcred}}\n"
	exported := strings.Replace(secret, "name: privateregcred", "name: privateregcred, namespace: openmcp-system, uid: abc, resourceVersion: '7'", 1)
	plain, err := render(t, velero, "-f", "-", "-c", write(t, withCharts), "--secrets", write(t, secret))
	if err != nil {
		t.Fatal(err)
	}
	known, err := render(t, velero, "-f", "-", "-c", write(t, withCharts), "--secrets", write(t, exported))
	if err != nil {
		t.Fatal(err)
	}
	renewed, err := render(t, velero, "-f", "-", "-c", write(t, withCharts), "--secrets", write(t, strings.Replace(exported, "'7'", "'8'", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if plain == known || known == renewed {
		t.Error("the version of a Secret makes no difference")
	}
}

func TestHelp(t *testing.T) {
	out, err := render(t, "", "--help")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"--filename", "--secrets", "--show-secrets", "--diff", "standard input"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing in:\n%s", part, out)
		}
	}
}
