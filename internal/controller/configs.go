package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// Configs finds the ProviderConfig that applies.
type Configs struct {
	// Platform reads from the cache of the platform cluster.
	Platform client.Reader
	// ProviderName is the name of the ServiceProvider that this process runs for.
	ProviderName string
}

// Current is the ProviderConfig of the provider's name, or the one named "default"; nil when there is neither. One that is being deleted
// still counts: it applies until it is gone.
func (c Configs) Current(ctx context.Context) (*v1alpha1.ProviderConfig, error) {
	for _, name := range []string{c.ProviderName, v1alpha1.DefaultProviderConfigName} {
		config := &v1alpha1.ProviderConfig{}
		err := c.Platform.Get(ctx, client.ObjectKey{Name: name}, config)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read ProviderConfig %q: %w", name, err)
		}
		return config, nil
	}
	return nil, nil
}
