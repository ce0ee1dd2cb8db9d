package fluxgen

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// dockerHubHosts are the hosts under which Flux looks for the credentials of Docker Hub: for repositories at docker.io the first one, for those
// at registry-1.docker.io the second one.
var dockerHubHosts = []string{"index.docker.io", "registry-1.docker.io"}

const schemeEnd = "://"

// NormalizeDockerConfig takes the contents of a Secret of type kubernetes.io/dockerconfigjson and returns them with registry keys as Flux
// needs them: without scheme, API version and trailing slash, and with the hosts of Docker Hub that Flux looks for. Where several keys mean the
// same registry, of which Flux would use any, one is kept: the one that is written as needed, else the first in alphabetical order. Everything
// but the credentials is left out. The error never quotes the contents.
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
		registries := registryKeys(key)
		if len(registries) == 0 {
			return nil, errors.New("an entry of auths names no registry")
		}
		for _, registry := range registries {
			if _, taken := normalized[registry]; !taken || key == registry {
				normalized[registry] = parsed.Auths[key]
			}
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

// registryKeys are the forms in which Flux looks for a key. A path stays: it limits the credentials to a part of the registry.
func registryKeys(key string) []string {
	key = strings.TrimSpace(key)
	if scheme := strings.LastIndex(key, schemeEnd); scheme >= 0 {
		key = key[scheme+len(schemeEnd):]
	}
	host, path, _ := strings.Cut(strings.TrimRight(key, "/"), "/")
	if path == "v1" || path == "v2" {
		path = ""
	}
	if host == "" || strings.ContainsFunc(key, unicode.IsSpace) {
		return nil
	}
	hosts := []string{host}
	if host == "docker.io" || slices.Contains(dockerHubHosts, host) {
		hosts = dockerHubHosts
	}
	keys := make([]string, 0, len(hosts))
	for _, host := range hosts {
		keys = append(keys, strings.TrimSuffix(host+"/"+path, "/"))
	}
	return keys
}
