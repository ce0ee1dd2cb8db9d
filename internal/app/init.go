package app

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/controller-utils/pkg/clusters"
	crdutil "github.com/openmcp-project/controller-utils/pkg/crds"
	"github.com/openmcp-project/controller-utils/pkg/logging"
	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	openmcpconst "github.com/openmcp-project/openmcp-operator/api/constants"
	libutils "github.com/openmcp-project/openmcp-operator/lib/utils"

	"github.com/openmcp-project/service-provider-velero/api/crds"
	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// establishTimeout bounds the wait for an API server to serve a CRD.
const establishTimeout = time.Minute

// Init installs the CRDs on the onboarding and the platform cluster and registers the API with openmcp-operator. It can be repeated.
//
// Registering comes last, and only when everything else succeeded: openmcp-operator looks for every registered kind when it deletes a control
// plane, and one that no API server knows would block the deletion of every control plane.
func Init(ctx context.Context, options Options, log logging.Logger) error {
	if err := options.validate(); err != nil {
		return err
	}
	config, err := options.platformConfig()
	if err != nil {
		return err
	}
	platform := clusters.New(clustersv1alpha1.PURPOSE_PLATFORM).WithRESTConfig(config)
	if err := platform.InitializeClient(platformScheme()); err != nil {
		return fmt.Errorf("connect to the platform cluster: %w", err)
	}
	log.Info("waiting for access to the onboarding cluster")
	access, err := requestOnboarding(ctx, platform.Client(), "onboarding-init", options.AccessTimeout, onboardingScheme(), onboardingInit())
	if err != nil {
		return err
	}
	if err := installCRDs(ctx, log, platform, access.cluster); err != nil {
		return err
	}
	log.Info("registering the API", "serviceProvider", options.ProviderName)
	kind := metav1.GroupVersionKind{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: "Velero"}
	if err := libutils.RegisterGVKsAtServiceProvider(ctx, platform.Client(), options.ProviderName, kind); err != nil {
		return fmt.Errorf("register the API: %w", err)
	}
	return nil
}

func installCRDs(ctx context.Context, log logging.Logger, platform, onboarding *clusters.Cluster) error {
	manager := crdutil.NewCRDManager(openmcpconst.ClusterLabel, crds.CRDs)
	targets := map[string]*clusters.Cluster{clustersv1alpha1.PURPOSE_PLATFORM: platform, clustersv1alpha1.PURPOSE_ONBOARDING: onboarding}
	for label, cluster := range targets {
		manager.AddCRDLabelToClusterMapping(label, cluster)
	}
	if err := manager.CreateOrUpdateCRDs(ctx, &log); err != nil {
		return err
	}
	all, err := crds.CRDs()
	if err != nil {
		return fmt.Errorf("decode the CRDs: %w", err)
	}
	for _, crd := range all {
		if err := waitEstablished(ctx, targets[crd.Labels[openmcpconst.ClusterLabel]].Client(), crd.Name); err != nil {
			return err
		}
	}
	return nil
}

func waitEstablished(ctx context.Context, cluster client.Client, name string) error {
	err := wait.PollUntilContextTimeout(ctx, accessPoll, establishTimeout, true, func(ctx context.Context) (bool, error) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := cluster.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return false, err
		}
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established {
				return condition.Status == apiextensionsv1.ConditionTrue, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait until CRD %q is served: %w", name, err)
	}
	return nil
}
