package property

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// change is one step of a path.
type change struct {
	name string
	// edit changes an input, given the one at the start. It must not depend on earlier steps: shrinking drops some of them.
	edit func(to, start *input)
	// rounds of reconciling that follow, before the next change; settled: as many as it takes.
	rounds int
	// restart: the operator is started anew before the change.
	restart bool
}

const settled = -1

func (c change) String() string {
	pace := fmt.Sprintf("%d rounds", c.rounds)
	if c.rounds == settled {
		pace = "settles"
	}
	if c.restart {
		pace += ", after a restart"
	}
	return c.name + " (" + pace + ")"
}

// field is something that can be set to one of several values, unset, and restored to what it was at the start.
type field struct {
	name string
	set  []func(*input)
	// unset is nil where a value is required.
	unset func(*input)
	// restore copies the field from the start.
	restore func(to, start *input)
}

const unpublished = "9.9.9"

// path is a random sequence of up to ten changes.
type path struct {
	// everything is set at the start, or only what must be.
	everything bool
	steps      []change
}

// newPath has changes of few fields, so that many come back to what was changed before.
func newPath(random *rand.Rand) path {
	all := fields()
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:1+random.IntN(6)]
	steps := make([]change, 1+random.IntN(10))
	for i := range steps {
		steps[i] = all[random.IntN(len(all))].change(random)
		steps[i].rounds = []int{0, 1, 2, settled}[random.IntN(4)]
		steps[i].restart = random.IntN(10) == 0
	}
	return path{everything: random.IntN(2) == 0, steps: steps}
}

func (f field) change(random *rand.Rand) change {
	switch choice := random.IntN(len(f.set) + 2); {
	case choice < len(f.set):
		return change{name: fmt.Sprintf("set %s to value %d", f.name, choice), edit: func(to, _ *input) { f.set[choice](to) }}
	case choice == len(f.set) && f.unset != nil:
		return change{name: "unset " + f.name, edit: func(to, _ *input) { f.unset(to) }}
	default:
		return change{name: "restore " + f.name, edit: f.restore}
	}
}

func fields() []field {
	all := []field{
		{"the ProviderConfig's name", values(func(i *input, v string) { i.ConfigName = v }, v1alpha1.DefaultProviderConfigName, providerName),
			func(i *input) { i.ConfigName = "" }, func(to, from *input) { to.ConfigName = from.ConfigName }},
		{"the granted token", values(func(i *input, v string) { i.Token = v }, "token-1", "token-2"), nil, func(to, from *input) { to.Token = from.Token }},
		{"availableImages", values(func(i *input, v []v1alpha1.AvailableImage) { i.Config.AvailableImages = v },
			offer("mirror.example/velero"), offer("velero/velero")[:2], withoutNewest()), nil,
			func(to, from *input) { to.Config.AvailableImages = from.Config.AvailableImages }},
		{"pollInterval", values(func(i *input, v time.Duration) { i.Config.PollInterval = &metav1.Duration{Duration: v} }, time.Minute, 90*time.Second, 10*time.Minute),
			func(i *input) { i.Config.PollInterval = nil }, func(to, from *input) { to.Config.PollInterval = from.Config.PollInterval }},
		{"imagePullSecrets", values(func(i *input, v []v1alpha1.SecretReference) { i.Config.ImagePullSecrets = v }, references(pullB), references(pullA, pullB), references(pullB, pullA)),
			func(i *input) { i.Config.ImagePullSecrets = nil }, func(to, from *input) { to.Config.ImagePullSecrets = from.Config.ImagePullSecrets }},
		{"caBundleRef", values(func(i *input, v string) {
			i.Config.CABundleRef = &v1alpha1.ConfigMapKeyReference{Name: customCA.Name, Key: v}
		}, "ca-bundle.crt", "other.crt"),
			func(i *input) { i.Config.CABundleRef = nil }, func(to, from *input) { to.Config.CABundleRef = from.Config.CABundleRef }},
		{"fluxShard", values(func(i *input, v string) { i.Config.FluxShard = v }, "shard1", "shard2"),
			func(i *input) { i.Config.FluxShard = "" }, func(to, from *input) { to.Config.FluxShard = from.Config.FluxShard }},
		{"rollout", values(func(i *input, v int32) { i.Config.Rollout = &v1alpha1.Rollout{MaxConcurrent: v} }, 1, 2),
			func(i *input) { i.Config.Rollout = nil }, func(to, from *input) { to.Config.Rollout = from.Config.Rollout }},
		{"values", values(func(i *input, v *v1alpha1.ChartValues) { i.Config.Values = v },
			&v1alpha1.ChartValues{Server: raw(`{"server":{"logLevel":"debug"},"podLabels":{"team":"a"}}`)},
			&v1alpha1.ChartValues{Server: raw(`{"proxy":{"http":"http://user:password@proxy"},"image":"evil.example/image:latest"}`), ControlPlane: raw(`{"placeholder":{"enabled":false}}`)},
			&v1alpha1.ChartValues{ControlPlane: raw(`{"image":"evil.example/image:latest"}`)},
			&v1alpha1.ChartValues{Server: raw(`{"podLabels":{"team":"{{ .Values.token }}"}}`)}),
			func(i *input) { i.Config.Values = nil }, func(to, from *input) { to.Config.Values = from.Config.Values }},
	}
	for number := range veleros {
		all = append(all, veleroFields(number)...)
	}
	return append(append(all, chartFields()...), objectFields()...)
}

func veleroFields(number int) []field {
	return []field{
		{fmt.Sprintf("spec.version of Velero %d", number), values(func(i *input, v string) { i.Veleros[number].Version = v }, "v1.17.1", "v1.18.3", "v1.18.3@"+imageDigest), nil,
			func(to, from *input) { to.Veleros[number].Version = from.Veleros[number].Version }},
		{fmt.Sprintf("spec.plugins of Velero %d", number), values(func(i *input, v []v1alpha1.Plugin) { i.Veleros[number].Plugins = v }, plugins("aws:v1.13.0"), plugins("gcp:v1.14.2"),
			plugins("aws:v1.13.0", "gcp:v1.14.2"), plugins("gcp:v1.14.2", "aws:"+imageDigest)),
			func(i *input) { i.Veleros[number].Plugins = nil }, func(to, from *input) { to.Veleros[number].Plugins = from.Veleros[number].Plugins }},
	}
}

func chartFields() []field {
	optional := func(name string, unset func(*input), set ...func(*input)) field {
		return field{name: "charts." + name, set: set, unset: unset, restore: func(to, from *input) { to.Config.Charts = from.copy().Config.Charts }}
	}
	return []field{
		optional("*", func(i *input) { i.Config.Charts = nil }, func(i *input) {
			i.Config.Charts = &v1alpha1.Charts{Repository: "oci://charts.example/a", Version: "0.1.1", PullSecret: &references(chartcrd)[0]}
		}),
		optional("repository", func(i *input) { i.charts().Repository = "" },
			values(func(i *input, v string) { i.charts().Repository = v }, plan.ChartRepository, "oci://charts.example:5000/team")...),
		optional("version", func(i *input) { i.charts().Version = "" },
			values(func(i *input, v string) { i.charts().Version = v }, "0.1.0", "0.1.1", unpublished)...),
		optional("digests", func(i *input) { i.charts().Digests = nil },
			values(func(i *input, v string) {
				i.charts().Digests = &v1alpha1.ChartDigests{ControlPlane: chartDigest(plan.ControlPlaneRelease, v), Server: chartDigest(plan.ServerRelease, v)}
			}, "0.1.0", "0.1.1", unpublished)...),
		optional("pullSecret", func(i *input) { i.charts().PullSecret = nil },
			values(func(i *input, v plan.Reference) { i.charts().PullSecret = &references(v)[0] }, chartcrd, pullB)...),
		optional("verify", func(i *input) { i.charts().Verify = nil }, func(i *input) {
			i.charts().Verify = &v1alpha1.ChartVerification{Provider: "cosign", SecretRef: references(cosign)[0]}
		}),
		optional("proxySecretRef", func(i *input) { i.charts().ProxySecretRef = nil }, func(i *input) { i.charts().ProxySecretRef = &references(proxy)[0] }),
		optional("insecure", func(i *input) { i.charts().Insecure = false }, func(i *input) { i.charts().Insecure = true }),
	}
}

// objectFields are the Secrets and the ConfigMap: created or rotated, made unusable, deleted, and made again as they were.
func objectFields() []field {
	var all []field
	for reference, contents := range map[plan.Reference]func(int) content{
		pullA: dockerConfig, pullB: dockerCfg, chartcrd: dockerConfig, cosign: publicKey, proxy: proxyAddress, customCA: certificates,
	} {
		all = append(all, field{
			name: fmt.Sprintf("%s %s", reference.Kind, reference.Name),
			set: values(func(i *input, v content) { i.Objects[reference] = v },
				contents(1), contents(2), content{Type: contents(0).Type}),
			unset:   func(i *input) { delete(i.Objects, reference) },
			restore: func(to, from *input) { to.Objects[reference] = from.Objects[reference] },
		})
	}
	return sorted(all)
}

func values[T any](set func(*input, T), all ...T) []func(*input) {
	var edits []func(*input)
	for _, value := range all {
		edits = append(edits, func(i *input) { set(i, value) })
	}
	return edits
}

func plugins(all ...string) []v1alpha1.Plugin {
	var plugins []v1alpha1.Plugin
	for _, one := range all {
		name, version, _ := strings.Cut(one, ":")
		plugins = append(plugins, v1alpha1.Plugin{Name: name, Version: version})
	}
	return plugins
}

// withoutNewest withdraws versions that may be in use.
func withoutNewest() []v1alpha1.AvailableImage {
	images := offer("velero/velero")
	images[0].Versions = images[0].Versions[:1]
	return images
}

func raw(text string) *apiextensionsv1.JSON { return &apiextensionsv1.JSON{Raw: []byte(text)} }

// sorted makes an order that is the same in every run.
func sorted(all []field) []field {
	slices.SortFunc(all, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return all
}
