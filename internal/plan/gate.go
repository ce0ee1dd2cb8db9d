package plan

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Change says in the user's words what is to be changed about the server that runs with these values.
func (p *Plan) Change(server *apiextensionsv1.JSON) string {
	current, known := chosenIn(server)
	switch {
	case known && !isVersion(current.Image, p.Version):
		return "version " + p.Version + " is installed"
	case known && !slices.EqualFunc(current.Plugins, p.Plugins, func(is, asked Plugin) bool {
		return is.Name == asked.Name && isVersion(is.Image, asked.Version)
	}):
		return "the change of the plugins is made"
	default:
		return "a change by the platform operator is made"
	}
}

// PluginNames are the names of the plugins by their images.
func (p *Plan) PluginNames() map[string]string {
	names := make(map[string]string, len(p.Plugins))
	for _, plugin := range p.Plugins {
		names[plugin.Image] = plugin.Name
	}
	return names
}
