package fluxgen_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/openmcp-project/service-provider-velero/fluxgen"
	"github.com/openmcp-project/service-provider-velero/test/fluxschema"
)

func schemaOf(t testing.TB, crd, version string) fluxschema.Schema {
	t.Helper()
	schema, err := fluxschema.Load(filepath.Join("..", "test", "tools", "flux"), crd, version)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestObjectsAreWhatFluxAccepts(t *testing.T) {
	sources, releases := schemaOf(t, fluxschema.OCIRepository, "v1"), schemaOf(t, fluxschema.HelmRelease, "v2")
	for name, release := range cases() {
		t.Run(name, func(t *testing.T) {
			source, helmRelease, err := fluxgen.Render(release)
			if err != nil {
				t.Fatal(err)
			}
			ofSource, err := sources.Violations(source)
			if err != nil {
				t.Fatal(err)
			}
			ofRelease, err := releases.Violations(helmRelease)
			if err != nil {
				t.Fatal(err)
			}
			if found := slices.Concat(ofSource, ofRelease); len(found) > 0 {
				t.Error(strings.Join(found, "\n"))
			}
		})
	}
}
