package property

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// input is everything that people decide: the two specs, the objects that the ProviderConfig refers to, and the granted credentials.
type input struct {
	Veleros [2]v1alpha1.VeleroSpec
	// ConfigName is that of the ProviderConfig; empty: there is none.
	ConfigName string
	Config     v1alpha1.ProviderConfigSpec
	Objects    map[plan.Reference]content
	// Token is the bearer token in the granted kubeconfigs.
	Token string
}

// content of a Secret or a ConfigMap.
type content struct {
	Type corev1.SecretType
	Data map[string]string
}

func (i input) copy() input {
	for number := range i.Veleros {
		i.Veleros[number] = *i.Veleros[number].DeepCopy()
	}
	i.Config, i.Objects = *i.Config.DeepCopy(), maps.Clone(i.Objects)
	return i
}

// charts has the ProviderConfig say something about charts.
func (i *input) charts() *v1alpha1.Charts {
	if i.Config.Charts == nil {
		i.Config.Charts = &v1alpha1.Charts{}
	}
	return i.Config.Charts
}

func secretRef(name string) plan.Reference { return plan.Reference{Kind: plan.Secret, Name: name} }

var (
	pullA    = secretRef("pull-a")
	pullB    = secretRef("pull-b")
	chartcrd = secretRef("chartcred")
	cosign   = secretRef("cosign-pub")
	proxy    = secretRef("proxy")
	customCA = plan.Reference{Kind: plan.ConfigMap, Name: "custom-ca"}
)

const imageDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// start is the input before the first change, and what "restore" goes back to: with as little as possible, or with everything that there is.
func start(everything bool) input {
	velero := v1alpha1.VeleroSpec{Version: "v1.17.1", Plugins: []v1alpha1.Plugin{{Name: "aws", Version: "v1.13.0"}}}
	in := input{
		Veleros:    [2]v1alpha1.VeleroSpec{velero, velero},
		ConfigName: v1alpha1.DefaultProviderConfigName,
		Config:     v1alpha1.ProviderConfigSpec{AvailableImages: offer("velero/velero"), ImagePullSecrets: references(pullA), Rollout: &v1alpha1.Rollout{MaxConcurrent: 1}},
		Objects: map[plan.Reference]content{
			pullA: dockerConfig(0), pullB: dockerCfg(0), chartcrd: dockerConfig(0), cosign: publicKey(0), proxy: proxyAddress(0), customCA: certificates(0),
		},
		Token: "token-0",
	}
	if everything {
		in.Config.CABundleRef = &v1alpha1.ConfigMapKeyReference{Name: customCA.Name, Key: "ca-bundle.crt"}
		in.Config.ImagePullSecrets = references(pullA, pullB)
		in.Config.FluxShard = "shard0"
		in.Config.Charts = &v1alpha1.Charts{
			Repository: "oci://charts.example/everything", Version: "0.1.0", PullSecret: &references(chartcrd)[0], ProxySecretRef: &references(proxy)[0],
			Verify: &v1alpha1.ChartVerification{Provider: "cosign", SecretRef: references(cosign)[0]},
		}
	}
	return in
}

func offer(server string) []v1alpha1.AvailableImage {
	return []v1alpha1.AvailableImage{
		{Name: "velero", Image: server, Versions: []string{"v1.17.1", "v1.18.3", "v1.18.3@" + imageDigest}},
		{Name: "aws", Image: "velero/velero-plugin-for-aws", Versions: []string{"v1.13.0", imageDigest}},
		{Name: "gcp", Image: "registry.example:5000/team/gcp", Versions: []string{"v1.14.2"}},
	}
}

func references(secrets ...plan.Reference) []v1alpha1.SecretReference {
	var all []v1alpha1.SecretReference
	for _, secret := range secrets {
		all = append(all, v1alpha1.SecretReference{Name: secret.Name})
	}
	return all
}

func auth(n int) string {
	return base64.StdEncoding.EncodeToString([]byte(fmt.Sprintf("user:password-%d", n)))
}

func dockerConfig(n int) content {
	return content{corev1.SecretTypeDockerConfigJson, map[string]string{
		corev1.DockerConfigJsonKey: fmt.Sprintf(`{"auths":{"https://registry.example:5000/v2/":{"auth":%q}}}`, auth(n)),
	}}
}

func dockerCfg(n int) content {
	return content{corev1.SecretTypeDockercfg, map[string]string{corev1.DockerConfigKey: fmt.Sprintf(`{"registry.example":{"auth":%q}}`, auth(n))}}
}

func proxyAddress(n int) content {
	data := map[string]string{"address": "http://proxy.example:3128", "username": "user", "password": fmt.Sprintf("password-%d", n)}
	if n > 1 {
		// A key that is gone must be gone from the copy too.
		delete(data, "password")
	}
	return content{corev1.SecretTypeOpaque, data}
}

func publicKey(n int) content {
	der, err := x509.MarshalPKIXPublicKey(key(n).Public())
	if err != nil {
		panic(err)
	}
	name := "cosign.pub"
	if n > 1 {
		// So must a key that was renamed.
		name = "next.pub"
	}
	return content{corev1.SecretTypeOpaque, map[string]string{name: string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))}}
}

func key(n int) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte(strings.Repeat(fmt.Sprint(n%10), ed25519.SeedSize)))
}

// certificates has one certificate under each of two keys. They are made once: they are not the same when made again.
func certificates(n int) content {
	return content{"", map[string]string{"ca-bundle.crt": bundles[n], "other.crt": bundles[n+1]}}
}

var bundles = []string{certificate(0), certificate(1), certificate(2), certificate(3)}

func certificate(n int) string {
	template := &x509.Certificate{SerialNumber: big.NewInt(int64(n)), Subject: pkix.Name{CommonName: "ca"}, NotAfter: time.Unix(1<<32, 0), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(nil, template, template, key(n).Public(), key(n))
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// mended is an input that can be had, with as little changed as possible.
func (i input) mended() input {
	i = i.copy()
	good := start(false)
	if i.ConfigName == "" {
		i.ConfigName = good.ConfigName
	}
	i.Config.AvailableImages = good.Config.AvailableImages
	if i.Config.Values != nil && i.Config.Values.Server != nil && strings.Contains(string(i.Config.Values.Server.Raw), "{{") {
		i.Config.Values.Server = nil
	}
	if charts := i.Config.Charts; charts != nil {
		charts.Digests = nil
		if charts.Version == unpublished {
			charts.Version = ""
		}
	}
	for reference, original := range good.Objects {
		if current, exists := i.Objects[reference]; !exists || len(current.Data) == 0 {
			i.Objects[reference] = original
		}
	}
	return i
}
