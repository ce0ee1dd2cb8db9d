package e2e

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

const (
	operatorNamespace = "openmcp-system"
	serverImage       = "velero/velero"
	awsImage          = "velero/velero-plugin-for-aws"
	gcpImage          = "registry.example:5000/team/velero-plugin-for-gcp"
	oldVersion        = "v1.17.1"
	newVersion        = "v1.18.3"
	pullSecret        = "privateregcred"
)

var (
	aws = v1alpha1.Plugin{Name: "aws", Version: "v1.13.0"}
	gcp = v1alpha1.Plugin{Name: "gcp", Version: "v1.14.2"}
)

// offered is the ProviderConfig of a platform operator.
func offered() *v1alpha1.ProviderConfig {
	return &v1alpha1.ProviderConfig{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.DefaultProviderConfigName},
		Spec: v1alpha1.ProviderConfigSpec{
			AvailableImages: []v1alpha1.AvailableImage{
				{Name: v1alpha1.ServerImageName, Image: serverImage, Versions: []string{oldVersion, newVersion}},
				{Name: aws.Name, Image: awsImage, Versions: []string{aws.Version}},
				{Name: gcp.Name, Image: gcpImage, Versions: []string{gcp.Version}},
			},
			ImagePullSecrets: []v1alpha1.SecretReference{{Name: pullSecret}},
			Charts:           &v1alpha1.Charts{Repository: world.ChartRepository()},
		},
	}
}

// offer puts the ProviderConfig and the Secret that it names on the platform.
func offer(ctx context.Context) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: operatorNamespace, Name: pullSecret},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"registry.example:5000":{"auth":"dXNlcjpwYXNz"}}}`)},
	}
	if err := ensure(ctx, platform, secret); err != nil {
		return err
	}
	return ensure(ctx, platform, offered())
}

// changeOffer edits the ProviderConfig.
func changeOffer(t *testing.T, edit func(*v1alpha1.ProviderConfigSpec)) {
	t.Helper()
	eventually(t, soon, "change the ProviderConfig", func(ctx context.Context) error {
		config := &v1alpha1.ProviderConfig{}
		if err := platform.Get(ctx, client.ObjectKey{Name: v1alpha1.DefaultProviderConfigName}, config); err != nil {
			return err
		}
		edit(&config.Spec)
		return platform.Update(ctx, config)
	})
}
