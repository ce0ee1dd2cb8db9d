package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/fluxgen"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

const canaryPullName = "canary-pull"

// canaries are secrets that must be nowhere but where secrets belong.
type canaries struct {
	tenant tenant
	// words are what is looked for, by what they are.
	words map[string]string
	// proxy towards the chart registry, which is real: everything is installed through it.
	proxy *httptest.Server
}

// canary has a Velero go through its life with a canary in every secret, and the operator tell as much as it can.
func canary(t *testing.T) {
	watched := &canaries{tenant: newTenant(t, "canary", "watched"), words: map[string]string{}}
	watched.proxy = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(*httputil.ProxyRequest) {},
		// Flux asks for TLS first, which neither this proxy nor the registry has.
		ErrorHandler: func(response http.ResponseWriter, _ *http.Request, _ error) {
			response.WriteHeader(http.StatusBadGateway)
		},
	})
	defer watched.proxy.Close()
	restartWith(t, "--verbosity=DEBUG")
	t.Run("secrets: a Velero is installed with one of every kind | in no log, event, status, HelmRelease or metric", func(t *testing.T) {
		watched.create(t, "first")
		changeOffer(t, watched.refer)
		watched.tenant.orderControlPlane(t)
		watched.tenant.orderVelero(t, oldVersion, aws)
		watched.tenant.awaitReady(t)
		watched.assertDelivered(t, "first")
		watched.assertSilence(t)
	})
	t.Run("secrets: they are rotated, and the version is changed | in no log, event, status, HelmRelease or metric", func(t *testing.T) {
		watched.remove(t)
		watched.create(t, "second")
		watched.tenant.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = newVersion })
		watched.tenant.awaitRunning(t, newVersion)
		watched.assertDelivered(t, "second")
		watched.assertSilence(t)
	})
	t.Run("secrets: none of them can be used | in no log, event, status, HelmRelease or metric", watched.unusable)
	t.Run("secrets: the chart's signature cannot be verified with the key | in no log, event, status, HelmRelease or metric", watched.unverified)
	t.Run("secrets: the Velero is deleted | in no log, event, status, HelmRelease or metric", func(t *testing.T) {
		watched.note(t)
		watched.tenant.startDeletion(t)
		watched.tenant.awaitDeleted(t)
		watched.assertSilence(t)
	})
	changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) { *spec = offered().Spec })
	watched.remove(t)
	watched.tenant.leave(t)
	restartWith(t)
}

// restartWith starts the operator anew with more arguments.
func restartWith(t *testing.T, args ...string) {
	t.Helper()
	must(t, operator.Stop(t.Context()))
	var err error
	operator, err = world.StartOperator(t.Context(), landscape.OperatorOptions{SkipInit: true, Args: args})
	must(t, err)
}

// word makes a canary and remembers it, also in the form in which Secrets and docker configs have it.
func (c *canaries) word(about, generation string) string {
	word := "canary-" + strings.ReplaceAll(about, " ", "-") + "-" + generation
	c.words[about+" "+generation] = word
	c.words[about+" "+generation+", encoded"] = base64.StdEncoding.EncodeToString([]byte(word))
	return word
}

// auth is an entry of a docker config with a canary as its password.
func (c *canaries) auth(about, generation string) string {
	encoded := base64.StdEncoding.EncodeToString([]byte("user:" + c.word(about, generation)))
	c.words[about+" "+generation+", as a docker config has it"] = encoded
	return encoded
}

// create makes every Secret and ConfigMap that a ProviderConfig can name.
func (c *canaries) create(t *testing.T, generation string) {
	t.Helper()
	docker := func(registry, auth string) map[string]string {
		return map[string]string{corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, registry, auth)}
	}
	ca := caSource("# " + c.word("CA bundle comment", generation) + "\n" + authorityOf(t, world.Platform))
	for _, object := range []client.Object{
		ca,
		sourceSecret(canaryPullName, corev1.SecretTypeDockerConfigJson, docker("registry.example", c.auth("image pull secret", generation))),
		sourceSecret(chartCredName, corev1.SecretTypeDockerConfigJson, docker(world.Registry, c.auth("chart pull secret", generation))),
		sourceSecret(cosignKeyName, corev1.SecretTypeOpaque, map[string]string{
			"site.pub": c.word("public key comment", generation) + "\n" + publicKey(t), "site.key": c.word("private key", generation),
		}),
		sourceSecret(proxyCredName, corev1.SecretTypeOpaque, map[string]string{
			"address": c.proxy.URL, "username": c.word("proxy user", generation), "password": c.word("proxy password", generation),
		}),
	} {
		must(t, platform.Create(t.Context(), object))
	}
}

func (c *canaries) remove(t *testing.T) {
	t.Helper()
	must(t, client.IgnoreNotFound(platform.Delete(t.Context(), caSource(""))))
	for _, name := range []string{canaryPullName, chartCredName, cosignKeyName, proxyCredName} {
		must(t, client.IgnoreNotFound(platform.Delete(t.Context(), sourceSecret(name, "", nil))))
	}
}

// refer has the ProviderConfig name all of them but the public key, with which nothing here is signed.
func (c *canaries) refer(spec *v1alpha1.ProviderConfigSpec) {
	spec.ImagePullSecrets = append(spec.ImagePullSecrets, v1alpha1.SecretReference{Name: canaryPullName})
	spec.CABundleRef = &v1alpha1.ConfigMapKeyReference{Name: caConfigMap, Key: caKey}
	spec.Charts.PullSecret = &v1alpha1.SecretReference{Name: chartCredName}
	spec.Charts.ProxySecretRef = &v1alpha1.SecretReference{Name: proxyCredName}
	proxy := fmt.Sprintf(`{"proxy":{"http":"http://user:%s@proxy.example:3128"}}`, c.word("proxy of the pod", "first"))
	spec.Values = &v1alpha1.ChartValues{Server: &apiextensionsv1.JSON{Raw: []byte(proxy)}}
}

// unusable breaks one after the other: what is said about them must not quote them.
func (c *canaries) unusable(t *testing.T) {
	for _, broken := range []struct{ name, key, about, reason string }{
		{canaryPullName, corev1.DockerConfigJsonKey, "broken image pull secret", ""},
		{chartCredName, corev1.DockerConfigJsonKey, "broken chart pull secret", v1alpha1.ReasonSecretInvalid},
		{proxyCredName, "address", "broken proxy address", v1alpha1.ReasonSecretInvalid},
	} {
		secret := &corev1.Secret{}
		must(t, platform.Get(t.Context(), types.NamespacedName{Namespace: operatorNamespace, Name: broken.name}, secret))
		// The API server takes no docker config that is not JSON.
		rotate(t, broken.name, broken.key, `{"auths":{"registry.example":{"auth":"`+c.word(broken.about, "")+`!"}}}`)
		if broken.reason != "" {
			c.awaitBlocked(t, broken.reason)
		}
		rotate(t, broken.name, broken.key, string(secret.Data[broken.key]))
		c.tenant.awaitReady(t)
	}
	must(t, platform.Update(t.Context(), caSource(c.word("broken CA bundle", ""))))
	c.awaitBlocked(t, v1alpha1.ReasonCABundleInvalid)
	must(t, platform.Update(t.Context(), caSource(authorityOf(t, world.Platform))))
	c.tenant.awaitReady(t)
	c.assertSilence(t)
}

func (c *canaries) awaitBlocked(t *testing.T, reason string) {
	t.Helper()
	eventually(t, reached, "the condition says "+reason, func(ctx context.Context) error {
		velero, err := c.tenant.velero(ctx)
		if err != nil {
			return err
		}
		return hasCondition(velero, v1alpha1.ConditionConfigurationValid, metav1.ConditionFalse, reason)
	})
}

func (c *canaries) unverified(t *testing.T) {
	changeCharts(t, func(charts *v1alpha1.Charts) {
		charts.Verify = &v1alpha1.ChartVerification{Provider: "cosign", SecretRef: v1alpha1.SecretReference{Name: cosignKeyName}}
	})
	c.tenant.awaitCondition(t, v1alpha1.ConditionServerInstalled, metav1.ConditionFalse, v1alpha1.ReasonChartUntrusted)
	c.assertSilence(t)
	changeCharts(t, func(charts *v1alpha1.Charts) { charts.Verify = nil })
	c.tenant.awaitReady(t)
}

// assertDelivered shows that the canaries are in use: else there would be nothing to be silent about.
func (c *canaries) assertDelivered(t *testing.T, generation string) {
	t.Helper()
	for name, delivered := range map[string]struct{ key, about string }{
		"sp-velero-server-values": {fluxgen.ValuesKey, "proxy of the pod first"},
		"sp-velero-chart-proxy":   {"password", "proxy password " + generation},
		"sp-velero-chart-pull":    {corev1.DockerConfigJsonKey, "chart pull secret " + generation + ", as a docker config has it"},
	} {
		secret := &corev1.Secret{}
		must(t, platform.Get(t.Context(), types.NamespacedName{Namespace: c.tenant.names.TenantNamespace, Name: name}, secret))
		if !strings.Contains(string(secret.Data[delivered.key]), c.words[delivered.about]) {
			t.Errorf("Secret %s does not have the %s", name, delivered.about)
		}
	}
	log, err := os.ReadFile(operator.Log)
	must(t, err)
	if !strings.Contains(strings.ToLower(string(log)), "debug") {
		t.Error("the operator does not log at its highest verbosity")
	}
}

// note remembers the token of every grant as it is now.
func (c *canaries) note(t *testing.T) {
	t.Helper()
	var granted corev1.SecretList
	must(t, platform.List(t.Context(), &granted))
	for _, secret := range granted.Items {
		kubeconfig, ok := secret.Data[clustersv1alpha1.SecretKeyKubeconfig]
		if !ok {
			continue
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		must(t, err)
		if config.BearerToken == "" {
			t.Errorf("the kubeconfig in %s has no token", secret.Name)
			continue
		}
		// The signature is what makes it one; the rest says only whose it is.
		token := config.BearerToken[strings.LastIndex(config.BearerToken, ".")+1:]
		c.words["token in "+secret.Namespace+"/"+secret.Name+" "+secret.ResourceVersion] = token
	}
}

// assertSilence looks for every canary, in everything that is told.
func (c *canaries) assertSilence(t *testing.T) {
	t.Helper()
	c.note(t)
	for place, told := range c.told(t) {
		for about, word := range c.words {
			if at := strings.Index(told, word); at >= 0 {
				t.Errorf("%s tells the %s: …%s…", place, about, told[max(0, at-200):min(len(told), at+len(word)+50)])
			}
		}
	}
}

// told is everything that people can read without the right to read Secrets.
func (c *canaries) told(t *testing.T) map[string]string {
	t.Helper()
	log, err := os.ReadFile(operator.Log)
	must(t, err)
	metrics, err := metricsOf(t.Context())
	must(t, err)
	told := map[string]string{"the operator's log": string(log), "the metrics endpoint": metrics}
	for name, cluster := range map[string]client.Client{"platform": platform, "onboarding": onboarding, "workload": workload, "control plane": c.tenant.controlPlane(t)} {
		told["an event on the "+name+" cluster"] = listed(t, cluster, &corev1.EventList{})
	}
	var configs v1alpha1.ProviderConfigList
	must(t, platform.List(t.Context(), &configs))
	for i := range configs.Items {
		// Its spec is written by those who may read Secrets.
		configs.Items[i].Spec, configs.Items[i].ManagedFields = v1alpha1.ProviderConfigSpec{}, nil
		configs.Items[i].Annotations = nil
	}
	told["the status of a ProviderConfig"] = asJSON(t, configs)
	told["a Velero"] = listed(t, onboarding, &v1alpha1.VeleroList{})
	told["a HelmRelease"] = listed(t, platform, &helmv2.HelmReleaseList{})
	told["an OCIRepository"] = listed(t, platform, &sourcev1.OCIRepositoryList{})
	told["an AccessRequest"] = listed(t, platform, &clustersv1alpha1.AccessRequestList{})
	told["a ClusterRequest"] = listed(t, platform, &clustersv1alpha1.ClusterRequestList{})
	return told
}

func listed(t *testing.T, cluster client.Client, list client.ObjectList) string {
	t.Helper()
	must(t, cluster.List(t.Context(), list))
	return asJSON(t, list)
}

func asJSON(t *testing.T, object any) string {
	t.Helper()
	text, err := json.Marshal(object)
	must(t, err)
	return string(text)
}

func metricsOf(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, operator.Metrics, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}
