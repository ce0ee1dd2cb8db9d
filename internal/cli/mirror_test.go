package cli_test

import (
	"bytes"
	"encoding/base64"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/openmcp-project/service-provider-velero/internal/cli"
)

// closedRegistry has TLS and a password.
func closedRegistry(t *testing.T) (server *httptest.Server, host string) {
	t.Helper()
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server = httptest.NewUnstartedServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		if _, given, _ := request.BasicAuth(); given != password {
			response.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			response.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(response, request)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server, strings.TrimPrefix(server.URL, "https://")
}

// mirroring is a source with everything that a ProviderConfig needs, and an empty mirror.
type mirroring struct{ config, to, ca, docker, secret, legacy string }

func newMirroring(t *testing.T) mirroring {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	source, from := closedRegistry(t)
	_, to := closedRegistry(t)
	for _, path := range []string{"/charts/velero-control-plane:0.1.0", "/charts/velero-server:0.1.0", "/velero/velero:v1"} {
		reference, err := name.ParseReference(from + path)
		if err != nil {
			t.Fatal(err)
		}
		image, err := random.Image(64, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(reference, image, remote.WithTransport(source.Client().Transport), remote.WithAuth(&authn.Basic{Username: "me", Password: password})); err != nil {
			t.Fatal(err)
		}
	}
	auth := base64.StdEncoding.EncodeToString([]byte("me:" + password))
	auths := `{"` + from + `": {"auth": "` + auth + `"}, "` + to + `": {"auth": "` + auth + `"}}`
	return mirroring{
		to: to + "/m",
		config: write(t, header+"kind: ProviderConfig\nmetadata: {name: default, labels: {team: storage}}\nspec:\n  charts: {version: 0.1.0, repository: 'oci://"+from+
			"/charts'}\n  availableImages: [{name: velero, versions: [v1], image: '"+from+"/velero/velero'}]\n"),
		ca:     write(t, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: source.Certificate().Raw}))),
		docker: write(t, `{"auths": `+auths+`}`),
		secret: write(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ntype: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: '{\"auths\": "+auths+"}'}\n"),
		legacy: write(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\ntype: kubernetes.io/dockercfg\nstringData: {.dockercfg: '"+auths+"'}\n"),
	}
}

func mirrored(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var printed bytes.Buffer
	err := cli.Mirror(t.Context(), args, cli.Streams{In: strings.NewReader(""), Out: &printed, Err: t.Output()})
	return printed.String(), err
}

// TestMirrorWithCredentials in each form that a file may have.
func TestMirrorWithCredentials(t *testing.T) {
	for name, file := range map[string]func(mirroring) string{
		"DockerConfig": func(m mirroring) string { return m.docker },
		"Secret":       func(m mirroring) string { return m.secret },
		"LegacySecret": func(m mirroring) string { return m.legacy },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMirroring(t)
			access := []string{"-c", m.config, "--to", m.to, "--ca-file", m.ca, "--pull-secret", file(m)}
			out, err := mirrored(t, append([]string{"copy"}, access...)...)
			if err != nil || strings.Count(out, "copied") != 3 {
				t.Fatalf("error %v:\n%s", err, out)
			}
			out, err = mirrored(t, append([]string{"config"}, access...)...)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"team: storage", "image: " + m.to + "/velero/velero", "- v1@sha256:", "repository: oci://" + m.to + "/charts", "pollInterval: 10m0s"} {
				if !strings.Contains(out, part) {
					t.Errorf("%q is missing in:\n%s", part, out)
				}
			}
			// What it writes is a ProviderConfig that can be used, by those who ask for the plain version.
			asked := header + "kind: Velero\nmetadata: {name: a}\nspec: {version: v1}\n"
			rendered, err := render(t, asked, "-f", "-", "-c", write(t, out))
			if err != nil || !strings.Contains(rendered, "image: "+m.to+"/velero/velero:v1@sha256:") {
				t.Errorf("error %v:\n%s", err, rendered)
			}
		})
	}
}

func TestMirrorIsRefused(t *testing.T) {
	m := newMirroring(t)
	copying := []string{"copy", "-c", m.config, "--to", m.to}
	tests := map[string]struct {
		args  []string
		names []string
	}{
		"Nothing":         {nil, []string{"list", "copy", "config"}},
		"Unknown":         {[]string{"move"}, []string{"list", "copy", "config"}},
		"NoConfig":        {[]string{"list"}, []string{"-c"}},
		"NoTarget":        {copying[:3], []string{"--to"}},
		"TargetIsNoHost":  {append(copying[:3:3], "--to", "registry/path"), []string{"--to", "registry/path"}},
		"SourceIsNoHost":  {append(copying, "--from", "registry/path"), []string{"--from", "registry/path"}},
		"NoCAFile":        {append(copying, "--ca-file", "absent"), []string{"absent"}},
		"NoCA":            {append(copying, "--ca-file", m.config), []string{"CA file"}},
		"UnknownCA":       {append(copying, "--pull-secret", m.docker), []string{"certificate"}},
		"NoPullSecret":    {append(copying, "--pull-secret", "absent"), []string{"absent"}},
		"NotAPullSecret":  {append(copying, "--pull-secret", m.config), []string{"no Secret"}},
		"WrongPullSecret": {append(copying, "--pull-secret", write(t, secret+"---\napiVersion: v1\nkind: Secret\nmetadata: {name: other}\n")), []string{`secret "other"`, "type"}},
		"NoCredentials":   {append(copying, "--ca-file", m.ca), []string{"401"}},
		"Output":          {[]string{"list", "-c", m.config, "-o", "xml"}, []string{"xml"}},
		"CABundle":        {[]string{"config", "-c", m.config, "--to", m.to, "--set-ca-bundle", "name"}, []string{"NAME/KEY"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := mirrored(t, test.args...)
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
