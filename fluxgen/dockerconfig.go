package fluxgen

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
)

// dockerHub is the host under which registry clients look for the credentials of docker.io.
const dockerHub = "index.docker.io"

// NormalizeDockerConfig takes the contents of a Secret of type kubernetes.io/dockerconfigjson and returns them with registry keys as Flux
// needs them: without scheme, API version and trailing slash, and with the host of Docker Hub that Flux looks for. Where several keys mean the
// same registry, one is kept: the one that is written as needed, else the first in alphabetical order. Everything but the credentials is left
// out. The error never quotes the contents.
func NormalizeDockerConfig(config []byte) ([]byte, error) {
	var parsed struct {
		Auths map[string]map[string]any `json:"auths"`
	}
	if json.Unmarshal(config, &parsed) != nil {
		return nil, errors.New("it is not a JSON object with auths")
	}
	if len(parsed.Auths) == 0 {
		return nil, errors.New("it has no auths")
	}
	normalized := map[string]map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(parsed.Auths)) {
		if !usableAuth(parsed.Auths[key]) {
			return nil, errors.New("an entry of auths has a field auth that is not the base64 of user:password")
		}
		registry := registryKey(key)
		if registry == "" {
			return nil, errors.New("an entry of auths names no registry")
		}
		if _, taken := normalized[registry]; !taken || key == registry {
			normalized[registry] = parsed.Auths[key]
		}
	}
	return json.Marshal(map[string]any{"auths": normalized})
}

// usableAuth is false for what has Flux fail with an error that does not name the cause.
func usableAuth(entry map[string]any) bool {
	auth, present := entry["auth"]
	if !present || auth == "" {
		return true
	}
	encoded, isString := auth.(string)
	if !isString {
		return false
	}
	// Docker tools write it with and without padding.
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
	return err == nil && strings.Contains(string(decoded), ":")
}

func registryKey(key string) string {
	key = strings.TrimSpace(key)
	for _, scheme := range []string{"https://", "http://"} {
		key = strings.TrimPrefix(key, scheme)
	}
	key = strings.TrimRight(key, "/")
	for _, version := range []string{"/v1", "/v2"} {
		key = strings.TrimSuffix(key, version)
	}
	host, path, found := strings.Cut(strings.TrimRight(key, "/"), "/")
	host = strings.ToLower(host)
	if host == "docker.io" || host == "registry-1.docker.io" {
		host = dockerHub
	}
	if found {
		return host + "/" + path
	}
	return host
}
