// Package crds holds the generated CustomResourceDefinitions of this provider's API. The label openmcp.cloud/cluster on each says on which
// cluster it belongs.
package crds

import (
	"embed"

	"github.com/openmcp-project/controller-utils/pkg/crds"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

//go:embed manifests/*.yaml
var manifests embed.FS

// CRDs returns every CustomResourceDefinition of this provider, freshly decoded.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return crds.CRDsFromFileSystem(manifests, "manifests")
}
