package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

func plugins(pairs ...string) []v1alpha1.Plugin {
	var all []v1alpha1.Plugin
	for pair := range slices.Chunk(pairs, 2) {
		all = append(all, v1alpha1.Plugin{Name: pair[0], Version: pair[1]})
	}
	return all
}

func serverValues(r *plan.Request, json string) {
	r.Config.Values = &v1alpha1.ChartValues{Server: &apiextensionsv1.JSON{Raw: []byte(json)}}
}

func TestBadInputIsNamedWithWhatIsOffered(t *testing.T) {
	for name, test := range map[string]struct {
		change          func(*plan.Request)
		reason, message string
	}{
		"no ProviderConfig": {func(r *plan.Request) { r.Config = nil },
			v1alpha1.ReasonProviderConfigNotFound, `the platform does not offer Velero yet: it has no ProviderConfig`},
		"another version": {func(r *plan.Request) { r.Spec.Version = "v9.9.9" },
			v1alpha1.ReasonVersionNotOffered, `spec.version "v9.9.9" is not offered; offered: v1.17.1, v1.18.3@sha256:0000000000000000000000000000000000000000000000000000000000000001`},
		"no Velero image": {func(r *plan.Request) { r.Config.AvailableImages = r.Config.AvailableImages[1:] },
			v1alpha1.ReasonVersionNotOffered, `spec.version "v1.17.1" is not offered; the platform offers no Velero version`},
		"nothing offered at all": {func(r *plan.Request) { r.Config.AvailableImages = nil },
			v1alpha1.ReasonVersionNotOffered, `spec.version "v1.17.1" is not offered; the platform offers no Velero version; spec.plugins: there is no plugin "aws"; the platform offers no plugins`},
		"an unknown plugin": {func(r *plan.Request) { r.Spec.Plugins = plugins("azure", "v1.13.0") },
			v1alpha1.ReasonPluginNotOffered, `spec.plugins: there is no plugin "azure"; offered: aws, velero.io/gcp`},
		"the server as a plugin": {func(r *plan.Request) { r.Spec.Plugins = plugins("velero", "v1.17.1") },
			v1alpha1.ReasonPluginNotOffered, `spec.plugins: there is no plugin "velero"; offered: aws, velero.io/gcp`},
		"another plugin version": {func(r *plan.Request) { r.Spec.Plugins = plugins("velero.io/gcp", "v9") },
			v1alpha1.ReasonPluginVersionNotOffered, `spec.plugins[velero.io/gcp].version "v9" is not offered; offered: v1.14.0`},
		"everything at once": {func(r *plan.Request) {
			r.Spec.Version, r.Spec.Plugins = "v9", plugins("velero.io/gcp", "v9", "azure", "v1")
		},
			v1alpha1.ReasonVersionNotOffered, `spec.version "v9" is not offered; offered: v1.17.1, v1.18.3@sha256:0000000000000000000000000000000000000000000000000000000000000001; ` +
				`spec.plugins: there is no plugin "azure"; offered: aws, velero.io/gcp; spec.plugins[velero.io/gcp].version "v9" is not offered; offered: v1.14.0`},
		"a plugin in two versions": {func(r *plan.Request) {
			r.Spec.Plugins = plugins("aws", "v1.13.0", "aws", "sha256:0000000000000000000000000000000000000000000000000000000000000002")
		},
			v1alpha1.ReasonPluginNotOffered, `spec.plugins[aws] "v1.13.0" is the same plugin as spec.plugins[aws] "sha256:0000000000000000000000000000000000000000000000000000000000000002"; choose one of them`},
		"a plugin under two names": {func(r *plan.Request) {
			r.Config.AvailableImages = append(r.Config.AvailableImages, v1alpha1.AvailableImage{Name: "s3", Versions: []string{"v1"}, Image: r.Config.AvailableImages[1].Image})
			r.Spec.Plugins = plugins("s3", "v1", "aws", "v1.13.0")
		},
			v1alpha1.ReasonPluginNotOffered, `spec.plugins[s3] "v1" is the same plugin as spec.plugins[aws] "v1.13.0"; choose one of them`},
		"a missing pull secret": {func(r *plan.Request) { delete(r.Sources, plan.Reference{Kind: plan.Secret, Name: "privateregcred"}) },
			v1alpha1.ReasonSecretNotFound, `Secret "privateregcred", which the ProviderConfig names in spec.imagePullSecrets, does not exist`},
		"a missing chart secret": {func(r *plan.Request) { delete(r.Sources, plan.Reference{Kind: plan.Secret, Name: "chartcred"}) },
			v1alpha1.ReasonSecretNotFound, `Secret "chartcred", which the ProviderConfig names in spec.charts.pullSecret, does not exist`},
		"a missing CA bundle": {func(r *plan.Request) { delete(r.Sources, plan.Reference{Kind: plan.ConfigMap, Name: "custom-ca"}) },
			v1alpha1.ReasonConfigMapNotFound, `ConfigMap "custom-ca", which the ProviderConfig names in spec.caBundleRef, does not exist`},
		"two are missing": {func(r *plan.Request) {
			delete(r.Sources, plan.Reference{Kind: plan.Secret, Name: "proxy"})
			delete(r.Sources, plan.Reference{Kind: plan.Secret, Name: "cosign-pub"})
		},
			v1alpha1.ReasonSecretNotFound, `Secret "cosign-pub", which the ProviderConfig names in spec.charts.verify.secretRef, does not exist; ` +
				`Secret "proxy", which the ProviderConfig names in spec.charts.proxySecretRef, does not exist`},
		"a Secret where a ConfigMap is needed": {func(r *plan.Request) {
			delete(r.Sources, plan.Reference{Kind: plan.ConfigMap, Name: "custom-ca"})
			r.Sources[plan.Reference{Kind: plan.Secret, Name: "custom-ca"}] = plan.Version{}
		},
			v1alpha1.ReasonConfigMapNotFound, `ConfigMap "custom-ca", which the ProviderConfig names in spec.caBundleRef, does not exist`},
		"values that are a list": {func(r *plan.Request) { serverValues(r, `["a"]`) },
			v1alpha1.ReasonValuesInvalid, `spec.values.server of the ProviderConfig is not an object`},
		"values that are null": {func(r *plan.Request) { serverValues(r, `null`) },
			v1alpha1.ReasonValuesInvalid, `spec.values.server of the ProviderConfig is not an object`},
		"values that are not JSON": {func(r *plan.Request) { serverValues(r, `{`) },
			v1alpha1.ReasonValuesInvalid, `spec.values.server of the ProviderConfig is not an object`},
		"a template": {func(r *plan.Request) { serverValues(r, `{"podLabels":{"a":"b","c":"{{ lookup }}"}}`) },
			v1alpha1.ReasonValuesInvalid, `spec.values.server.podLabels.c of the ProviderConfig has "{{"; values are not templates`},
		"a template in a list": {func(r *plan.Request) { serverValues(r, `{"extraEnv":[{"name":"a"},{"name":"x{{"}]}`) },
			v1alpha1.ReasonValuesInvalid, `spec.values.server.extraEnv[1].name of the ProviderConfig has "{{"; values are not templates`},
		"a template as a key": {func(r *plan.Request) { serverValues(r, `{"podLabels":{"{{ a }}":"b"}}`) },
			v1alpha1.ReasonValuesInvalid, `spec.values.server.podLabels of the ProviderConfig has "{{"; values are not templates`},
		"a template for the control plane": {func(r *plan.Request) {
			r.Config.Values = &v1alpha1.ChartValues{ControlPlane: &apiextensionsv1.JSON{Raw: []byte(`{"image":"{{"}`)}}
		},
			v1alpha1.ReasonValuesInvalid, `spec.values.controlPlane.image of the ProviderConfig has "{{"; values are not templates`},
	} {
		t.Run(name, func(t *testing.T) {
			asked := request(t, "full")
			asked.Spec = v1alpha1.VeleroSpec{Version: "v1.17.1", Plugins: plugins("aws", "v1.13.0")}
			test.change(&asked)
			resolved, blocked := plan.Resolve(asked)
			if resolved != nil {
				t.Error("a plan beside the reason why there is none")
			}
			if diff := cmp.Diff(&plan.Blocked{Reason: test.reason, Message: test.message}, blocked); diff != "" {
				t.Error(diff)
			}
			for _, internal := range []string{"://", asked.Velero.Namespace, "mcp--", "velero--", "registry.example"} {
				if blocked != nil && strings.Contains(blocked.Message, internal) {
					t.Errorf("%q is internal", internal)
				}
			}
		})
	}
}

func TestUsersProblemsComeBeforeOperatorsProblems(t *testing.T) {
	asked := request(t, "full")
	asked.Spec.Version, asked.Sources = "v9", nil
	serverValues(&asked, `[]`)
	for _, want := range []string{v1alpha1.ReasonVersionNotOffered, v1alpha1.ReasonSecretNotFound, v1alpha1.ReasonValuesInvalid} {
		_, blocked := plan.Resolve(asked)
		if blocked == nil || blocked.Reason != want {
			t.Fatalf("got %+v, want %s", blocked, want)
		}
		if want == v1alpha1.ReasonVersionNotOffered {
			asked.Spec.Version = "v1.17.1"
		} else {
			asked.Sources = versions(asked.Config, "1")
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	asked := request(t, "guide")
	for i := range 64 {
		asked.Config.AvailableImages[0].Versions = append(asked.Config.AvailableImages[0].Versions, fmt.Sprintf("v2.0.%d-%s", i, strings.Repeat("ä", 60)))
		asked.Spec.Plugins = append(asked.Spec.Plugins, plugins(fmt.Sprintf("p%d%s", i, strings.Repeat("é", 100)), "v1")...)
	}
	asked.Spec.Version = strings.Repeat("\xff", 4000)
	_, blocked := plan.Resolve(asked)
	if blocked == nil {
		t.Fatal("not blocked")
	}
	if len(blocked.Message) > 1024 || !utf8.ValidString(blocked.Message) || !strings.HasSuffix(blocked.Message, "…") {
		t.Errorf("%d bytes: %q", len(blocked.Message), blocked.Message)
	}
	if !strings.Contains(blocked.Message, "spec.plugins") {
		t.Errorf("the list of versions crowds out the other problems: %s", blocked.Message)
	}
}

func TestCheckJudgesAProviderConfigAlone(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*plan.Request)
		want   *plan.Blocked
	}{
		"usable":          {func(*plan.Request) {}, nil},
		"no plugins":      {func(r *plan.Request) { r.Config.AvailableImages = r.Config.AvailableImages[:1] }, nil},
		"no Velero image": {func(r *plan.Request) { r.Config.AvailableImages = r.Config.AvailableImages[1:] }, &plan.Blocked{Reason: v1alpha1.ReasonVersionNotOffered, Message: "the platform offers no Velero version"}},
		"a missing secret": {func(r *plan.Request) { delete(r.Sources, plan.Reference{Kind: plan.Secret, Name: "legacy"}) },
			&plan.Blocked{Reason: v1alpha1.ReasonSecretNotFound, Message: `Secret "legacy", which the ProviderConfig names in spec.imagePullSecrets, does not exist`}},
		"bad values": {func(r *plan.Request) { serverValues(r, `5`) }, &plan.Blocked{Reason: v1alpha1.ReasonValuesInvalid, Message: "spec.values.server of the ProviderConfig is not an object"}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := request(t, "full")
			test.change(&asked)
			_, got := plan.Check(asked.Config, asked.Sources)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReferencesAreSortedAndUnique(t *testing.T) {
	asked := request(t, "full")
	asked.Config.ImagePullSecrets = append(asked.Config.ImagePullSecrets, v1alpha1.SecretReference{Name: "chartcred"}, v1alpha1.SecretReference{Name: "privateregcred"})
	want := []plan.Reference{
		{Kind: plan.ConfigMap, Name: "custom-ca"},
		{Kind: plan.Secret, Name: "chartcred"},
		{Kind: plan.Secret, Name: "cosign-pub"},
		{Kind: plan.Secret, Name: "legacy"},
		{Kind: plan.Secret, Name: "privateregcred"},
		{Kind: plan.Secret, Name: "proxy"},
	}
	if diff := cmp.Diff(want, plan.References(asked.Config)); diff != "" {
		t.Error(diff)
	}
	if got := plan.References(nil); len(got) > 0 {
		t.Errorf("references of nothing: %v", got)
	}
}
