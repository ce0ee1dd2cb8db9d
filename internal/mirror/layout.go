// Package mirror copies what a ProviderConfig needs from registries to another registry, and says how a ProviderConfig points there.
package mirror

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// Layout says where in a mirror an artifact is: under the path of its repository, so that a mirror can be read without a table.
type Layout struct {
	host, path string
	// Scoped puts the host of the source in front of the path. It is needed when two registries have a repository of the same path.
	Scoped bool
}

// dockerHub are the names of the registry that is meant when a reference has no host.
var dockerHub = []string{"docker.io", name.DefaultRegistry}

// NewLayout takes the place of a mirror: HOST[:PORT][/PATH].
func NewLayout(place string, scoped bool) (Layout, error) {
	place = strings.TrimSuffix(strings.TrimPrefix(place, chartScheme), "/")
	if strings.Contains(place, "://") {
		return Layout{}, fmt.Errorf("%q is not HOST[:PORT][/PATH]", place)
	}
	host, path, _ := strings.Cut(place, "/")
	registry, err := name.NewRegistry(host, name.StrictValidation)
	if err != nil {
		return Layout{}, fmt.Errorf("%q does not begin with the host of a registry: %w", place, err)
	}
	// Without a dot or a port, the first part of a reference is not taken for a host.
	probe, err := name.NewRepository(host + "/" + strings.TrimPrefix(path+"/velero", "/"))
	if err != nil {
		return Layout{}, fmt.Errorf("%q is not HOST[:PORT][/PATH]: %w", place, err)
	}
	if probe.RegistryStr() != registry.RegistryStr() && !slices.Contains(dockerHub, host) {
		return Layout{}, fmt.Errorf("%q does not begin with a host that is known as one: it needs a dot or a port", place)
	}
	return Layout{host: host, path: path, Scoped: scoped}, nil
}

const chartScheme = "oci://"

// Repository is where the contents of a repository are in the mirror.
func (l Layout) Repository(source string) (string, error) {
	repository, err := name.NewRepository(source)
	if err != nil {
		return "", fmt.Errorf("%q is not a repository: %w", source, err)
	}
	parts := []string{l.host, l.path}
	if l.Scoped {
		parts = append(parts, pathOf(repository.RegistryStr()))
	}
	parts = append(parts, repository.RepositoryStr())
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "/"), nil
}

// pathOf makes a host a part of a path, which has neither colons nor capitals.
func pathOf(host string) string {
	host = strings.ToLower(strings.NewReplacer("[", "", "]", "", ":", "-").Replace(host))
	return strings.Trim(host, "-")
}

// place is an artifact, where it comes from and where it goes to.
type place struct {
	plan.Artifact
	source, target string
}

// places maps all artifacts, each once. from is nil when they are where the ProviderConfig says.
func places(artifacts []plan.Artifact, from *Layout, to Layout) ([]place, error) {
	all := make([]place, 0, len(artifacts))
	origin, taken := map[string]string{}, map[string]bool{}
	for _, artifact := range artifacts {
		target, err := to.Repository(artifact.Repository)
		if err != nil {
			return nil, err
		}
		source := qualified(artifact.Repository)
		if from != nil {
			if source, err = from.Repository(artifact.Repository); err != nil {
				return nil, err
			}
		}
		if other, exists := origin[target]; exists && other != source {
			return nil, fmt.Errorf("%s and %s would both be %s; --scoped keeps them apart", other, source, target)
		}
		origin[target] = source
		entry := place{Artifact: artifact, source: referenceIn(artifact, source), target: targetIn(artifact, target)}
		if pair := entry.source + " " + entry.target; !taken[pair] {
			taken[pair] = true
			all = append(all, entry)
		}
	}
	return all, nil
}

// qualified is a repository with its host, which tools other than a kubelet may insist on.
func qualified(repository string) string {
	parsed, err := name.NewRepository(repository)
	if err != nil || parsed.RegistryStr() != name.DefaultRegistry {
		return repository
	}
	return dockerHub[0] + "/" + parsed.RepositoryStr()
}

// referenceIn is where an artifact is read. With a digest, the tag has no meaning.
func referenceIn(artifact plan.Artifact, repository string) string {
	if artifact.Digest != "" {
		return repository + "@" + artifact.Digest
	}
	return repository + ":" + artifact.Tag
}

// targetIn is where an artifact is written: under its tag, if it has one.
func targetIn(artifact plan.Artifact, repository string) string {
	if artifact.Tag != "" {
		return repository + ":" + artifact.Tag
	}
	return repository + "@" + artifact.Digest
}
