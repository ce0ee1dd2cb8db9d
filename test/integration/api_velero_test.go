package integration

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/openmcp-project/service-provider-velero/internal/admission"
)

const header = "apiVersion: velero.services.openmcp.cloud/v1alpha1\n"

// manifest reads one object.
func manifest(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(text), &object.Object); err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return object
}

func veleroOf(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	return manifest(t, header+"kind: Velero\nmetadata: {name: input, namespace: default}\nspec: "+spec+"\n")
}

// submit has the API server validate an object as kubectl create --validate=strict --dry-run=server does.
func submit(t *testing.T, cluster client.Client, object client.Object) error {
	t.Helper()
	return client.WithFieldValidation(cluster, metav1.FieldValidationStrict).Create(t.Context(), object, client.DryRunAll)
}

// refused is an input that the API server must refuse with a message that has all of names.
type refused struct {
	spec  string
	names []string
}

func (r refused) check(t *testing.T, cluster client.Client, object client.Object) {
	t.Helper()
	err := submit(t, cluster, object)
	if err == nil {
		t.Fatalf("%s is accepted", r.spec)
	}
	if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		t.Fatalf("it is refused for another reason: %v", err)
	}
	sameOffline(t, object.(*unstructured.Unstructured), err)
	for _, name := range r.names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("the message does not name %q: %v", name, err)
		}
	}
}

// offline are the schemas that the program carries.
var offline = sync.OnceValues(admission.New)

// sameOffline has the program refuse an object on its own. It says what the API server says.
func sameOffline(t *testing.T, object *unstructured.Unstructured, refusal error) {
	t.Helper()
	schemas, err := offline()
	must(t, err)
	// As the program decodes it, with integers.
	content, err := object.MarshalJSON()
	must(t, err)
	alone := &unstructured.Unstructured{}
	must(t, alone.UnmarshalJSON(content))
	err = schemas.Admit(t.Context(), alone)
	if err == nil {
		t.Fatalf("offline it is accepted, but the API server says: %v", refusal)
	}
	if diff := cmp.Diff(refusal.Error(), err.Error()); diff != "" {
		t.Errorf("offline the message is another (-API server +offline):\n%s", diff)
	}
}

const (
	digest      = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	shortDigest = "sha256:0123456789abcdef"
)

func TestVeleroIsRefused(t *testing.T) {
	long := strings.Repeat("v", 129)
	tests := map[string]refused{
		"VersionMissing":          {`{}`, []string{"spec.version", "Required"}},
		"VersionEmpty":            {`{version: ""}`, []string{"spec.version"}},
		"VersionIsANumber":        {`{version: 1.17}`, []string{"spec.version", "number", "string"}},
		"VersionWithBlanks":       {`{version: " v1.18.3 "}`, []string{"spec.version", " v1.18.3 "}},
		"VersionWithPlus":         {`{version: v1.18.3+vmware.1}`, []string{"spec.version", "v1.18.3+vmware.1"}},
		"VersionTooLong":          {`{version: ` + long + `}`, []string{"spec.version", long[:64]}},
		"VersionFarTooLong":       {`{version: ` + strings.Repeat("v", 201) + `}`, []string{"spec.version", "200"}},
		"VersionIsATemplate":      {`{version: "{{ .Values.image }}"}`, []string{"spec.version", "{{ .Values.image }}"}},
		"VersionIsAnImage":        {`{version: "velero/velero:v1.17.1"}`, []string{"spec.version", "velero/velero:v1.17.1"}},
		"VersionBeginsWithAColon": {`{version: ":v1.17.1"}`, []string{"spec.version", ":v1.17.1"}},
		"VersionEndsALine":        {`{version: "v1.17.1\n"}`, []string{"spec.version"}},
		"VersionIsNotASCII":       {`{version: "v1.17.１"}`, []string{"spec.version", "v1.17.１"}},
		"VersionDigestTooShort":   {`{version: "` + shortDigest + `"}`, []string{"spec.version", shortDigest}},
		"VersionDigestInCapitals": {`{version: "` + strings.ToUpper(digest) + `"}`, []string{"spec.version", strings.ToUpper(digest)}},
		"VersionDigestOfSHA512":   {`{version: "sha512:` + strings.Repeat("a", 128) + `"}`, []string{"spec.version", "sha512:"}},
		"VersionWithBadDigest":    {`{version: "v1.17.1@` + shortDigest + `"}`, []string{"spec.version", "v1.17.1@" + shortDigest}},
		"PluginReserved":          {`{version: v1, plugins: [{name: velero, version: v1}]}`, []string{"spec.plugins[0].name", "velero", "reserved", "spec.version"}},
		"PluginTwice":             {`{version: v1, plugins: [{name: aws, version: v1}, {name: aws, version: v1}]}`, []string{"spec.plugins[1]", "aws", "Duplicate"}},
		"PluginInTwoVersions":     {`{version: v1, plugins: [{name: aws, version: v1}, {name: aws, version: v2}]}`, []string{"spec.plugins[1]", "aws", "Duplicate"}},
		"PluginInCapitals":        {`{version: v1, plugins: [{name: AWS, version: v1}]}`, []string{"spec.plugins[0].name", "AWS"}},
		"PluginTooLong":           {`{version: v1, plugins: [{name: ` + strings.Repeat("p", 64) + `, version: v1}]}`, []string{"spec.plugins[0].name", "63"}},
		"PluginNotASCII":          {`{version: v1, plugins: [{name: "äws", version: v1}]}`, []string{"spec.plugins[0].name", "äws"}},
		"PluginEmpty":             {`{version: v1, plugins: [{name: "", version: v1}]}`, []string{"spec.plugins[0].name"}},
		"PluginWithoutName":       {`{version: v1, plugins: [{version: v1}]}`, []string{"spec.plugins[0].name", "Required"}},
		"PluginWithoutVersion":    {`{version: v1, plugins: [{name: aws}]}`, []string{"spec.plugins[0].version", "Required"}},
		"PluginIsATemplate":       {`{version: v1, plugins: [{name: "{{aws}}", version: v1}]}`, []string{"spec.plugins[0].name", "{{aws}}"}},
		"PluginVersionTemplate":   {`{version: v1, plugins: [{name: aws, version: "{{v}}"}]}`, []string{"spec.plugins[0].version", "{{v}}"}},
		"PluginIsAnImage":         {`{version: v1, plugins: [{name: "velero/aws:v1", version: v1}]}`, []string{"spec.plugins[0].name", "velero/aws:v1"}},
		"PluginIsAString":         {`{version: v1, plugins: [aws]}`, []string{"spec.plugins[0]", "string", "object"}},
		"PluginsAreTooMany":       {`{version: v1, plugins: [` + plugins(33) + `]}`, []string{"spec.plugins", "32"}},
		"UnknownField":            {`{version: v1, plugin: []}`, []string{"spec.plugin", "unknown field"}},
		"UnknownFieldOfAPlugin":   {`{version: v1, plugins: [{name: aws, version: v1, image: "evil/image"}]}`, []string{"spec.plugins[0].image", "unknown field"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.check(t, onboarding, veleroOf(t, test.spec)) })
	}
}

// plugins is a list of so many different plugins.
func plugins(count int) string {
	list := make([]string, 0, count)
	for i := range count {
		list = append(list, "{name: p"+strings.Repeat("x", i)+", version: v1}")
	}
	return strings.Join(list, ", ")
}

func TestVeleroIsAccepted(t *testing.T) {
	tests := map[string]string{
		"Guide":              `{version: "v1.17.1", plugins: [{name: "aws", version: "v1.13.0"}]}`,
		"NoPlugins":          `{version: v1.17.1}`,
		"EmptyPlugins":       `{version: v1.17.1, plugins: []}`,
		"WithoutV":           `{version: 1.18.3}`,
		"PreRelease":         `{version: v1.18.3-rc.1}`,
		"Vendor":             `{version: v1.18.3_vmware.1}`,
		"Latest":             `{version: latest}`,
		"Digest":             `{version: "` + digest + `"}`,
		"TagAndDigest":       `{version: "v1.18.3@` + digest + `"}`,
		"LongestTag":         `{version: ` + strings.Repeat("v", 128) + `}`,
		"PluginOfAVendor":    `{version: v1, plugins: [{name: velero.io/aws, version: v1}]}`,
		"PluginUnderscore":   `{version: v1, plugins: [{name: my_plugin, version: v1}]}`,
		"PluginOfOneLetter":  `{version: v1, plugins: [{name: a, version: v1}]}`,
		"PluginLikeReserved": `{version: v1, plugins: [{name: velero-plugin, version: v1}]}`,
		"ManyPlugins":        `{version: v1, plugins: [` + plugins(32) + `]}`,
	}
	for name, spec := range tests {
		t.Run(name, func(t *testing.T) {
			if err := submit(t, onboarding, veleroOf(t, spec)); err != nil {
				t.Error(err)
			}
		})
	}
}
