package mirror

import (
	"context"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
)

// cosignSuffixes are what cosign makes the tags of signatures, attestations and SBOMs with.
var cosignSuffixes = []string{".sig", ".att", ".sbom"}

// attachment is a signature, or anything else that belongs to a manifest.
type attachment struct {
	digest v1.Hash
	// tag is empty for a referrer, which is found by its subject.
	tag string
}

// attached finds what belongs to a manifest.
func (s *side) attached(ctx context.Context, repository name.Repository, subject v1.Hash) ([]attachment, error) {
	var found []attachment
	for _, suffix := range cosignSuffixes {
		tag := repository.Tag(strings.Replace(subject.String(), ":", "-", 1) + suffix)
		signature, err := s.head(ctx, tag)
		if err != nil {
			return nil, err
		}
		if signature != nil {
			found = append(found, attachment{signature.Digest, tag.TagStr()})
		}
	}
	referrers, err := s.referrers(ctx, repository.Digest(subject.String()))
	for _, referrer := range referrers {
		found = append(found, attachment{digest: referrer.Digest})
	}
	return found, err
}

// subjects are the digests of a manifest and of all manifests in it: each can be signed.
func subjects(root partial.Describable) ([]v1.Hash, error) {
	digest, err := root.Digest()
	if err != nil {
		return nil, err
	}
	all := []v1.Hash{digest}
	index, isIndex := root.(v1.ImageIndex)
	if !isIndex {
		return all, nil
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, child := range manifest.Manifests {
		if !child.MediaType.IsIndex() {
			all = append(all, child.Digest)
			continue
		}
		nested, err := index.ImageIndex(child.Digest)
		if err != nil {
			return nil, err
		}
		deeper, err := subjects(nested)
		if err != nil {
			return nil, err
		}
		all = append(all, deeper...)
	}
	return all, nil
}
