package plan

import (
	"strings"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// Artifact is something in a registry that a ProviderConfig needs: one of the two charts, or one version of an image that it offers.
type Artifact struct {
	Chart bool
	// Name of the chart, or of the entry of availableImages.
	Name string
	// Version as the ProviderConfig has it.
	Version string
	// Repository without scheme, as Flux and the kubelet read it.
	Repository string
	// Tag and Digest; one of them may be empty, and the digest decides.
	Tag, Digest string
}

// Reference is the artifact's name for tools.
func (a Artifact) Reference() string {
	reference := a.Repository
	if a.Tag != "" {
		reference += ":" + a.Tag
	}
	if a.Digest != "" {
		reference += "@" + a.Digest
	}
	return reference
}

// Artifacts are all that a ProviderConfig needs, in its order: the charts, then the images.
func Artifacts(config *v1alpha1.ProviderConfigSpec) []Artifact {
	var all []Artifact
	for _, name := range []string{ControlPlaneRelease, ServerRelease} {
		chart := (&Plan{config: config}).chart(name)
		all = append(all, Artifact{
			Chart: true, Name: name, Version: chart.Version, Repository: strings.TrimPrefix(chart.URL(), chartScheme), Tag: chart.Tag(), Digest: chart.Digest,
		})
	}
	for _, image := range config.AvailableImages {
		for _, version := range image.Versions {
			tag, digest := splitVersion(version)
			all = append(all, Artifact{Name: image.Name, Version: version, Repository: image.Image, Tag: tag, Digest: digest})
		}
	}
	return all
}

const chartScheme = "oci://"

// splitVersion takes a version of an image apart, which is a tag, a digest, or tag@digest.
func splitVersion(version string) (tag, digest string) {
	if strings.HasPrefix(version, "sha256:") {
		return "", version
	}
	tag, digest, _ = strings.Cut(version, "@")
	return tag, digest
}
