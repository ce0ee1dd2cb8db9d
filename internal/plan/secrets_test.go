package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/fluxgen"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

func fingerprints(p *plan.Plan, grants plan.Grants) map[string]string {
	all := map[string]string{}
	for _, secret := range p.Secrets(grants) {
		all[secret.Name] = secret.Fingerprint
	}
	return all
}

func changedNames(before, after map[string]string) []string {
	var names []string
	for _, name := range []string{"sp-velero-chart-ca", "sp-velero-chart-proxy", "sp-velero-chart-pull", "sp-velero-chart-verify", "sp-velero-server-identity", "sp-velero-server-values"} {
		if before[name] != after[name] {
			names = append(names, name)
		}
	}
	return names
}

func TestASecretIsGeneratedAgainWhenWhatItIsMadeFromChanged(t *testing.T) {
	moved := func(kind plan.Kind, name string) func(*plan.Request, *plan.Grants) {
		return func(r *plan.Request, _ *plan.Grants) {
			r.Sources[plan.Reference{Kind: kind, Name: name}] = plan.Version{UID: "uid", ResourceVersion: "2"}
		}
	}
	for name, test := range map[string]struct {
		change func(*plan.Request, *plan.Grants)
		want   []string
	}{
		"nothing":               {func(*plan.Request, *plan.Grants) {}, nil},
		"the chart pull secret": {moved(plan.Secret, "chartcred"), []string{"sp-velero-chart-pull"}},
		"the proxy":             {moved(plan.Secret, "proxy"), []string{"sp-velero-chart-proxy"}},
		"the public key":        {moved(plan.Secret, "cosign-pub"), []string{"sp-velero-chart-verify"}},
		"the CA bundle":         {moved(plan.ConfigMap, "custom-ca"), []string{"sp-velero-chart-ca", "sp-velero-server-values"}},
		"an image pull secret":  {moved(plan.Secret, "legacy"), []string{"sp-velero-server-values"}},
		"a secret of that name made anew": {func(r *plan.Request, _ *plan.Grants) {
			r.Sources[plan.Reference{Kind: plan.Secret, Name: "chartcred"}] = plan.Version{UID: "other", ResourceVersion: "1"}
		}, []string{"sp-velero-chart-pull"}},
		"another secret": {func(r *plan.Request, _ *plan.Grants) { r.Config.Charts.PullSecret.Name = "legacy" }, []string{"sp-velero-chart-pull"}},
		"another key of the CA bundle": {func(r *plan.Request, _ *plan.Grants) { r.Config.CABundleRef.Key = "other" },
			[]string{"sp-velero-chart-ca", "sp-velero-server-values"}},
		"one pull secret less": {func(r *plan.Request, _ *plan.Grants) { r.Config.ImagePullSecrets = r.Config.ImagePullSecrets[1:] }, []string{"sp-velero-server-values"}},
		"the proxy of the pod": {func(r *plan.Request, _ *plan.Grants) { serverValues(r, `{"proxy":{"http":"http://other.example"}}`) }, []string{"sp-velero-server-values"}},
		"a renewed token":      {func(_ *plan.Request, g *plan.Grants) { g.Server.Version.ResourceVersion = "2" }, []string{"sp-velero-server-identity"}},
		"another grant":        {func(_ *plan.Request, g *plan.Grants) { g.Server.Secret = "other" }, []string{"sp-velero-server-identity"}},
		"Flux's own grants": {func(_ *plan.Request, g *plan.Grants) {
			g.ControlPlane.Version.ResourceVersion, g.Workload.Version.ResourceVersion = "2", "2"
		}, nil},
		"the version": {func(r *plan.Request, _ *plan.Grants) { r.Spec.Version = "v1.17.1" }, nil},
		"inline values": {func(r *plan.Request, _ *plan.Grants) {
			r.Config.Values.Server.Raw = []byte(strings.Replace(string(r.Config.Values.Server.Raw), "debug", "info", 1))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := fingerprints(resolve(t, request(t, "full")), grants())
			asked, granted := request(t, "full"), grants()
			test.change(&asked, &granted)
			if diff := cmp.Diff(test.want, changedNames(before, fingerprints(resolve(t, asked), granted))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNewChartCredentialsMeanNewSources(t *testing.T) {
	names := func(request plan.Request) []string {
		releases, err := resolve(t, request).Releases(grants())
		if err != nil {
			t.Fatal(err)
		}
		return []string{fluxgen.SourceName(releases[0].Chart), fluxgen.SourceName(releases[1].Chart)}
	}
	before := names(request(t, "full"))
	for _, reference := range []plan.Reference{{Kind: plan.Secret, Name: "chartcred"}, {Kind: plan.Secret, Name: "proxy"}, {Kind: plan.Secret, Name: "cosign-pub"}, {Kind: plan.ConfigMap, Name: "custom-ca"}} {
		asked := request(t, "full")
		asked.Sources[reference] = plan.Version{UID: "uid", ResourceVersion: "2"}
		if after := names(asked); after[0] == before[0] || after[1] == before[1] {
			t.Errorf("%v changed, and Flux, which does not watch it, would go on with the old credentials", reference)
		}
	}
	asked := request(t, "full")
	asked.Sources[plan.Reference{Kind: plan.Secret, Name: "legacy"}] = plan.Version{UID: "uid", ResourceVersion: "2"}
	if diff := cmp.Diff(before, names(asked)); diff != "" {
		t.Error("image pull secrets have nothing to do with charts:", diff)
	}
}

func TestOnlyWhatIsConfiguredIsGenerated(t *testing.T) {
	var names []string
	for _, secret := range resolve(t, request(t, "guide")).Secrets(grants()) {
		names = append(names, secret.Name)
	}
	if diff := cmp.Diff([]string{"sp-velero-server-identity", "sp-velero-server-values"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestUnusableContentsAreNamedAndNeverQuoted(t *testing.T) {
	const types = "its type must be kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg"
	for name, test := range map[string]struct {
		source          string
		content         plan.Content
		reason, message string
	}{
		"the wrong type": {"chartcred", plan.Content{Type: corev1.SecretTypeOpaque, Data: map[string][]byte{".dockerconfigjson": []byte(secretText)}},
			v1alpha1.ReasonSecretInvalid, `Secret "chartcred" of the ProviderConfig cannot be used: ` + types},
		"no key": {"chartcred", plan.Content{Type: corev1.SecretTypeDockerConfigJson},
			v1alpha1.ReasonSecretInvalid, `Secret "chartcred" of the ProviderConfig cannot be used: it has no key ".dockerconfigjson"`},
		"no JSON": {"chartcred", pull(corev1.SecretTypeDockerConfigJson, secretText),
			v1alpha1.ReasonSecretInvalid, `Secret "chartcred" of the ProviderConfig cannot be used: key ".dockerconfigjson": it is not a JSON object with auths`},
		"no JSON, of old": {"chartcred", pull(corev1.SecretTypeDockercfg, `{},"x":{}`),
			v1alpha1.ReasonSecretInvalid, `Secret "chartcred" of the ProviderConfig cannot be used: key ".dockercfg": it is not JSON`},
		"no auths": {"chartcred", pull(corev1.SecretTypeDockerConfigJson, `{"s3cr3t":{}}`),
			v1alpha1.ReasonSecretInvalid, `Secret "chartcred" of the ProviderConfig cannot be used: key ".dockerconfigjson": it has no auths`},
		"an image pull secret of the wrong type": {"legacy", plan.Content{Type: corev1.SecretTypeBasicAuth, Data: map[string][]byte{"password": []byte(secretText)}},
			v1alpha1.ReasonSecretInvalid, `Secret "legacy" of the ProviderConfig cannot be used: ` + types},
		"no public key": {"cosign-pub", plan.Content{Data: map[string][]byte{"cosign.key": []byte(secretText)}},
			v1alpha1.ReasonSecretInvalid, `Secret "cosign-pub" of the ProviderConfig cannot be used: it has no key that ends in ".pub"`},
		"a public key that is none": {"cosign-pub", plan.Content{Data: map[string][]byte{"a.pub": []byte(secretText)}},
			v1alpha1.ReasonSecretInvalid, `Secret "cosign-pub" of the ProviderConfig cannot be used: key "a.pub" is not a public key in PEM form`},
		"no proxy address": {"proxy", plan.Content{Data: map[string][]byte{"username": []byte(secretText)}},
			v1alpha1.ReasonSecretInvalid, `Secret "proxy" of the ProviderConfig cannot be used: key "address" must be http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT`},
		"a proxy that is none": {"proxy", plan.Content{Data: map[string][]byte{"address": []byte("ftp://s3cr3t@proxy")}},
			v1alpha1.ReasonSecretInvalid, `Secret "proxy" of the ProviderConfig cannot be used: key "address" must be http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT`},
		"no key in the CA bundle": {"custom-ca", plan.Content{Data: map[string][]byte{"other": []byte(secretText)}},
			v1alpha1.ReasonCABundleInvalid, `ConfigMap "custom-ca" of the ProviderConfig cannot be used: it has no key "ca-bundle.crt"`},
		"no certificate": {"custom-ca", plan.Content{Data: map[string][]byte{"ca-bundle.crt": []byte("-----BEGIN CERTIFICATE-----\nczNjcjN0\n-----END CERTIFICATE-----\n")}},
			v1alpha1.ReasonCABundleInvalid, `ConfigMap "custom-ca" of the ProviderConfig cannot be used: key "ca-bundle.crt": it has no usable certificate in PEM form`},
		"too many certificates": {"custom-ca", plan.Content{Data: map[string][]byte{"ca-bundle.crt": []byte(strings.Repeat(string(file(t, "ca.crt")), 1000))}},
			v1alpha1.ReasonCABundleInvalid, `ConfigMap "custom-ca" of the ProviderConfig cannot be used: key "ca-bundle.crt": its certificates take more than 384 KiB`},
		"no kubeconfig": {"server-kubeconfig", plan.Content{},
			v1alpha1.ReasonCredentialsInvalid, `the kubeconfig that was granted for the control plane cannot be used: it is not a kubeconfig`},
	} {
		t.Run(name, func(t *testing.T) {
			resolved := resolve(t, request(t, "full"))
			secrets := resolved.Secrets(grants())
			held := contents(t, secrets)
			for source := range held {
				if source.Name == test.source {
					held[source] = test.content
				}
			}
			var found *plan.Blocked
			for _, wanted := range secrets {
				secret, blocked := resolved.Generate(wanted, held)
				if (secret == nil) != (blocked != nil) {
					t.Errorf("%s: neither a Secret nor a reason, or both", wanted.Name)
				}
				if blocked != nil {
					found = blocked
				}
			}
			want := &plan.Blocked{Reason: test.reason, Message: test.message}
			if diff := cmp.Diff(want, found); diff != "" {
				t.Error(diff)
			}
			if test.reason == v1alpha1.ReasonCredentialsInvalid {
				// It is granted for one Velero: the ProviderConfig has nothing to do with it.
				want = nil
			}
			if diff := cmp.Diff(want, tried(t, request(t, "full"), held)); diff != "" {
				t.Errorf("the ProviderConfig is judged otherwise than a Velero that uses it (-Velero +ProviderConfig):\n%s", diff)
			}
		})
	}
}

func TestABundleIsReducedToItsCertificates(t *testing.T) {
	certificate := string(file(t, "ca.crt"))
	resolved := resolve(t, request(t, "full"))
	secrets := resolved.Secrets(grants())
	held := contents(t, secrets)
	for source := range held {
		if source.Name == "custom-ca" {
			held[source] = plan.Content{Data: map[string][]byte{"ca-bundle.crt": []byte("# A comment\r\n" + certificate + "junk\n-----BEGIN PRIVATE KEY-----\nczNjcjN0\n-----END PRIVATE KEY-----\n" +
				"-----BEGIN CERTIFICATE-----\nczNjcjN0\n-----END CERTIFICATE-----\n" + certificate)}}
		}
	}
	for _, wanted := range secrets {
		secret, blocked := resolved.Generate(wanted, held)
		if blocked != nil {
			t.Fatal(blocked)
		}
		if bundle, holds := secret.Data["ca.crt"]; holds && string(bundle) != certificate+certificate {
			t.Errorf("got %s", bundle)
		}
	}
}

// TestSameSources: a rotation leaves a Secret with the sources that it is made from; everything else makes it another one.
func TestSameSources(t *testing.T) {
	secretOf := func(change func(*plan.Request)) (plan.GeneratedSecret, *metav1.PartialObjectMetadata) {
		r := request(t, "full")
		change(&r)
		for _, secret := range resolve(t, r).Secrets(grants()) {
			if secret.Name == "sp-velero-server-values" {
				return secret, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{plan.SourcesAnnotation: secret.Fingerprint}}}
			}
		}
		t.Fatal("there is no such Secret")
		return plan.GeneratedSecret{}, nil
	}
	wanted, existing := secretOf(func(*plan.Request) {})
	if !wanted.SameSources(existing) || wanted.SameSources(nil) || wanted.SameSources(&metav1.PartialObjectMetadata{}) {
		t.Error("only the one that exists has the same sources")
	}
	for name, test := range map[string]struct {
		change func(*plan.Request)
		same   bool
	}{
		"a rotation":           {func(r *plan.Request) { r.Sources = versions(r.Config, "2") }, true},
		"one less":             {func(r *plan.Request) { r.Config.ImagePullSecrets = r.Config.ImagePullSecrets[1:] }, false},
		"another key":          {func(r *plan.Request) { r.Config.CABundleRef.Key = "other" }, false},
		"the proxy of the pod": {func(r *plan.Request) { serverValues(r, `{"proxy":{"http":"http://other.example"}}`) }, false},
	} {
		if _, existing := secretOf(test.change); wanted.SameSources(existing) != test.same {
			t.Errorf("%s: the same sources: %t", name, !test.same)
		}
	}
}
