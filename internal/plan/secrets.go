package plan

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/fluxgen"
)

// The names of the generated Secrets in the tenant namespace, where Flux can read them.
const (
	chartPullCopy    = "sp-velero-chart-pull"
	chartCACopy      = "sp-velero-chart-ca"
	chartProxyCopy   = "sp-velero-chart-proxy"
	chartVerifyCopy  = "sp-velero-chart-verify"
	serverValuesName = "sp-velero-server-values"
	// The identity is a Secret of its own: it is renewed also while nothing else about a Velero may change.
	serverIdentityName = "sp-velero-server-identity"
)

// GeneratedSecret is a Secret that is to exist in the tenant namespace.
type GeneratedSecret struct {
	Name string
	// Fingerprint of what the Secret is made from: the sources and what the plan adds, and after a dot the versions of the sources. The Secret
	// has it in SourcesAnnotation.
	Fingerprint string
	// Sources are what Generate needs the contents of.
	Sources []Source
}

// Secrets are the Secrets that the releases refer to. The identity is first: whatever cannot be used of the others, a server that runs must get its
// renewed token.
func (p *Plan) Secrets(grants Grants) []GeneratedSecret {
	return append([]GeneratedSecret{Identity(grants.Server)}, append(p.chartSecrets(), p.serverValuesSecret())...)
}

func (p *Plan) chartSecrets() []GeneratedSecret {
	var secrets []GeneratedSecret
	if charts := p.config.Charts; charts != nil {
		if charts.PullSecret != nil {
			secrets = append(secrets, p.generated(chartPullCopy, nil, secretSource(charts.PullSecret.Name)))
		}
		if charts.ProxySecretRef != nil {
			secrets = append(secrets, p.generated(chartProxyCopy, nil, secretSource(charts.ProxySecretRef.Name)))
		}
		if charts.Verify != nil {
			secrets = append(secrets, p.generated(chartVerifyCopy, nil, secretSource(charts.Verify.SecretRef.Name)))
		}
	}
	if p.config.CABundleRef != nil {
		secrets = append(secrets, p.generated(chartCACopy, nil, p.caSource()))
	}
	return secrets
}

func (p *Plan) serverValuesSecret() GeneratedSecret {
	var sources []Source
	for _, name := range p.imagePullSecrets() {
		sources = append(sources, secretSource(name))
	}
	if p.config.CABundleRef != nil {
		sources = append(sources, p.caSource())
	}
	return p.generated(serverValuesName, p.extraSensitive(), sources...)
}

func secretSource(name string) Source { return Source{Reference: Reference{Secret, name}} }

func (p *Plan) caSource() Source {
	return Source{Reference: Reference{ConfigMap, p.config.CABundleRef.Name}, Key: p.config.CABundleRef.Key}
}

func (p *Plan) generated(name string, input any, sources ...Source) GeneratedSecret {
	versions := make([]any, 0, len(sources))
	for _, source := range sources {
		versions = append(versions, p.sources[source.Reference])
	}
	return GeneratedSecret{Name: name, Fingerprint: fingerprint(name, sources, input) + versionsFollow + fingerprint(versions...), Sources: sources}
}

// chartCredentials is a fingerprint of all that Flux needs to fetch a chart; empty when it needs nothing.
func (p *Plan) chartCredentials() string {
	secrets := p.chartSecrets()
	if len(secrets) == 0 {
		return ""
	}
	fingerprints := make([]any, 0, len(secrets))
	for _, secret := range secrets {
		fingerprints = append(fingerprints, secret.Fingerprint)
	}
	return fingerprint(fingerprints...)
}

// versionsFollow is in a Fingerprint before what changes when a source is rotated.
const versionsFollow = "."

// format changes when the same sources lead to another Secret than in an earlier release of this operator, so that all are generated anew.
const format = 1

func fingerprint(parts ...any) string {
	// Names, versions and values that came from JSON can be written as JSON.
	data, _ := json.Marshal([]any{format, parts})
	hash := sha256.Sum256(data)
	return hex.EncodeToString(hash[:16])
}

// Generate builds one of Secrets from the contents of its Sources, or says which of them cannot be used and why. What it says never quotes
// contents.
func (p *Plan) Generate(wanted GeneratedSecret, contents map[Source]Content) (*corev1.Secret, *Blocked) {
	switch wanted.Name {
	case serverValuesName:
		return p.generateServerValues(wanted, contents)
	case serverIdentityName:
		return GenerateIdentity(p.Names, wanted, contents)
	}
	kind, data, reason := corev1.SecretTypeOpaque, map[string][]byte(nil), v1alpha1.ReasonSecretInvalid
	source := wanted.Sources[0]
	content := contents[source]
	var err error
	switch wanted.Name {
	case chartPullCopy:
		kind = corev1.SecretTypeDockerConfigJson
		data, err = chartPullData(content)
	case chartProxyCopy:
		data, err = proxyData(content)
	case chartVerifyCopy:
		data, err = publicKeys(content)
	case chartCACopy:
		reason = v1alpha1.ReasonCABundleInvalid
		data, err = caData(content, source.Key)
	}
	if err != nil {
		return nil, unusable(reason, source, err)
	}
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Name: wanted.Name, Namespace: p.Names.TenantNamespace, Labels: p.Names.Labels(), Annotations: annotations(wanted, slices.Sorted(maps.Keys(data))...),
		},
		Type: kind,
		Data: data,
	}, nil
}

func unusable(reason string, source Source, cause error) *Blocked {
	return block(reason, fmt.Sprintf("%s %q of the ProviderConfig cannot be used: %s", source.Kind, source.Name, cause))
}

func annotations(wanted GeneratedSecret, keys ...string) map[string]string {
	return map[string]string{SourcesAnnotation: wanted.Fingerprint, KeysAnnotation: strings.Join(keys, ",")}
}

// generateServerValues holds the sensitive values of the server chart.
func (p *Plan) generateServerValues(wanted GeneratedSecret, contents map[Source]Content) (*corev1.Secret, *Blocked) {
	values := p.extraSensitive()
	pullSecrets := []any{}
	for _, source := range wanted.Sources {
		var err error
		reason := v1alpha1.ReasonSecretInvalid
		if source.Kind == ConfigMap {
			reason = v1alpha1.ReasonCABundleInvalid
			values["caBundle"], err = caBundle(contents[source], source.Key)
		} else {
			var pullSecret map[string]any
			pullSecret, err = imagePullData(source.Name, contents[source])
			pullSecrets = append(pullSecrets, pullSecret)
		}
		if err != nil {
			return nil, unusable(reason, source, err)
		}
	}
	values["pullSecrets"] = pullSecrets
	secret, err := fluxgen.ValuesSecret(wanted.Name, p.Names.TenantNamespace, p.Names.Labels(), annotations(wanted, fluxgen.ValuesKey), values)
	if err != nil {
		return nil, block(v1alpha1.ReasonValuesInvalid, fmt.Sprintf("spec.values.server of the ProviderConfig cannot be used: %s", err))
	}
	return secret, nil
}

// pullKey is the key that a pull secret of a type has.
func pullKey(content Content) (string, error) {
	key := map[corev1.SecretType]string{
		corev1.SecretTypeDockerConfigJson: corev1.DockerConfigJsonKey,
		corev1.SecretTypeDockercfg:        corev1.DockerConfigKey,
	}[content.Type]
	if key == "" {
		return "", fmt.Errorf("its type must be %s or %s", corev1.SecretTypeDockerConfigJson, corev1.SecretTypeDockercfg)
	}
	if len(content.Data[key]) == 0 {
		return "", fmt.Errorf("it has no key %q", key)
	}
	return key, nil
}

// imagePullData is a pull secret as the server chart creates it. The kubelet, unlike Flux, understands every form of registry keys.
func imagePullData(name string, content Content) (map[string]any, error) {
	key, err := pullKey(content)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"name": name,
		"type": string(content.Type),
		"data": map[string]any{key: base64.StdEncoding.EncodeToString(content.Data[key])},
	}, nil
}

// chartPullData is a pull secret as Flux reads it.
func chartPullData(content Content) (map[string][]byte, error) {
	normalized, err := PullCredentials(content)
	return map[string][]byte{corev1.DockerConfigJsonKey: normalized}, err
}

// PullCredentials are those of a pull secret of either type, in the form of fluxgen.NormalizeDockerConfig.
func PullCredentials(content Content) ([]byte, error) {
	key, err := pullKey(content)
	if err != nil {
		return nil, err
	}
	config := content.Data[key]
	if content.Type == corev1.SecretTypeDockercfg {
		if !json.Valid(config) {
			return nil, fmt.Errorf("key %q: it is not JSON", key)
		}
		config = slices.Concat([]byte(`{"auths":`), config, []byte(`}`))
	}
	normalized, err := fluxgen.NormalizeDockerConfig(config)
	if err != nil {
		return nil, fmt.Errorf("key %q: %w", key, err)
	}
	return normalized, nil
}

// proxyData are the keys that Flux reads.
func proxyData(content Content) (map[string][]byte, error) {
	const address = "address"
	proxy, err := url.Parse(string(content.Data[address]))
	if err != nil || proxy.Host == "" || !slices.Contains([]string{"http", "https", "socks5"}, proxy.Scheme) {
		return nil, fmt.Errorf("key %q must be http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT", address)
	}
	data := maps.Clone(content.Data)
	maps.DeleteFunc(data, func(key string, _ []byte) bool {
		return !slices.Contains([]string{address, "username", "password"}, key)
	})
	return data, nil
}

// publicKeys are the keys that Flux reads for the verification of signatures.
func publicKeys(content Content) (map[string][]byte, error) {
	data := maps.Clone(content.Data)
	maps.DeleteFunc(data, func(key string, _ []byte) bool { return !strings.HasSuffix(key, ".pub") })
	if len(data) == 0 {
		return nil, errors.New(`it has no key that ends in ".pub"`)
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if !holdsPublicKey(data[key]) {
			return nil, fmt.Errorf("key %q is not a public key in PEM form", key)
		}
	}
	return data, nil
}
