package mirror

import (
	"fmt"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// attestationOf is how BuildKit says which image of an index an attestation in the same index is about.
const attestationOf = "vnd.docker.reference.digest"

// content is a manifest with all that it consists of.
type content interface {
	partial.Describable
	remote.Taggable
}

// contentOf is what is copied: all of it, or only some platforms of an index. An index of which something is left out has another digest, so
// signatures of the whole do not hold for it.
func contentOf(found *remote.Descriptor, platforms []v1.Platform) (content, error) {
	if !found.MediaType.IsIndex() {
		return found.Image()
	}
	index, err := found.ImageIndex()
	if err != nil || len(platforms) == 0 {
		return index, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	var kept []string
	for _, child := range manifest.Manifests {
		if wanted(child, platforms) {
			kept = append(kept, child.Digest.String())
		}
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("it is for none of the wanted platforms, but for %s", offered(manifest.Manifests))
	}
	return mutate.RemoveManifests(index, func(child v1.Descriptor) bool {
		return !slices.Contains(kept, child.Digest.String()) && !slices.Contains(kept, child.Annotations[attestationOf])
	}), nil
}

func wanted(child v1.Descriptor, platforms []v1.Platform) bool {
	return child.Platform != nil && slices.ContainsFunc(platforms, func(platform v1.Platform) bool { return child.Platform.Satisfies(platform) })
}

func offered(children []v1.Descriptor) string {
	var names []string
	for _, child := range children {
		if child.Platform != nil && child.Annotations[attestationOf] == "" {
			names = append(names, child.Platform.String())
		}
	}
	return strings.Join(names, ", ")
}
