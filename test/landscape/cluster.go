package landscape

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	corev2alpha1 "github.com/openmcp-project/openmcp-operator/api/core/v2alpha1"
	"github.com/openmcp-project/openmcp-operator/api/install"
	libutils "github.com/openmcp-project/openmcp-operator/lib/utils"

	"github.com/openmcp-project/service-provider-velero/test/landscape/apiserver"
	"github.com/openmcp-project/service-provider-velero/test/landscape/clusterprovider"
)

// Cluster is one API server of the landscape, with an administrator's access to it.
type Cluster struct{ apiserver.Server }

// Client returns an administrator's client that knows the kinds of Kubernetes, openMCP and Flux, and those that are added.
func (c Cluster) Client(add ...func(*runtime.Scheme) error) (client.Client, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	scheme := Scheme()
	for _, kinds := range add {
		if err := kinds(scheme); err != nil {
			return nil, fmt.Errorf("add kinds for cluster %s: %w", c.Name, err)
		}
	}
	cl, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to cluster %s: %w", c.Name, err)
	}
	return cl, nil
}

// Scheme knows the kinds of Kubernetes, openMCP and Flux.
func Scheme() *runtime.Scheme {
	scheme := install.InstallOperatorAPIsPlatform(runtime.NewScheme())
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(corev2alpha1.AddToScheme(scheme))
	return scheme
}

// ControlPlane finds the API server behind a ControlPlane object of the onboarding cluster.
func (l *Landscape) ControlPlane(ctx context.Context, namespace, name string) (Cluster, error) {
	platform, err := l.Platform.Client()
	if err != nil {
		return Cluster{}, err
	}
	tenant, err := libutils.StableMCPNamespace(name, namespace)
	if err != nil {
		return Cluster{}, err
	}
	request := &clustersv1alpha1.ClusterRequest{}
	if err := platform.Get(ctx, client.ObjectKey{Namespace: tenant, Name: name}, request); err != nil {
		return Cluster{}, fmt.Errorf("find the control plane %s/%s: %w", namespace, name, err)
	}
	if request.Status.Cluster == nil {
		return Cluster{}, fmt.Errorf("the control plane %s/%s has no cluster yet", namespace, name)
	}
	cluster := &clustersv1alpha1.Cluster{}
	key := client.ObjectKey{Namespace: request.Status.Cluster.Namespace, Name: request.Status.Cluster.Name}
	if err := platform.Get(ctx, key, cluster); err != nil {
		return Cluster{}, fmt.Errorf("find the control plane %s/%s: %w", namespace, name, err)
	}
	server, found, err := apiserver.Open(l.site, clusterprovider.ServerName(cluster))
	if err == nil && !found {
		err = fmt.Errorf("the control plane %s/%s has no API server yet", namespace, name)
	}
	return Cluster{server}, err
}
