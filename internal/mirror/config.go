package mirror

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// Point says how a ProviderConfig is pointed at a mirror.
type Point struct {
	Layout Layout
	Access Access
	// PullSecret and CABundle replace what the ProviderConfig names, when they are set.
	PullSecret string
	CABundle   *v1alpha1.ConfigMapKeyReference
}

// Config is a ProviderConfig that takes everything from the mirror, with the digests that are there now. It fails for what is not there.
func (p Point) Config(ctx context.Context, config v1alpha1.ProviderConfigSpec) (*v1alpha1.ProviderConfigSpec, error) {
	digests, err := p.digests(ctx, plan.Artifacts(&config))
	if err != nil {
		return nil, err
	}
	pointed := config.DeepCopy()
	if pointed.Charts == nil {
		pointed.Charts = &v1alpha1.Charts{}
	}
	pointed.Charts.Insecure, pointed.Charts.Digests = p.Access.PlainHTTP, &v1alpha1.ChartDigests{}
	if err := p.charts(pointed, plan.Artifacts(&config), digests); err != nil {
		return nil, err
	}
	for i := range pointed.AvailableImages {
		if err := p.image(&pointed.AvailableImages[i], digests); err != nil {
			return nil, err
		}
	}
	if p.PullSecret != "" {
		pointed.ImagePullSecrets = []v1alpha1.SecretReference{{Name: p.PullSecret}}
		pointed.Charts.PullSecret = &v1alpha1.SecretReference{Name: p.PullSecret}
	}
	if p.CABundle != nil {
		pointed.CABundleRef = p.CABundle
	}
	return pointed, nil
}

// digests are those of all artifacts in the mirror, by where they came from.
func (p Point) digests(ctx context.Context, artifacts []plan.Artifact) (map[string]string, error) {
	mirror, err := p.Access.connect(ctx)
	if err != nil {
		return nil, err
	}
	all, err := places(artifacts, nil, p.Layout)
	if err != nil {
		return nil, err
	}
	digests := map[string]string{}
	var problems []error
	for _, place := range all {
		digest, err := digestOf(ctx, mirror, place)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", place.target, err))
		}
		digests[place.Reference()] = digest
	}
	return digests, errors.Join(problems...)
}

// digestOf keeps a digest that the ProviderConfig had already: it is what somebody trusts.
func digestOf(ctx context.Context, mirror *side, place place) (string, error) {
	reference, err := mirror.reference(place.target)
	if err != nil {
		return "", err
	}
	if place.Digest != "" {
		reference = reference.Context().Digest(place.Digest)
	}
	found, err := mirror.head(ctx, reference)
	if err != nil {
		return "", err
	}
	if found == nil {
		return "", fmt.Errorf("%s is not there; mirror copy brings it", identifier(reference))
	}
	return found.Digest.String(), nil
}

func identifier(reference name.Reference) string {
	if _, isDigest := reference.(name.Digest); isDigest {
		return "digest " + reference.Identifier()
	}
	return "tag " + reference.Identifier()
}

func (p Point) charts(pointed *v1alpha1.ProviderConfigSpec, artifacts []plan.Artifact, digests map[string]string) error {
	for _, artifact := range artifacts {
		if !artifact.Chart {
			continue
		}
		target, err := p.Layout.Repository(artifact.Repository)
		if err != nil {
			return err
		}
		pointed.Charts.Repository, pointed.Charts.Version = chartScheme+parent(target), artifact.Version
		digest := digests[artifact.Reference()]
		if artifact.Name == plan.ServerRelease {
			pointed.Charts.Digests.Server = digest
		} else {
			pointed.Charts.Digests.ControlPlane = digest
		}
	}
	return nil
}

// image pins each version to its digest. Users go on asking for the version without it.
func (p Point) image(image *v1alpha1.AvailableImage, digests map[string]string) error {
	target, err := p.Layout.Repository(image.Image)
	if err != nil {
		return err
	}
	for _, artifact := range plan.Artifacts(&v1alpha1.ProviderConfigSpec{AvailableImages: []v1alpha1.AvailableImage{*image}}) {
		for i, version := range image.Versions {
			if !artifact.Chart && artifact.Version == version && artifact.Digest == "" {
				image.Versions[i] = version + "@" + digests[artifact.Reference()]
			}
		}
	}
	image.Image = target
	return nil
}
