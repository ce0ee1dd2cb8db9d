package landscape_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

func TestFluxInstallsAChartWithGrantedAccess(t *testing.T) {
	l := up(t)
	const version = "0.2.0-test"
	if err := l.PublishChart(t.Context(), "test/landscape/testdata/chart", version); err != nil {
		t.Fatal(err)
	}
	all := []string{"*"}
	rights := permission("flux", "")
	rights.Rules[0].Resources, rights.Rules[0].Verbs = all, all
	request := ask(t, l, "flux", rights)
	platform := clientOf(t, l.Platform)
	for _, object := range release(l, request, version) {
		if err := platform.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	installed := &corev1.ConfigMap{}
	eventually(t, "the chart is installed on the workload cluster", func() error {
		return clientOf(t, l.Workload).Get(t.Context(), client.ObjectKey{Namespace: "flux", Name: "smallest"}, installed)
	})
	// helm-controller adds the digest of the chart to its version.
	if !strings.HasPrefix(installed.Data["version"], version+"+") {
		t.Errorf("version %q of the chart is installed", installed.Data["version"])
	}
	hr := &helmv2.HelmRelease{}
	eventually(t, "the HelmRelease is Ready", func() error {
		if err := platform.Get(t.Context(), client.ObjectKey{Namespace: request.Namespace, Name: "smallest"}, hr); err != nil {
			return err
		}
		for _, condition := range hr.Status.Conditions {
			if condition.Type == fluxmeta.ReadyCondition && condition.Status == metav1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("conditions %+v", hr.Status.Conditions)
	})
}

func release(l *landscape.Landscape, request *clustersv1alpha1.AccessRequest, version string) []client.Object {
	meta := metav1.ObjectMeta{Namespace: request.Namespace, Name: "smallest"}
	source := &sourcev1.OCIRepository{ObjectMeta: meta, Spec: sourcev1.OCIRepositorySpec{
		URL: l.ChartRepository() + "/smallest", Reference: &sourcev1.OCIRepositoryRef{Tag: version},
		Interval: metav1.Duration{Duration: time.Hour},
		LayerSelector: &sourcev1.OCILayerSelector{
			MediaType: "application/vnd.cncf.helm.chart.content.v1.tar+gzip", Operation: sourcev1.OCILayerCopy,
		},
	}}
	hr := &helmv2.HelmRelease{ObjectMeta: meta, Spec: helmv2.HelmReleaseSpec{
		ChartRef: &helmv2.CrossNamespaceSourceReference{Kind: sourcev1.OCIRepositoryKind, Name: meta.Name},
		Interval: metav1.Duration{Duration: time.Hour}, TargetNamespace: "flux", StorageNamespace: "flux",
		KubeConfig: &fluxmeta.KubeConfigReference{SecretRef: &fluxmeta.SecretKeyReference{
			Name: request.Status.SecretRef.Name, Key: clustersv1alpha1.SecretKeyKubeconfig,
		}},
	}}
	return []client.Object{source, hr}
}
