package integration

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func configOf(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	return manifest(t, header+"kind: ProviderConfig\nmetadata: {name: input}\nspec: "+spec+"\n")
}

// offering is a spec that offers one version of an image.
func offering(name, version, image string) string {
	return fmt.Sprintf("{availableImages: [{name: %q, versions: [%q], image: %q}]}", name, version, image)
}

// with is a spec that is right apart from one more field.
func with(field string) string {
	return `{availableImages: [{name: velero, versions: [v1.17.1], image: velero/velero}], ` + field + `}`
}

func TestOfferIsRefused(t *testing.T) {
	const image = "spec.availableImages[0].image"
	const versions = "spec.availableImages[0].versions"
	tests := map[string]refused{
		"NoImages":                {`{}`, []string{"spec.availableImages", "Required"}},
		"EmptyImages":             {`{availableImages: []}`, []string{"spec.availableImages"}},
		"SameNameTwice":           {`{availableImages: [{name: aws, versions: [v1], image: a}, {name: aws, versions: [v2], image: b}]}`, []string{"spec.availableImages[1]", "aws", "Duplicate"}},
		"NoVersions":              {`{availableImages: [{name: velero, versions: [], image: velero/velero}]}`, []string{versions}},
		"VersionsMissing":         {`{availableImages: [{name: velero, image: velero/velero}]}`, []string{versions, "Required"}},
		"SameVersionTwice":        {`{availableImages: [{name: velero, versions: [v1, v1], image: velero/velero}]}`, []string{versions + "[1]", "v1", "Duplicate"}},
		"SecondVersionIsBad":      {`{availableImages: [{name: velero, versions: [v1, "v1 beta"], image: velero/velero}]}`, []string{versions, "v1 beta"}},
		"VersionWithPlus":         {offering("velero", "v1.18.3+vmware.1", "velero/velero"), []string{versions, "v1.18.3+vmware.1"}},
		"VersionIsATemplate":      {offering("velero", "{{v}}", "velero/velero"), []string{versions, "{{v}}"}},
		"VersionDigestTooShort":   {offering("velero", shortDigest, "velero/velero"), []string{versions, shortDigest}},
		"VersionTooLong":          {offering("velero", strings.Repeat("v", 201), "velero/velero"), []string{versions, "200"}},
		"VersionEmpty":            {offering("velero", "", "velero/velero"), []string{versions}},
		"ImageTagged":             {offering("velero", "v1", "velero/velero:v1.17.2"), []string{image, "velero/velero:v1.17.2"}},
		"ImageDigested":           {offering("velero", "v1", "velero/velero@"+digest), []string{image, digest}},
		"ImageTaggedBehindAPort":  {offering("velero", "v1", "localhost:5000/velero:v1"), []string{image, "localhost:5000/velero:v1"}},
		"ImageWithSlashAtTheEnd":  {offering("velero", "v1", "velero/velero/"), []string{image, "velero/velero/"}},
		"ImageOfOCI":              {offering("velero", "v1", "oci://velero/velero"), []string{image, "oci://velero/velero"}},
		"ImageOfHTTPS":            {offering("velero", "v1", "https://reg.io/velero"), []string{image, "https://reg.io/velero"}},
		"ImageInCapitals":         {offering("velero", "v1", "reg.io/Team/velero"), []string{image, "reg.io/Team/velero"}},
		"ImageWithBlank":          {offering("velero", "v1", "velero/velero "), []string{image, "velero/velero "}},
		"ImageIsATemplate":        {offering("velero", "v1", "{{ .Values.x }}"), []string{image, "{{ .Values.x }}"}},
		"ImageEmpty":              {offering("velero", "v1", ""), []string{image}},
		"ImageTooLong":            {offering("velero", "v1", strings.Repeat("a", 256)), []string{image, "255"}},
		"ImageWithTwoSlashes":     {offering("velero", "v1", "reg.io//velero"), []string{image, "reg.io//velero"}},
		"ImageWithCredentials":    {offering("velero", "v1", "me:pw@reg.io/velero"), []string{image}},
		"NameInCapitals":          {offering("AWS", "v1", "velero/aws"), []string{"spec.availableImages[0].name", "AWS"}},
		"NameIsATemplate":         {offering("{{aws}}", "v1", "velero/aws"), []string{"spec.availableImages[0].name", "{{aws}}"}},
		"NameTooLong":             {offering(strings.Repeat("p", 64), "v1", "velero/aws"), []string{"spec.availableImages[0].name", "63"}},
		"UnknownFieldOfAnImage":   {`{availableImages: [{name: velero, versions: [v1], image: velero/velero, tag: v1}]}`, []string{"spec.availableImages[0].tag", "unknown field"}},
		"ImagesAsAMap":            {`{availableImages: {velero: {versions: [v1]}}}`, []string{"spec.availableImages", "velero"}},
		"PullSecretTwice":         {with(`imagePullSecrets: [{name: a}, {name: a}]`), []string{"spec.imagePullSecrets[1]", "Duplicate"}},
		"PullSecretIsNoName":      {with(`imagePullSecrets: [{name: "A_b"}]`), []string{"spec.imagePullSecrets[0].name", "A_b"}},
		"PullSecretIsAString":     {with(`imagePullSecrets: [a]`), []string{"spec.imagePullSecrets[0]", "object"}},
		"PullSecretWithNamespace": {with(`imagePullSecrets: [{name: a, namespace: other}]`), []string{"spec.imagePullSecrets[0].namespace", "unknown field"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.check(t, platform, configOf(t, test.spec)) })
	}
}

func TestSettingsAreRefused(t *testing.T) {
	tests := map[string]refused{
		"PollIntervalTooShort":   {with(`pollInterval: 1s`), []string{"spec.pollInterval", "10s"}},
		"PollIntervalZero":       {with(`pollInterval: 0s`), []string{"spec.pollInterval", "10s"}},
		"PollIntervalNegative":   {with(`pollInterval: -1m`), []string{"spec.pollInterval", "duration"}},
		"PollIntervalIsNoTime":   {with(`pollInterval: often`), []string{"spec.pollInterval", "duration"}},
		"PollIntervalIsANumber":  {with(`pollInterval: 60`), []string{"spec.pollInterval", "string"}},
		"PollIntervalInDays":     {with(`pollInterval: 1d`), []string{"spec.pollInterval", "duration"}},
		"PollIntervalEmpty":      {with(`pollInterval: ""`), []string{"spec.pollInterval", "duration"}},
		"PollIntervalOverflows":  {with(`pollInterval: 99999999999999999999h`), []string{"spec.pollInterval"}},
		"RepositoryOfHTTPS":      {with(`charts: {repository: "https://reg.io/charts"}`), []string{"spec.charts.repository", "https://reg.io/charts"}},
		"RepositoryWithoutOCI":   {with(`charts: {repository: "reg.io/charts"}`), []string{"spec.charts.repository", "reg.io/charts"}},
		"RepositorySlashAtEnd":   {with(`charts: {repository: "oci://reg.io/charts/"}`), []string{"spec.charts.repository", "oci://reg.io/charts/"}},
		"RepositoryTagged":       {with(`charts: {repository: "oci://reg.io/charts:1.0"}`), []string{"spec.charts.repository", "oci://reg.io/charts:1.0"}},
		"RepositoryWithUser":     {with(`charts: {repository: "oci://me:pw@reg.io/charts"}`), []string{"spec.charts.repository"}},
		"RepositoryInCapitals":   {with(`charts: {repository: "OCI://reg.io/charts"}`), []string{"spec.charts.repository", "OCI://reg.io/charts"}},
		"RepositoryWithoutHost":  {with(`charts: {repository: "oci://"}`), []string{"spec.charts.repository", "oci://"}},
		"RepositoryIsATemplate":  {with(`charts: {repository: "oci://{{reg}}/charts"}`), []string{"spec.charts.repository", "{{reg}}"}},
		"ChartRange":             {with(`charts: {version: ">=0.1.0"}`), []string{"spec.charts.version", ">=0.1.0"}},
		"ChartCaret":             {with(`charts: {version: "^0.1.0"}`), []string{"spec.charts.version", "^0.1.0"}},
		"ChartLatest":            {with(`charts: {version: latest}`), []string{"spec.charts.version", "latest"}},
		"ChartHalfAVersion":      {with(`charts: {version: "0.1"}`), []string{"spec.charts.version", "0.1"}},
		"DigestTooShort":         {with(`charts: {digests: {velero-server: "` + shortDigest + `"}}`), []string{"spec.charts.digests.velero-server", shortDigest}},
		"DigestWithoutAlgorithm": {with(`charts: {digests: {velero-control-plane: "` + digest[7:] + `"}}`), []string{"spec.charts.digests.velero-control-plane", digest[7:]}},
		"DigestOfAnotherChart":   {with(`charts: {digests: {velero: "` + digest + `"}}`), []string{"spec.charts.digests.velero", "unknown field"}},
		"VerifyByNotation":       {with(`charts: {verify: {provider: notation, secretRef: {name: a}}}`), []string{"spec.charts.verify.provider", "notation", "cosign"}},
		"VerifyWithoutKeys":      {with(`charts: {verify: {provider: cosign}}`), []string{"spec.charts.verify.secretRef", "Required"}},
		"CABundleWithoutKey":     {with(`caBundleRef: {name: custom-ca}`), []string{"spec.caBundleRef.key", "Required"}},
		"CABundleKeyIsAPath":     {with(`caBundleRef: {name: custom-ca, key: ../ca.crt}`), []string{"spec.caBundleRef.key", "../ca.crt"}},
		"ValuesAsAString":        {with(`values: {server: "a: b"}`), []string{"spec.values.server", "string", "object"}},
		"ValuesAsAList":          {with(`values: {controlPlane: [a]}`), []string{"spec.values.controlPlane", "array", "object"}},
		"ValuesOfAnotherChart":   {with(`values: {velero: {}}`), []string{"spec.values.velero", "unknown field"}},
		"ShardIsNoLabel":         {with(`fluxShard: "a b"`), []string{"spec.fluxShard", "a b"}},
		"RolloutOfNone":          {with(`rollout: {maxConcurrent: 0}`), []string{"spec.rollout.maxConcurrent", "0"}},
		"RolloutOfTooMany":       {with(`rollout: {maxConcurrent: 1001}`), []string{"spec.rollout.maxConcurrent", "1001"}},
		"UnknownField":           {with(`pollIntervall: 1m`), []string{"spec.pollIntervall", "unknown field"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test.check(t, platform, configOf(t, test.spec)) })
	}
}

func TestProviderConfigIsAccepted(t *testing.T) {
	tests := map[string]string{
		"DockerHub":        offering("velero", "v1", "docker.io/velero/velero"),
		"Port":             offering("velero", "v1", "localhost:5000/velero"),
		"AddressAndPort":   offering("aws", "v1", "10.20.20.150:6690/velero/velero-plugin-for-aws"),
		"IPv6":             offering("velero", "v1", "[fd00::1]:5000/x"),
		"Deep":             offering("velero", "v1", "harbor.internal/proxy/docker.io/velero/velero"),
		"Separators":       offering("velero", "v1", "reg.io/team_x/a.b/c__d/e---f"),
		"OneWord":          offering("velero", "v1", "velero"),
		"HostInCapitals":   offering("velero", "v1", "Reg.Internal/velero"),
		"PluginOfAVendor":  offering("velero.io/aws", digest, "velero/aws"),
		"VersionsAlike":    `{availableImages: [{name: velero, versions: [v1.18.3, 1.18.3], image: velero/velero}]}`,
		"NoServer":         offering("aws", "v1", "velero/aws"),
		"ShortestInterval": with(`pollInterval: 10s`),
		"LongInterval":     with(`pollInterval: 1h30m`),
		"RepositoryPort":   with(`charts: {repository: "oci://localhost:5000/charts"}`),
		"RepositoryIPv6":   with(`charts: {repository: "oci://[fd00::1]:5000/charts"}`),
		"RepositoryHost":   with(`charts: {repository: "oci://reg.io"}`),
		"ChartPreRelease":  with(`charts: {version: 1.0.0-rc.1+build.5}`),
		"EmptyShard":       with(`fluxShard: ""`),
		"Values":           with(`values: {server: {resources: {limits: {cpu: "1"}}, anything: [1, {}]}, controlPlane: {}}`),
	}
	for name, spec := range tests {
		t.Run(name, func(t *testing.T) {
			if err := submit(t, platform, configOf(t, spec)); err != nil {
				t.Error(err)
			}
		})
	}
}
