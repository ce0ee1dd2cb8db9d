package e2e

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"sync/atomic"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/fluxgen"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

const (
	caConfigMap    = "custom-ca"
	caKey          = "ca-bundle.crt"
	chartCredName  = "chartcred"
	cosignKeyName  = "cosign-pub"
	proxyCredName  = "proxycred"
	bundleOnTarget = "velero-ca-bundle"
)

// caBundle is about a company's own authority in the Velero pod; chartSecrets is about the same one for the chart registry.
func caBundle(t *testing.T, tenant tenant) {
	ca, other := authorityOf(t, world.Platform), authorityOf(t, world.Workload)
	t.Run("CA bundle: it is added | every container of the pod trusts it, and the pod is not restarted", func(t *testing.T) {
		pod := tenant.podState(t)
		must(t, platform.Create(t.Context(), caSource(ca)))
		referToCA(t, true)
		tenant.awaitBundle(t, ca)
		tenant.awaitReady(t)
		tenant.assertNotRestarted(t, pod)
		assertTrust(t, tenant)
	})
	t.Run("CA bundle: it is rotated | the new one is there, and the pod is not restarted", func(t *testing.T) {
		pod := tenant.podState(t)
		must(t, platform.Update(t.Context(), caSource(ca+other)))
		tenant.awaitBundle(t, ca+other)
		tenant.awaitCopy(t, "sp-velero-chart-ca", map[string]string{"ca.crt": ca + other})
		tenant.awaitReady(t)
		tenant.assertNotRestarted(t, pod)
	})
	t.Run("CA bundle: it has no certificate | its name and key are told, Ready when it has one again", func(t *testing.T) {
		before := tenant.generations(t)
		must(t, platform.Update(t.Context(), caSource("nothing")))
		tenant.awaitBlockedConfiguration(t, v1alpha1.ReasonCABundleInvalid, caConfigMap, caKey)
		assertUntouched(t, before, tenant)
		must(t, platform.Update(t.Context(), caSource(ca)))
		tenant.awaitBundle(t, ca)
		tenant.awaitReady(t)
	})
	t.Run("CA bundle: its ConfigMap is deleted | its name is told, Ready when it is there again", func(t *testing.T) {
		before := tenant.generations(t)
		must(t, platform.Delete(t.Context(), caSource("")))
		tenant.awaitBlockedConfiguration(t, v1alpha1.ReasonConfigMapNotFound, caConfigMap, "spec.caBundleRef")
		assertUntouched(t, before, tenant)
		must(t, platform.Create(t.Context(), caSource(other)))
		tenant.awaitBundle(t, other)
		tenant.awaitReady(t)
	})
	t.Run("CA bundle: it is removed | its copies are gone, and the pod is not restarted", func(t *testing.T) {
		pod := tenant.podState(t)
		referToCA(t, false)
		eventually(t, reached, "the bundle is gone", func(ctx context.Context) error {
			return isGone(ctx, workload, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: tenant.names.WorkloadNamespace, Name: bundleOnTarget}})
		})
		tenant.awaitNoCopies(t)
		tenant.awaitReady(t)
		tenant.assertNotRestarted(t, pod)
		must(t, platform.Delete(t.Context(), caSource("")))
	})
}

// chartSecrets are what Flux needs for the chart registry: one that asks for a password and has a certificate of a company's own authority.
func chartSecrets(t *testing.T, tenant tenant) {
	registry, err := world.StartSecureRegistry(t.Context())
	must(t, err)
	must(t, registry.PublishCharts(t.Context(), controlPlaneChart, serverChart))
	before, pod := tenant.generations(t), tenant.podState(t)
	t.Run("chart registry: nobody knows its certificate | ChartUntrusted, what runs is left alone", func(t *testing.T) {
		changeCharts(t, func(charts *v1alpha1.Charts) { charts.Repository = registry.Repository() })
		tenant.awaitCondition(t, v1alpha1.ConditionServerInstalled, metav1.ConditionFalse, v1alpha1.ReasonChartUntrusted, "stays as it is")
		assertUntouched(t, before, tenant)
	})
	t.Run("chart registry: it is trusted but asks for a password | ChartAccessDenied, what runs is left alone", func(t *testing.T) {
		must(t, platform.Create(t.Context(), caSource(string(registry.CA))))
		referToCA(t, true)
		tenant.awaitCondition(t, v1alpha1.ConditionServerInstalled, metav1.ConditionFalse, v1alpha1.ReasonChartAccessDenied, "stays as it is")
		assertUntouched(t, before, tenant)
	})
	t.Run("chart pull secret: it does not exist | its name is told", func(t *testing.T) {
		changeCharts(t, func(charts *v1alpha1.Charts) { charts.PullSecret = &v1alpha1.SecretReference{Name: chartCredName} })
		tenant.awaitBlockedConfiguration(t, v1alpha1.ReasonSecretNotFound, chartCredName, "spec.charts.pullSecret")
	})
	t.Run("chart pull secret: the password is wrong | ChartAccessDenied, Ready once it is corrected, from this registry", func(t *testing.T) {
		must(t, platform.Create(t.Context(), sourceSecret(chartCredName, corev1.SecretTypeDockerConfigJson, map[string]string{corev1.DockerConfigJsonKey: auths(registry, "wrong")})))
		tenant.awaitCondition(t, v1alpha1.ConditionServerInstalled, metav1.ConditionFalse, v1alpha1.ReasonChartAccessDenied)
		rotate(t, chartCredName, corev1.DockerConfigJsonKey, auths(registry, registry.Password))
		tenant.awaitFrom(t, registry.Repository())
		tenant.assertNotRestarted(t, pod)
		// Flux finds no credentials under the form with which the source was written.
		tenant.awaitCopy(t, "sp-velero-chart-pull", map[string]string{corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, registry.Address, basic(registry, registry.Password))})
		assertSourcesRefer(t, tenant)
	})
	t.Run("chart pull secret: it is made anew with the older type | Flux gets it in the newer one", func(t *testing.T) {
		must(t, platform.Delete(t.Context(), sourceSecret(chartCredName, "", nil)))
		entry := fmt.Sprintf(`{%q:{"auth":%q}}`, registry.Address, basic(registry, registry.Password))
		must(t, platform.Create(t.Context(), sourceSecret(chartCredName, corev1.SecretTypeDockercfg, map[string]string{corev1.DockerConfigKey: entry})))
		tenant.awaitCopy(t, "sp-velero-chart-pull", map[string]string{corev1.DockerConfigJsonKey: `{"auths":` + entry + `}`})
		tenant.awaitFrom(t, registry.Repository())
	})
	t.Run("chart registry: back to one that needs no secrets | the copies are gone, and the pod was never restarted", func(t *testing.T) {
		changeCharts(t, func(charts *v1alpha1.Charts) { *charts = *offered().Spec.Charts })
		referToCA(t, false)
		tenant.awaitFrom(t, world.ChartRepository())
		tenant.awaitNoCopies(t)
		tenant.assertNotRestarted(t, pod)
	})
	must(t, platform.Delete(t.Context(), sourceSecret(chartCredName, "", nil)))
	must(t, platform.Delete(t.Context(), caSource("")))
	chartSignature(t, tenant)
	chartProxy(t, tenant)
}

func chartSignature(t *testing.T, tenant tenant) {
	key := publicKey(t)
	t.Run("chart signature: the key does not exist | its name is told", func(t *testing.T) {
		changeCharts(t, func(charts *v1alpha1.Charts) {
			charts.Verify = &v1alpha1.ChartVerification{Provider: "cosign", SecretRef: v1alpha1.SecretReference{Name: cosignKeyName}}
		})
		tenant.awaitBlockedConfiguration(t, v1alpha1.ReasonSecretNotFound, cosignKeyName, "spec.charts.verify.secretRef")
	})
	t.Run("chart signature: the chart has none | ChartUntrusted, what runs is left alone, Ready when none is asked for", func(t *testing.T) {
		before := tenant.generations(t)
		must(t, platform.Create(t.Context(), sourceSecret(cosignKeyName, corev1.SecretTypeOpaque, map[string]string{"site.pub": key, "site.key": "canary"})))
		tenant.awaitCondition(t, v1alpha1.ConditionServerInstalled, metav1.ConditionFalse, v1alpha1.ReasonChartUntrusted, "signature", "stays as it is")
		assertUntouched(t, before, tenant)
		tenant.awaitCopy(t, "sp-velero-chart-verify", map[string]string{"site.pub": key})
		rotated := publicKey(t)
		rotate(t, cosignKeyName, "site.pub", rotated)
		tenant.awaitCopy(t, "sp-velero-chart-verify", map[string]string{"site.pub": rotated})
		changeCharts(t, func(charts *v1alpha1.Charts) { charts.Verify = nil })
		tenant.awaitReady(t)
		tenant.awaitNoCopies(t)
	})
	must(t, platform.Delete(t.Context(), sourceSecret(cosignKeyName, "", nil)))
}

func chartProxy(t *testing.T, tenant tenant) {
	var requests atomic.Int32
	proxy := httptest.NewServer(forward(&requests, "proxy-password"))
	defer proxy.Close()
	t.Run("chart proxy: the secret does not exist | its name is told", func(t *testing.T) {
		changeCharts(t, func(charts *v1alpha1.Charts) {
			charts.ProxySecretRef = &v1alpha1.SecretReference{Name: proxyCredName}
		})
		tenant.awaitBlockedConfiguration(t, v1alpha1.ReasonSecretNotFound, proxyCredName, "spec.charts.proxySecretRef")
	})
	t.Run("chart proxy: its password is rotated | Flux fetches the charts through it", func(t *testing.T) {
		must(t, platform.Create(t.Context(), sourceSecret(proxyCredName, corev1.SecretTypeOpaque, map[string]string{"address": proxy.URL, "username": "flux", "password": "old"})))
		tenant.awaitCopy(t, "sp-velero-chart-proxy", map[string]string{"address": proxy.URL, "username": "flux", "password": "old"})
		rotate(t, proxyCredName, "password", "proxy-password")
		tenant.awaitCopy(t, "sp-velero-chart-proxy", map[string]string{"address": proxy.URL, "username": "flux", "password": "proxy-password"})
		eventually(t, installed, "both releases come from what was fetched through the proxy", func(ctx context.Context) error {
			if requests.Load() == 0 {
				return errors.New("nobody asked the proxy")
			}
			return tenant.everySource(ctx, func(source *sourcev1.OCIRepository) bool {
				return source.Spec.ProxySecretRef != nil && source.Spec.ProxySecretRef.Name == "sp-velero-chart-proxy"
			})
		})
		tenant.awaitFrom(t, world.ChartRepository())
	})
	t.Run("chart proxy: it is removed | its copy is gone", func(t *testing.T) {
		changeCharts(t, func(charts *v1alpha1.Charts) { charts.ProxySecretRef = nil })
		tenant.awaitNoCopies(t)
		tenant.awaitFrom(t, world.ChartRepository())
	})
	must(t, platform.Delete(t.Context(), sourceSecret(proxyCredName, "", nil)))
}

// authorityOf is some certificate of an authority.
func authorityOf(t *testing.T, cluster landscape.Cluster) string {
	t.Helper()
	ca, err := cluster.CA()
	must(t, err)
	return string(ca)
}

// forward is a proxy for plain HTTP that asks for a password.
func forward(requests *atomic.Int32, password string) http.Handler {
	proxy := &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}}
	return http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		credentials := &http.Request{Header: http.Header{"Authorization": request.Header["Proxy-Authorization"]}}
		_, given, _ := credentials.BasicAuth()
		switch {
		case request.Method == http.MethodConnect:
			// On loopback, Flux tries TLS as well.
			http.Error(response, "only plain HTTP", http.StatusMethodNotAllowed)
		case given != password:
			http.Error(response, "who are you", http.StatusProxyAuthRequired)
		default:
			requests.Add(1)
			proxy.ServeHTTP(response, request)
		}
	})
}

// everySource checks that the tenant has exactly the two OCIRepositories that it needs, and all are as wanted.
func (s tenant) everySource(ctx context.Context, wanted func(*sourcev1.OCIRepository) bool) error {
	var sources sourcev1.OCIRepositoryList
	if err := platform.List(ctx, &sources, client.InNamespace(s.names.TenantNamespace)); err != nil {
		return err
	}
	if len(sources.Items) != 2 {
		return fmt.Errorf("there are %d OCIRepositories", len(sources.Items))
	}
	for i := range sources.Items {
		if !wanted(&sources.Items[i]) {
			return fmt.Errorf("%s is not as wanted: %+v", sources.Items[i].Name, sources.Items[i].Spec)
		}
	}
	return nil
}

func caSource(bundle string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: caConfigMap}, Data: map[string]string{caKey: bundle}}
}

func referToCA(t *testing.T, refer bool) {
	t.Helper()
	changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) {
		spec.CABundleRef = nil
		if refer {
			spec.CABundleRef = &v1alpha1.ConfigMapKeyReference{Name: caConfigMap, Key: caKey}
		}
	})
}

// awaitBundle waits for certificates beside the server.
func (s tenant) awaitBundle(t *testing.T, bundle string) {
	t.Helper()
	eventually(t, reached, "the CA bundle is on the workload cluster", func(ctx context.Context) error {
		found := &corev1.ConfigMap{}
		if err := workload.Get(ctx, types.NamespacedName{Namespace: s.names.WorkloadNamespace, Name: bundleOnTarget}, found); err != nil {
			return err
		}
		if diff := cmp.Diff(map[string]string{caKey: bundle}, found.Data); diff != "" {
			return fmt.Errorf("it differs (-want +got):\n%s", diff)
		}
		return nil
	})
}

// assertTrust looks whether every container of the pod reads the bundle, beside the authorities that its image knows.
func assertTrust(t *testing.T, tenant tenant) {
	t.Helper()
	pods, err := tenant.pods(t.Context())
	must(t, err)
	mounts := map[string]string{}
	for _, volume := range pods[0].Spec.Volumes {
		if volume.ConfigMap != nil && volume.ConfigMap.Name == bundleOnTarget {
			mounts[volume.Name] = ""
		}
	}
	for _, container := range append(pods[0].Spec.InitContainers, pods[0].Spec.Containers...) {
		trusted := false
		for _, mount := range container.VolumeMounts {
			if _, bundle := mounts[mount.Name]; bundle {
				trusted = environmentOf(container)["SSL_CERT_DIR"] == mount.MountPath+":/etc/ssl/certs"
			}
		}
		if !trusted {
			t.Errorf("container %s does not trust the CA bundle: %+v", container.Name, container.Env)
		}
	}
}

func environmentOf(container corev1.Container) map[string]string {
	environment := map[string]string{}
	for _, variable := range container.Env {
		environment[variable.Name] = variable.Value
	}
	return environment
}

// awaitFrom waits until both releases come from a repository and Ready says so.
func (s tenant) awaitFrom(t *testing.T, repository string) {
	t.Helper()
	eventually(t, installed, "the charts come from "+repository, func(ctx context.Context) error {
		for _, name := range []string{plan.ControlPlaneRelease, plan.ServerRelease} {
			release, err := s.helmRelease(ctx, name)
			if err != nil {
				return err
			}
			source := &sourcev1.OCIRepository{}
			if err := platform.Get(ctx, types.NamespacedName{Namespace: s.names.TenantNamespace, Name: release.Spec.ChartRef.Name}, source); err != nil {
				return err
			}
			if source.Spec.URL != repository+"/"+name {
				return fmt.Errorf("%s comes from %s", name, source.Spec.URL)
			}
		}
		return nil
	})
	s.awaitReady(t)
	s.awaitSources(t, 2)
}

// assertSourcesRefer looks at the references of the OCIRepositories, and that the copies have the types and labels that Flux needs.
func assertSourcesRefer(t *testing.T, tenant tenant) {
	t.Helper()
	must(t, tenant.everySource(t.Context(), func(source *sourcev1.OCIRepository) bool {
		return source.Spec.SecretRef != nil && source.Spec.SecretRef.Name == "sp-velero-chart-pull" && source.Spec.CertSecretRef != nil && source.Spec.CertSecretRef.Name == "sp-velero-chart-ca"
	}))
	pull := &corev1.Secret{}
	must(t, platform.Get(t.Context(), types.NamespacedName{Namespace: tenant.names.TenantNamespace, Name: "sp-velero-chart-pull"}, pull))
	if pull.Type != corev1.SecretTypeDockerConfigJson {
		t.Errorf("the pull secret's copy has type %s, which Flux ignores", pull.Type)
	}
	if normalized, err := fluxgen.NormalizeDockerConfig(pull.Data[corev1.DockerConfigJsonKey]); err != nil || !bytes.Equal(normalized, pull.Data[corev1.DockerConfigJsonKey]) {
		t.Errorf("the pull secret's copy is not in the form that Flux needs: %v", err)
	}
}

// auths is a docker config as people write it, not as Flux needs it.
func auths(registry *landscape.SecureRegistry, password string) string {
	return fmt.Sprintf(`{"auths":{"https://%s/v2/":{"auth":%q}}}`, registry.Address, basic(registry, password))
}

func basic(registry *landscape.SecureRegistry, password string) string {
	return base64.StdEncoding.EncodeToString([]byte(registry.User + ":" + password))
}

func publicKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	must(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}
