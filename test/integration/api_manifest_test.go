package integration

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

// The two manifests of openMCP's guide, as they are there.
const (
	guideVelero = `apiVersion: velero.services.openmcp.cloud/v1alpha1
kind: Velero
metadata:
  name: test-mcp
spec:
  version: "v1.17.1"
  plugins:
    - name: "aws"
      version: "v1.13.0"
`
	guideProviderConfig = `apiVersion: velero.services.openmcp.cloud/v1alpha1
kind: ProviderConfig
metadata:
  name: default
spec:
  pollInterval: 1m
  availableImages:
    - name: velero
      versions: ["v1.17.1"]
      image: "velero/velero"
    - name: aws
      versions: ["v1.13.0"]
      image: "velero/velero-plugin-for-aws"
  imagePullSecrets:
    - name: privateregcred
`
	// fullProviderConfig has every field but rollout.
	fullProviderConfig = `apiVersion: velero.services.openmcp.cloud/v1alpha1
kind: ProviderConfig
metadata: {name: default}
spec:
  pollInterval: 1m
  availableImages:
  - {name: velero, versions: ["v1.17.1"], image: velero/velero}
  - {name: aws, versions: ["v1.13.0"], image: velero/velero-plugin-for-aws}
  imagePullSecrets: [{name: privateregcred}]
  charts:
    repository: oci://ghcr.io/openmcp-project/charts
    version: 0.1.0
    digests:
      velero-control-plane: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
      velero-server: "sha256:fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
    pullSecret: {name: chartcred}
    verify: {provider: cosign, secretRef: {name: cosign-pub}}
    insecure: false
    proxySecretRef: {name: proxy}
  caBundleRef: {name: custom-ca, key: ca-bundle.crt}
  values: {server: {}, controlPlane: {}}
  fluxShard: ""
`
)

// created makes an object with strict validation, and removes it with the test.
func created(t *testing.T, cluster client.Client, text string) *unstructured.Unstructured {
	t.Helper()
	object := manifest(t, text)
	if object.GetKind() == "Velero" && object.GetNamespace() == "" {
		object.SetNamespace("default")
	}
	must(t, client.WithFieldValidation(cluster, metav1.FieldValidationStrict).Create(t.Context(), object))
	t.Cleanup(func() {
		must(t, client.IgnoreNotFound(cluster.Delete(context.WithoutCancel(t.Context()), object)))
	})
	return object
}

// TestManifestsApplyUnchanged: nothing of what a user wrote is dropped or changed.
func TestManifestsApplyUnchanged(t *testing.T) {
	tests := map[string]struct {
		cluster client.Client
		text    string
		// defaulted is what the API server adds to the spec.
		defaulted string
	}{
		"GuideVelero":         {onboarding, guideVelero, `{}`},
		"GuideProviderConfig": {platform, guideProviderConfig, `{}`},
		"FullProviderConfig":  {platform, fullProviderConfig, `{}`},
		"NoPollInterval":      {platform, header + "kind: ProviderConfig\nmetadata: {name: input}\nspec: " + offering("velero", "v1", "velero/velero"), `{"pollInterval": "10m"}`},
		"EmptyCharts":         {platform, header + "kind: ProviderConfig\nmetadata: {name: input}\nspec: " + with("pollInterval: 1m, charts: {}"), `{"charts": {"repository": "oci://ghcr.io/openmcp-project/charts"}}`},
		"EmptyRollout":        {platform, header + "kind: ProviderConfig\nmetadata: {name: input}\nspec: " + with("pollInterval: 1m, rollout: {}"), `{"rollout": {"maxConcurrent": 10}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			want := manifest(t, test.text).Object["spec"].(map[string]any)
			var added map[string]any
			must(t, json.Unmarshal([]byte(test.defaulted), &added))
			for key, value := range added {
				want[key] = value
			}
			object := manifest(t, test.text)
			if object.GetKind() == "Velero" {
				object.SetNamespace("default")
			}
			alone := object.DeepCopy()
			must(t, submit(t, test.cluster, object))
			schemas, err := offline()
			must(t, err)
			must(t, schemas.Admit(t.Context(), alone))
			if diff := cmp.Diff(asJSON(t, object.Object["spec"]), asJSON(t, alone.Object["spec"])); diff != "" {
				t.Errorf("offline the defaults are others (-API server +offline):\n%s", diff)
			}
			if diff := cmp.Diff(asJSON(t, want), asJSON(t, object.Object["spec"])); diff != "" {
				t.Errorf("spec (-written +stored):\n%s", diff)
			}
		})
	}
}

// asJSON makes numbers comparable.
func asJSON(t *testing.T, value any) any {
	t.Helper()
	content, err := json.Marshal(value)
	must(t, err)
	var plain any
	must(t, json.Unmarshal(content, &plain))
	return plain
}

// TestReservedNameCannotComeByAnEdit: updates are judged as creations are.
func TestReservedNameCannotComeByAnEdit(t *testing.T) {
	velero := created(t, onboarding, strings.Replace(guideVelero, "name: test-mcp", "name: edited", 1))
	err := onboarding.Patch(t.Context(), velero, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"plugins":[{"name":"velero","version":"v1"}]}}`)))
	if err == nil || !strings.Contains(err.Error(), "reserved") {
		t.Errorf("the edit ends with %v", err)
	}
}

// TestStatusHasItsOwnRights: who may edit a spec cannot write a status with it, nor the other way round.
func TestStatusHasItsOwnRights(t *testing.T) {
	velero := created(t, onboarding, strings.Replace(guideVelero, "name: test-mcp", "name: status", 1))
	merge(t, onboarding, velero, `{"status":{"phase":"Ready","observedGeneration":1}}`)
	if _, found, _ := unstructured.NestedMap(velero.Object, "status"); found {
		t.Error("an edit of the object wrote the status")
	}
	must(t, onboarding.Status().Patch(t.Context(), velero, client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"version":"v2"},"status":{"phase":"Ready","observedGeneration":1}}`))))
	if version, _, _ := unstructured.NestedString(velero.Object, "spec", "version"); version != "v1.17.1" {
		t.Errorf("a write of the status changed the version to %s", version)
	}
	if velero.GetGeneration() != 1 {
		t.Errorf("a write of the status counts as a change of the spec: generation %d", velero.GetGeneration())
	}
}

func TestColumns(t *testing.T) {
	status := `{"status":{"phase":"Failed","observedGeneration":1,"conditions":[{"type":"Ready","status":"False","reason":"VersionNotOffered",` +
		`"message":"spec.version is not offered","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	velero := created(t, onboarding, strings.Replace(guideVelero, "name: test-mcp", "name: columns", 1))
	must(t, onboarding.Status().Patch(t.Context(), velero, client.RawPatch("application/merge-patch+json", []byte(status))))
	got := row(t, world.Onboarding, "/apis/velero.services.openmcp.cloud/v1alpha1/namespaces/default/veleros/columns")
	want := map[string]any{"Name": "columns", "Version": "v1.17.1", "Phase": "Failed", "Reason": "VersionNotOffered", "Message": "spec.version is not offered"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kubectl get velero (-want +got):\n%s", diff)
	}
	config := created(t, platform, strings.Replace(guideProviderConfig, "name: default", "name: columns", 1))
	must(t, platform.Status().Patch(t.Context(), config, client.RawPatch("application/merge-patch+json", []byte(strings.Replace(status, `"phase":`, `"veleros":3,"phase":`, 1)))))
	got = row(t, world.Platform, "/apis/velero.services.openmcp.cloud/v1alpha1/providerconfigs/columns")
	want = map[string]any{"Name": "columns", "Ready": "False", "Reason": "VersionNotOffered", "Veleros": float64(3)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kubectl get providerconfig (-want +got):\n%s", diff)
	}
}

// row is what kubectl get prints for one object, without its age.
func row(t *testing.T, cluster landscape.Cluster, path string) map[string]any {
	t.Helper()
	config, err := cluster.RESTConfig()
	must(t, err)
	server, err := discovery.NewDiscoveryClientForConfig(config)
	must(t, err)
	content, err := server.RESTClient().Get().AbsPath(path).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	must(t, err)
	var table metav1.Table
	must(t, json.Unmarshal(content, &table))
	cells := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		if column.Name != "Age" {
			cells[column.Name] = table.Rows[0].Cells[i]
		}
	}
	return cells
}
