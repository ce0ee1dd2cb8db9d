package plan

import (
	"encoding/json"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// chosen are the values of a release that follow from what a user chose.
type chosen struct {
	Image   string   `json:"image"`
	Plugins []Plugin `json:"plugins"`
}

// HasChoice says whether the releases with these values have what the user chose: the versions of the server and of the plugins. From where
// the platform takes their images, and whether it pins them, is not the user's choice.
func (p *Plan) HasChoice(controlPlane, server *apiextensionsv1.JSON) bool {
	crds, known := chosenIn(controlPlane)
	if !known || !isVersion(crds.Image, p.Version) {
		return false
	}
	current, known := chosenIn(server)
	if !known || !isVersion(current.Image, p.Version) || len(current.Plugins) != len(p.Plugins) {
		return false
	}
	for i, plugin := range p.Plugins {
		if current.Plugins[i].Name != plugin.Name || !isVersion(current.Plugins[i].Image, plugin.Version) {
			return false
		}
	}
	return true
}

func chosenIn(values *apiextensionsv1.JSON) (chosen, bool) {
	var found chosen
	if values == nil {
		return found, false
	}
	return found, json.Unmarshal(values.Raw, &found) == nil
}

// isVersion says whether an image is of the version that was asked for, which may be without the digest that it is pinned to.
func isVersion(image, asked string) bool {
	name := image[strings.LastIndex(image, "/")+1:]
	separator := strings.IndexAny(name, ":@")
	if separator < 0 {
		return false
	}
	version := name[separator+1:]
	tag, _ := splitVersion(version)
	return version == asked || tag == asked
}
