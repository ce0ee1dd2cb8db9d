package fluxgen_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/openmcp-project/service-provider-velero/fluxgen"
)

func TestRegistryKeysBecomeWhatFluxLooksFor(t *testing.T) {
	for name, test := range map[string]struct{ config, want string }{
		"as needed":         {`{"auths":{"r.example":{"auth":"dTpw"}}}`, `{"auths":{"r.example":{"auth":"dTpw"}}}`},
		"scheme":            {`{"auths":{"https://r.example":{"auth":"dTpw"}}}`, `{"auths":{"r.example":{"auth":"dTpw"}}}`},
		"http and port":     {`{"auths":{"http://r.example:5000/":{"auth":"dTpw"}}}`, `{"auths":{"r.example:5000":{"auth":"dTpw"}}}`},
		"upper case":        {`{"auths":{"HTTPS://r.example/v1/":{"auth":"dTpw"}}}`, `{"auths":{"r.example":{"auth":"dTpw"}}}`},
		"two schemes":       {`{"auths":{"http://https://r.example":{"auth":"dTpw"}}}`, `{"auths":{"r.example":{"auth":"dTpw"}}}`},
		"white space":       {`{"auths":{" https://r.example/v1/ ":{"auth":"dTpw"}}}`, `{"auths":{"r.example":{"auth":"dTpw"}}}`},
		"API version 1":     {`{"auths":{"https://r.example/v1/":{"auth":"dTpw"}}}`, `{"auths":{"r.example":{"auth":"dTpw"}}}`},
		"API version 2":     {`{"auths":{"r.example/v2":{"auth":"dTpw"}}}`, `{"auths":{"r.example":{"auth":"dTpw"}}}`},
		"a path stays":      {`{"auths":{"https://r.example/team/charts/":{"auth":"dTpw"}}}`, `{"auths":{"r.example/team/charts":{"auth":"dTpw"}}}`},
		"a path with v1":    {`{"auths":{"r.example/team/v1":{"auth":"dTpw"}}}`, `{"auths":{"r.example/team/v1":{"auth":"dTpw"}}}`},
		"a glob stays":      {`{"auths":{"*.r.example":{"auth":"dTpw"}}}`, `{"auths":{"*.r.example":{"auth":"dTpw"}}}`},
		"IPv6":              {`{"auths":{"[fd00::1]:5000":{"auth":"dTpw"}}}`, `{"auths":{"[fd00::1]:5000":{"auth":"dTpw"}}}`},
		"Docker Hub":        {`{"auths":{"docker.io":{"auth":"dTpw"}}}`, `{"auths":{"index.docker.io":{"auth":"dTpw"},"registry-1.docker.io":{"auth":"dTpw"}}}`},
		"docker login":      {`{"auths":{"https://index.docker.io/v1/":{"auth":"dTpw"}}}`, `{"auths":{"index.docker.io":{"auth":"dTpw"},"registry-1.docker.io":{"auth":"dTpw"}}}`},
		"the exact wins":    {`{"auths":{"https://r.example":{"auth":"YTph"},"r.example":{"auth":"dTpw"},"r.example/v2/":{"auth":"Yjpi"}}}`, `{"auths":{"r.example":{"auth":"dTpw"}}}`},
		"else the first":    {`{"auths":{"https://r.example":{"auth":"dTpw"},"r.example/v2/":{"auth":"Yjpi"},"http://r.example":{"auth":"YTph"}}}`, `{"auths":{"r.example":{"auth":"YTph"}}}`},
		"user and password": {`{"auths":{"r.example":{"username":"u","password":"p"}}}`, `{"auths":{"r.example":{"password":"p","username":"u"}}}`},
		"identity token":    {`{"auths":{"r.example":{"auth":"","identitytoken":"t"}}}`, `{"auths":{"r.example":{"auth":"","identitytoken":"t"}}}`},
		"no padding":        {`{"auths":{"r.example":{"auth":"dTpwYQ"}}}`, `{"auths":{"r.example":{"auth":"dTpwYQ"}}}`},
		"helpers are gone":  {`{"auths":{"r.example":{"auth":"dTpw"}},"credHelpers":{"x":"y"},"credsStore":"desktop"}`, `{"auths":{"r.example":{"auth":"dTpw"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			for range 10 { // map order
				got, err := fluxgen.NormalizeDockerConfig([]byte(test.config))
				if err != nil {
					t.Fatal(err)
				}
				if string(got) != test.want {
					t.Fatalf("got  %s\nwant %s", got, test.want)
				}
			}
		})
	}
}

func TestUnusableDockerConfigsAreRefusedWithoutAQuote(t *testing.T) {
	for name, test := range map[string]struct{ config, want string }{
		"empty":              {``, "it is not a JSON object with auths"},
		"not JSON":           {`s3cr3t`, "it is not a JSON object with auths"},
		"a list":             {`["s3cr3t"]`, "it is not a JSON object with auths"},
		"auths is a list":    {`{"auths":["s3cr3t"]}`, "it is not a JSON object with auths"},
		"an entry is text":   {`{"auths":{"r.example":"s3cr3t"}}`, "it is not a JSON object with auths"},
		"no auths":           {`{"s3cr3t":1}`, "it has no auths"},
		"dockercfg":          {`{"r.example":{"auth":"s3cr3t"}}`, "it has no auths"},
		"null":               {`null`, "it has no auths"},
		"not base64":         {`{"auths":{"r.example":{"auth":"s3cr3t!"}}}`, "an entry of auths has a field auth that is not the base64 of user:password"},
		"no colon":           {`{"auths":{"r.example":{"auth":"czNjcjN0"}}}`, "an entry of auths has a field auth that is not the base64 of user:password"},
		"auth is a number":   {`{"auths":{"r.example":{"auth":5}}}`, "an entry of auths has a field auth that is not the base64 of user:password"},
		"no registry":        {`{"auths":{"https://":{"auth":"dTpw"}}}`, "an entry of auths names no registry"},
		"only white space":   {`{"auths":{" ":{"auth":"dTpw"}}}`, "an entry of auths names no registry"},
		"white space inside": {`{"auths":{"r.example /v1":{"auth":"dTpw"}}}`, "an entry of auths names no registry"},
		"a path and no host": {`{"auths":{"/v1/":{"auth":"dTpw"}}}`, "an entry of auths names no registry"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := fluxgen.NormalizeDockerConfig([]byte(test.config))
			if err == nil {
				t.Fatalf("accepted: %s", got)
			}
			if err.Error() != test.want {
				t.Errorf("got %q, want %q", err, test.want)
			}
		})
	}
}

func FuzzNormalizeDockerConfig(f *testing.F) {
	f.Add([]byte(`{"auths":{"https://index.docker.io/v1/":{"auth":"dTpw"}}}`))
	f.Add([]byte(`{"auths":{"":{}," ":null,"/":{"auth":""}}}`))
	for _, key := range []string{"http://https://r.example", " r.example / v1 ", "r.example/v1/ /", "r.example:////v1", "r.example/a:///", "docker.io/v1/v2"} {
		f.Add([]byte(`{"auths":{"` + key + `":{}}}`))
	}
	f.Fuzz(func(t *testing.T, config []byte) {
		once, err := fluxgen.NormalizeDockerConfig(config)
		if err != nil {
			return
		}
		if !json.Valid(once) || !strings.HasPrefix(string(once), `{"auths":`) {
			t.Fatalf("not a docker config: %s", once)
		}
		again, err := fluxgen.NormalizeDockerConfig(once)
		if err != nil || !bytes.Equal(again, once) {
			t.Fatalf("normalising again changed it: %s to %s (%v)", once, again, err)
		}
	})
}
