package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// defaultInterval between two looks for drift; the API server writes it too.
const defaultInterval = 10 * time.Minute

// Resolve makes the plan, or says why there is none. Names and versions of the user are only looked up in what the ProviderConfig offers;
// image references are made from the ProviderConfig alone.
func Resolve(request Request) (*Plan, *Blocked) {
	config := request.Config
	if config == nil {
		return nil, block(v1alpha1.ReasonProviderConfigNotFound, "the platform does not offer Velero yet: it has no ProviderConfig")
	}
	names, err := NamesOf(request.Velero)
	if err != nil {
		return nil, block(v1alpha1.ReasonControlPlaneNotFound, "a Velero needs a name")
	}
	image, plugins, blocked := resolveImages(config, request.Spec)
	if blocked != nil {
		return nil, blocked
	}
	if blocked := missing(config, request.Sources); blocked != nil {
		return nil, blocked
	}
	controlPlane, server, blocked := extraValues(config)
	if blocked != nil {
		return nil, blocked
	}
	resolved := &Plan{
		Names: names, Version: request.Spec.Version, Image: image, Plugins: plugins,
		config: config, sources: request.Sources, controlPlane: controlPlane, server: server, interval: defaultInterval,
	}
	if config.PollInterval != nil {
		resolved.interval = config.PollInterval.Duration
	}
	return resolved, nil
}

// resolveImages looks up everything that the user asks for, so that one message names all that is not offered.
func resolveImages(config *v1alpha1.ProviderConfigSpec, spec v1alpha1.VeleroSpec) (string, []Plugin, *Blocked) {
	var problems []problem
	image, offered := imageOf(config, v1alpha1.ServerImageName, spec.Version)
	if !offered {
		problems = append(problems, versionProblem(config, spec.Version))
	}
	asked := slices.Clone(spec.Plugins)
	slices.SortFunc(asked, func(a, b v1alpha1.Plugin) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	plugins := make([]Plugin, 0, len(asked))
	for _, plugin := range slices.Compact(asked) {
		image, offered := imageOf(config, plugin.Name, plugin.Version)
		if !offered || plugin.Name == v1alpha1.ServerImageName {
			problems = append(problems, pluginProblem(config, plugin))
			continue
		}
		plugins = append(plugins, Plugin{Name: plugin.Name, Version: plugin.Version, Image: image})
	}
	if problems = append(problems, samePlugin(config, plugins)...); len(problems) > 0 {
		return "", nil, blockedBy(problems)
	}
	return image, plugins, nil
}

// imageOf is the image reference of an offered version; its text comes from the ProviderConfig.
func imageOf(config *v1alpha1.ProviderConfigSpec, name, version string) (string, bool) {
	for _, available := range config.AvailableImages {
		if available.Name != name {
			continue
		}
		if offered, found := offeredAs(available.Versions, version); found {
			return imageReference(available.Image, offered), true
		}
	}
	return "", false
}

// offeredAs finds the version that a user asks for: itself, or else the only one that pins it to a digest. So a platform can pin what it
// offers, as it must when it mirrors images, and users go on asking for a plain version.
func offeredAs(versions []string, wanted string) (string, bool) {
	if slices.Contains(versions, wanted) {
		return wanted, true
	}
	var pinned []string
	for _, version := range versions {
		if tag, digest := splitVersion(version); tag == wanted && digest != "" {
			pinned = append(pinned, version)
		}
	}
	if len(pinned) != 1 {
		return "", false
	}
	return pinned[0], true
}

// imageReference joins a repository with a tag, a digest, or tag@digest.
func imageReference(repository, version string) string {
	if strings.HasPrefix(version, "sha256:") {
		return repository + "@" + version
	}
	return repository + ":" + version
}

// samePlugin finds plugins of which Velero would start only one: the same under two names, or in two versions. Velero ends with an error when
// two register under the same name.
func samePlugin(config *v1alpha1.ProviderConfigSpec, plugins []Plugin) []problem {
	var problems []problem
	first := map[string]Plugin{}
	for _, plugin := range plugins {
		repository := repositoryOf(config, plugin)
		if other, taken := first[repository]; taken {
			problems = append(problems, problem{v1alpha1.ReasonPluginNotOffered, fmt.Sprintf(
				"spec.plugins[%s] %s is the same plugin as spec.plugins[%s] %s; choose one of them", plugin.Name, quoted(plugin.Version), other.Name, quoted(other.Version))})
			continue
		}
		first[repository] = plugin
	}
	return problems
}

func repositoryOf(config *v1alpha1.ProviderConfigSpec, plugin Plugin) string {
	for _, available := range config.AvailableImages {
		if _, offered := offeredAs(available.Versions, plugin.Version); offered && available.Name == plugin.Name {
			return available.Image
		}
	}
	return ""
}

func versionProblem(config *v1alpha1.ProviderConfigSpec, version string) problem {
	return problem{v1alpha1.ReasonVersionNotOffered, fmt.Sprintf("spec.version %s is not offered; %s",
		quoted(version), offer(offeredVersions(config, v1alpha1.ServerImageName), "the platform offers no Velero version"))}
}

func pluginProblem(config *v1alpha1.ProviderConfigSpec, plugin v1alpha1.Plugin) problem {
	versions := offeredVersions(config, plugin.Name)
	if len(versions) > 0 && plugin.Name != v1alpha1.ServerImageName {
		return problem{v1alpha1.ReasonPluginVersionNotOffered, fmt.Sprintf("spec.plugins[%s].version %s is not offered; %s",
			plugin.Name, quoted(plugin.Version), offer(versions, ""))}
	}
	return problem{v1alpha1.ReasonPluginNotOffered, fmt.Sprintf("spec.plugins: there is no plugin %s; %s",
		quoted(plugin.Name), offer(offeredPlugins(config), "the platform offers no plugins"))}
}

func offeredVersions(config *v1alpha1.ProviderConfigSpec, name string) []string {
	var versions []string
	for _, available := range config.AvailableImages {
		if available.Name == name {
			versions = append(versions, available.Versions...)
		}
	}
	slices.Sort(versions)
	return slices.Compact(versions)
}

func offeredPlugins(config *v1alpha1.ProviderConfigSpec) []string {
	var names []string
	for _, available := range config.AvailableImages {
		if available.Name != v1alpha1.ServerImageName {
			names = append(names, available.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// maxListLength of what is offered, so that a message has room for the problem itself.
const maxListLength = 400

func offer(choices []string, none string) string {
	if len(choices) == 0 {
		return none
	}
	return "offered: " + shortened(strings.Join(choices, ", "), maxListLength)
}

const maxQuotedLength = 100

// quoted makes a user's value readable in a message, whatever is in it.
func quoted(value string) string { return fmt.Sprintf("%q", shortened(value, maxQuotedLength)) }
