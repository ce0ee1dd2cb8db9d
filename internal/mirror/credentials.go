package mirror

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/openmcp-project/service-provider-velero/fluxgen"
)

// keychain has credentials of a Docker config, by registry or a part of one.
type keychain map[string]authn.AuthConfig

// NewKeychain takes a Docker config as fluxgen.NormalizeDockerConfig leaves it.
func NewKeychain(config []byte) (authn.Keychain, error) {
	normalized, err := fluxgen.NormalizeDockerConfig(config)
	if err != nil {
		return nil, err
	}
	var parsed struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	if json.Unmarshal(normalized, &parsed) != nil {
		// The cause may quote the contents.
		return nil, errors.New("its credentials cannot be read")
	}
	return keychain(parsed.Auths), nil
}

// Resolve implements authn.Keychain: the credentials for the longest part of the repository's path count, as with the kubelet.
func (k keychain) Resolve(target authn.Resource) (authn.Authenticator, error) {
	for place := target.String(); place != ""; place = parent(place) {
		if found, exists := k[place]; exists {
			return authn.FromConfig(found), nil
		}
	}
	return authn.Anonymous, nil
}

func parent(place string) string {
	end := strings.LastIndex(place, "/")
	if end < 0 {
		return ""
	}
	return place[:end]
}

// String keeps credentials out of messages.
func (k keychain) String() string { return fmt.Sprintf("credentials for %d registries", len(k)) }
