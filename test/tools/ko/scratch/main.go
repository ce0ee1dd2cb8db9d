// Command scratch writes an empty base image for linux/amd64 and linux/arm64 into an OCI layout and prints its reference.
//
// ko takes base images from a registry, and looks into the layout $KOCACHE/img first: with this image there, it builds without a network.
package main

import (
	"fmt"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: scratch LAYOUT")
		os.Exit(2)
	}
	digest, err := write(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "scratch:", err)
		os.Exit(1)
	}
	fmt.Printf("localhost/scratch@%s\n", digest)
}

func write(dir string) (v1.Hash, error) {
	target, err := layout.Write(dir, empty.Index)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("write the layout: %w", err)
	}
	oci := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	base := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range []string{"amd64", "arm64"} {
		platform := &v1.Platform{OS: "linux", Architecture: architecture}
		image, err := mutate.ConfigFile(oci, &v1.ConfigFile{OS: platform.OS, Architecture: architecture, RootFS: v1.RootFS{Type: "layers"}})
		if err != nil {
			return v1.Hash{}, fmt.Errorf("describe the image for %s: %w", architecture, err)
		}
		// ko looks for the images of an index beside it.
		if err := target.AppendImage(image); err != nil {
			return v1.Hash{}, fmt.Errorf("write the image for %s: %w", architecture, err)
		}
		base = mutate.AppendManifests(base, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	if err := target.AppendIndex(base); err != nil {
		return v1.Hash{}, fmt.Errorf("write the index: %w", err)
	}
	return base.Digest()
}
