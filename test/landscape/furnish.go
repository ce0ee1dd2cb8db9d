package landscape

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"
	openmcpconst "github.com/openmcp-project/openmcp-operator/api/constants"
	"github.com/openmcp-project/openmcp-operator/api/crds"
	providerv1alpha1 "github.com/openmcp-project/openmcp-operator/api/provider/v1alpha1"

	"github.com/openmcp-project/service-provider-velero/test/landscape/clusterprovider"
)

// furnishPlatform puts on the platform cluster what an operator of the platform would: CRDs, namespaces, the profile of the
// cluster provider, and the objects that announce the providers.
func (l *Landscape) furnishPlatform(ctx context.Context) error {
	c, err := l.Platform.Client()
	if err != nil {
		return err
	}
	definitions, err := l.platformCRDs(ctx)
	if err != nil {
		return err
	}
	if err := establish(ctx, c, definitions); err != nil {
		return err
	}
	if err := create(ctx, c, l.platformObjects()...); err != nil {
		return err
	}
	return announceService(ctx, c)
}

func (l *Landscape) platformObjects() []client.Object {
	profile := &clustersv1alpha1.ClusterProfile{Spec: clustersv1alpha1.ClusterProfileSpec{
		ProviderRef:       commonapi.LocalObjectReference{Name: clusterprovider.Name},
		ProviderConfigRef: commonapi.LocalObjectReference{Name: clusterprovider.Name},
		SupportedVersions: []clustersv1alpha1.SupportedK8sVersion{{Version: strings.TrimPrefix(l.site.KubernetesVersion, "v")}},
	}}
	profile.Name = clusterprovider.Name
	service := &providerv1alpha1.ServiceProvider{}
	service.Name = ProviderName
	service.Spec.Image = "local" // the operator runs as a process, but the field is required
	platform := &providerv1alpha1.PlatformService{}
	platform.Name = controlPlanes
	platform.Spec.Image = "local"
	objects := []client.Object{profile, service, platform}
	for _, name := range []string{SystemNamespace, "clusters", "flux-system"} {
		namespace := &corev1.Namespace{}
		namespace.Name = name
		objects = append([]client.Object{namespace}, objects...)
	}
	return objects
}

// announceService gives the ServiceProvider the status that openmcp-operator sets before it starts a provider's init job; without it
// the API server refuses the API that init registers there.
func announceService(ctx context.Context, c client.Client) error {
	service := &providerv1alpha1.ServiceProvider{}
	if err := c.Get(ctx, client.ObjectKey{Name: ProviderName}, service); err != nil {
		return fmt.Errorf("read ServiceProvider %q: %w", ProviderName, err)
	}
	if service.Status.Phase != "" {
		return nil
	}
	service.Status.ObservedGeneration, service.Status.Phase = service.Generation, commonapi.StatusPhaseProgressing
	if err := c.Status().Update(ctx, service); err != nil {
		return fmt.Errorf("announce ServiceProvider %q: %w", ProviderName, err)
	}
	return nil
}

// furnishOnboarding puts the CRD of ControlPlane on the onboarding cluster.
func (l *Landscape) furnishOnboarding(ctx context.Context) error {
	c, err := l.Onboarding.Client()
	if err != nil {
		return err
	}
	definitions, err := openMCPCRDs(clustersv1alpha1.PURPOSE_ONBOARDING)
	if err != nil {
		return err
	}
	return establish(ctx, c, definitions)
}

// furnishWorkload puts two nodes on the workload cluster, which kwok then brings to life. Real ones register themselves.
func (l *Landscape) furnishWorkload(ctx context.Context) error {
	if l.RealNodes() {
		return nil
	}
	c, err := l.Workload.Client()
	if err != nil {
		return err
	}
	var nodes []client.Object
	for _, name := range []string{"node-a", "node-b"} {
		node := &corev1.Node{}
		node.Name = name
		node.Labels = map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: runtime.GOARCH}
		node.Status.Allocatable = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"),
			corev1.ResourcePods: resource.MustParse("500"), corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		}
		node.Status.Capacity = node.Status.Allocatable
		nodes = append(nodes, node)
	}
	return create(ctx, c, nodes...)
}

// platformCRDs are those of openMCP and of Flux.
func (l *Landscape) platformCRDs(ctx context.Context) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	definitions, err := openMCPCRDs(clustersv1alpha1.PURPOSE_PLATFORM)
	if err != nil {
		return nil, err
	}
	shelf, err := l.shelf()
	if err != nil {
		return nil, err
	}
	files, err := shelf.FluxCRDs(ctx)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a CRD of Flux: %w", err)
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(content, definition); err != nil {
			return nil, fmt.Errorf("parse %s: %w", file, err)
		}
		definitions = append(definitions, definition)
	}
	return definitions, nil
}

// openMCPCRDs are the CRDs that openMCP labels for the given cluster.
func openMCPCRDs(purpose string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	all, err := crds.CRDs()
	if err != nil {
		return nil, fmt.Errorf("read the CRDs of openMCP: %w", err)
	}
	var wanted []*apiextensionsv1.CustomResourceDefinition
	for _, definition := range all {
		if definition.Labels[openmcpconst.ClusterLabel] == purpose {
			wanted = append(wanted, definition)
		}
	}
	return wanted, nil
}

// establish creates CRDs and waits until their kinds are served.
func establish(ctx context.Context, c client.Client, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	for _, definition := range definitions {
		if err := create(ctx, c, definition); err != nil {
			return err
		}
	}
	for _, definition := range definitions {
		err := poll(ctx, time.Minute, func(ctx context.Context) error {
			found := &apiextensionsv1.CustomResourceDefinition{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(definition), found); err != nil {
				return err
			}
			for _, condition := range found.Status.Conditions {
				if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
					return nil
				}
			}
			return fmt.Errorf("CRD %s is not established", definition.Name)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// create makes objects that are not there yet.
func create(ctx context.Context, c client.Client, objects ...client.Object) error {
	for _, object := range objects {
		object.SetResourceVersion("")
		object.SetCreationTimestamp(metav1.Time{})
		if err := c.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %T %s: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// poll tries until check succeeds, and returns its last error when time runs out.
func poll(ctx context.Context, limit time.Duration, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("gave up after %s: %w", limit, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
