package crds_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openmcp-project/service-provider-velero/api/crds"
	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

func all(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	list, err := crds.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range list {
		found[crd.Spec.Names.Kind] = crd
	}
	return found
}

// TestEachCRDHasItsCluster: init installs by these labels.
func TestEachCRDHasItsCluster(t *testing.T) {
	got := map[string]string{}
	for kind, crd := range all(t) {
		got[kind] = crd.Labels["openmcp.cloud/cluster"]
	}
	if diff := cmp.Diff(map[string]string{"Velero": "onboarding", "ProviderConfig": "platform"}, got); diff != "" {
		t.Errorf("clusters of the CRDs (-want +got):\n%s", diff)
	}
}

func TestNamesOfTheKinds(t *testing.T) {
	found := all(t)
	for kind, want := range map[string]apiextensionsv1.CustomResourceDefinitionNames{
		"Velero":         {Plural: "veleros", Singular: "velero", Kind: "Velero", ListKind: "VeleroList", ShortNames: []string{"vel"}, Categories: []string{"openmcp"}},
		"ProviderConfig": {Plural: "providerconfigs", Singular: "providerconfig", Kind: "ProviderConfig", ListKind: "ProviderConfigList", ShortNames: []string{"velpc"}, Categories: []string{"openmcp"}},
	} {
		if diff := cmp.Diff(want, found[kind].Spec.Names); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind, diff)
		}
	}
	if found["Velero"].Spec.Scope != apiextensionsv1.NamespaceScoped || found["ProviderConfig"].Spec.Scope != apiextensionsv1.ClusterScoped {
		t.Error("Velero must have a namespace, and ProviderConfig none")
	}
}

// TestColumns are what kubectl get shows.
func TestColumns(t *testing.T) {
	for kind, want := range map[string]string{
		"Velero": "Version Phase Reason Age Message(wide)", "ProviderConfig": "Ready Reason Veleros Age",
	} {
		var names []string
		for _, column := range all(t)[kind].Spec.Versions[0].AdditionalPrinterColumns {
			if column.Priority > 0 {
				column.Name += "(wide)"
			}
			names = append(names, column.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s shows %s, want %s", kind, got, want)
		}
	}
}

// TestStatusIsASubresource: otherwise writing a status would count as a change of the spec.
func TestStatusIsASubresource(t *testing.T) {
	for kind, crd := range all(t) {
		if len(crd.Spec.Versions) != 1 || crd.Spec.Versions[0].Subresources == nil || crd.Spec.Versions[0].Subresources.Status == nil {
			t.Errorf("%s has no status subresource, or not exactly one version", kind)
		}
	}
}

// TestEverythingIsBounded: without bounds on strings and lists the API server refuses rules as too expensive, and etcd large objects.
func TestEverythingIsBounded(t *testing.T) {
	for kind, crd := range all(t) {
		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		for _, path := range unbounded("spec", spec) {
			t.Errorf("%s: %s has no bound", kind, path)
		}
	}
}

func unbounded(path string, schema apiextensionsv1.JSONSchemaProps) []string {
	var paths []string
	switch {
	case schema.Type == "string" && schema.MaxLength == nil && len(schema.Enum) == 0, schema.Type == "array" && schema.MaxItems == nil:
		paths = append(paths, path)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		paths = append(paths, unbounded(path+"[]", *schema.Items.Schema)...)
	}
	for name, property := range schema.Properties {
		paths = append(paths, unbounded(path+"."+name, property)...)
	}
	return paths
}

// TestEachCallDecodesAnew: whoever changes what it gets changes nobody else's.
func TestEachCallDecodesAnew(t *testing.T) {
	all(t)["Velero"].Labels["openmcp.cloud/cluster"] = "changed"
	if got := all(t)["Velero"].Labels["openmcp.cloud/cluster"]; got != "onboarding" {
		t.Errorf("the label is %s", got)
	}
}

func TestKindsAreInTheScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for kind, crd := range all(t) {
		if crd.Spec.Group != v1alpha1.GroupVersion.Group || crd.Spec.Versions[0].Name != v1alpha1.GroupVersion.Version {
			t.Errorf("%s is in %s/%s", kind, crd.Spec.Group, crd.Spec.Versions[0].Name)
		}
		if !scheme.Recognizes(v1alpha1.GroupVersion.WithKind(kind)) {
			t.Errorf("the scheme does not know %s", kind)
		}
	}
}
