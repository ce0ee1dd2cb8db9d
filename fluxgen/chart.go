package fluxgen

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	chartLayer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	// A tag can be moved, so it is looked up again; a digest cannot, and Flux does not even ask the registry again.
	tagInterval    = 10 * time.Minute
	digestInterval = time.Hour
	sourceTimeout  = time.Minute

	maxTagLength    = 128
	sourceHashChars = 10
)

var (
	repositoryPattern = regexp.MustCompile(`^oci://([a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?|\[[a-fA-F0-9:]+\])(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
	chartNamePattern  = regexp.MustCompile(`^[a-z0-9]+([._-]+[a-z0-9]+)*$`)
	versionPattern    = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	digestPattern     = regexp.MustCompile(`^sha256:[a-f0-9]{64}$`)
)

// SourceName is the name of the chart's OCIRepository. Any difference in what is fetched, from where and with which credentials makes it
// another one: Flux goes on with the old chart until the new one is there, since a HelmRelease is only switched to a source that has it.
func SourceName(chart Chart) string {
	// Marshalling strings and booleans cannot fail.
	identity, _ := json.Marshal([]any{
		chart.URL(), chart.Version, chart.Digest, chart.Insecure, chart.PullSecret, chart.CertSecret, chart.ProxySecret, chart.CosignSecret, chart.Credentials,
	})
	hash := sha256.Sum256(identity)
	prefix := strings.NewReplacer(".", "-", "_", "-").Replace(chart.Name)
	if limit := validation.DNS1123LabelMaxLength - sourceHashChars - 1; len(prefix) > limit {
		prefix = prefix[:limit]
	}
	return prefix + "-" + hex.EncodeToString(hash[:])[:sourceHashChars]
}

// URL of the chart in its registry.
func (c Chart) URL() string { return c.Repository + "/" + c.Name }

// Tag of the chart in its registry. Helm writes "_" for the "+" that a tag cannot have; so must we, since source-controller only converts the
// tags that it finds by a range.
func (c Chart) Tag() string { return strings.ReplaceAll(c.Version, "+", "_") }

func ociRepositoryOf(release Release) *sourcev1.OCIRepository {
	chart := release.Chart
	spec := sourcev1.OCIRepositorySpec{
		URL:       chart.URL(),
		Reference: &sourcev1.OCIRepositoryRef{Tag: chart.Tag(), Digest: chart.Digest},
		// copy: the layer as it was pushed. Extracting it would pack it anew, without files that look like images or archives.
		LayerSelector:  &sourcev1.OCILayerSelector{MediaType: chartLayer, Operation: sourcev1.OCILayerCopy},
		Provider:       sourcev1.GenericOCIProvider,
		SecretRef:      reference(chart.PullSecret),
		CertSecretRef:  reference(chart.CertSecret),
		ProxySecretRef: reference(chart.ProxySecret),
		Interval:       metav1.Duration{Duration: tagInterval},
		Timeout:        &metav1.Duration{Duration: sourceTimeout},
		Insecure:       chart.Insecure,
	}
	if chart.Digest != "" {
		spec.Interval.Duration = digestInterval
	}
	if chart.CosignSecret != "" {
		spec.Verify = &sourcev1.OCIRepositoryVerification{Provider: "cosign", SecretRef: reference(chart.CosignSecret)}
	}
	return &sourcev1.OCIRepository{
		TypeMeta:   metav1.TypeMeta{APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.OCIRepositoryKind},
		ObjectMeta: release.objectMeta(SourceName(chart)),
		Spec:       spec,
	}
}

func reference(secret string) *fluxmeta.LocalObjectReference {
	if secret == "" {
		return nil
	}
	return &fluxmeta.LocalObjectReference{Name: secret}
}

func (c Chart) validate() error {
	var problems []error
	if !repositoryPattern.MatchString(c.Repository) {
		problems = append(problems, fmt.Errorf("chart: repository %q is not oci://HOST[:PORT][/PATH]", c.Repository))
	}
	if !chartNamePattern.MatchString(c.Name) {
		problems = append(problems, fmt.Errorf("chart: %q is not the name of a chart", c.Name))
	}
	if len(c.Version) > maxTagLength || !versionPattern.MatchString(c.Version) {
		problems = append(problems, fmt.Errorf("chart: version %q is not one exact semantic version", c.Version))
	}
	if c.Digest != "" && !digestPattern.MatchString(c.Digest) {
		problems = append(problems, fmt.Errorf("chart: digest %q is not sha256: and 64 hexadecimal digits", c.Digest))
	}
	for _, secret := range []string{c.PullSecret, c.CertSecret, c.ProxySecret, c.CosignSecret} {
		if secret != "" && len(validation.IsDNS1123Subdomain(secret)) > 0 {
			problems = append(problems, fmt.Errorf("chart: %q is not the name of a Secret", secret))
		}
	}
	return errors.Join(problems...)
}
