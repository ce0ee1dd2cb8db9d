package landscape

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Image is a container image of a few static programs, made without Docker.
type Image struct {
	// Path is where it is in the landscape's registry, with its tag: velero:v1.18.3.
	Path string
	// Programs are the files in it, by their absolute path, and where each comes from.
	Programs map[string]string
	// Entrypoint is what a container of it runs.
	Entrypoint []string
}

// ImageAt is the full name of an image, or repository, at a path in the landscape's registry.
func (l *Landscape) ImageAt(path string) string { return l.Registry + "/" + path }

// PublishImage packs an image and pushes it to the registry.
func (l *Landscape) PublishImage(ctx context.Context, image Image) error {
	dir, err := os.MkdirTemp(l.site.Dir, "image-")
	if err != nil {
		return fmt.Errorf("publish image %s: %w", image.Path, err)
	}
	defer os.RemoveAll(dir)
	layer := filepath.Join(dir, "layer.tar")
	if err := pack(layer, image.Programs); err != nil {
		return fmt.Errorf("publish image %s: %w", image.Path, err)
	}
	name := l.ImageAt(image.Path)
	if err := l.crane(ctx, "append", "--insecure", "--new_layer", layer, "--new_tag", name); err != nil {
		return err
	}
	err = l.crane(ctx, "mutate", "--insecure", name, "--tag", name, "--user", "65532:65532",
		"--set-platform", "linux/"+runtime.GOARCH, "--entrypoint", strings.Join(image.Entrypoint, ","))
	if err != nil {
		return err
	}
	l.Report("published image %s", name)
	return nil
}

// pack writes programs into one layer.
func pack(path string, programs map[string]string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	layer := tar.NewWriter(file)
	names := make([]string, 0, len(programs))
	for name := range programs {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := add(layer, name, programs[name]); err != nil {
			return err
		}
	}
	if err := layer.Close(); err != nil {
		return err
	}
	return file.Close()
}

// add puts a program into a layer. Directories need no entries of their own: whoever unpacks it makes them.
func add(layer *tar.Writer, name, source string) error {
	file, err := os.Open(source)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(name, "/"), Size: info.Size(), Mode: 0o755}
	if err := layer.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(layer, file)
	return err
}

// crane runs the command that knows registries, without a user's configuration.
func (l *Landscape) crane(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, l.site.Programs["crane"], args...)
	cmd.Env = append(os.Environ(), "DOCKER_CONFIG="+l.site.Path("docker"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("crane %s: %w: %s", args[0], err, out)
	}
	return nil
}
