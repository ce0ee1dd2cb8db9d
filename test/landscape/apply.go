package landscape

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Apply applies a file with one or more manifests, as kubectl apply --server-side does. Objects without a namespace whose
// kind has one go to the namespace default.
func (c Cluster) Apply(ctx context.Context, manifests []byte) error {
	cl, err := c.Client()
	if err != nil {
		return err
	}
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifests)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the manifests: %w", err)
		}
		if err := apply(ctx, cl, document); err != nil {
			return fmt.Errorf("apply to cluster %s: %w", c.Name, err)
		}
	}
}

func apply(ctx context.Context, c client.Client, document []byte) error {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(document, &object.Object); err != nil {
		return fmt.Errorf("parse a manifest: %w", err)
	}
	if len(object.Object) == 0 {
		return nil
	}
	namespaced, err := c.IsObjectNamespaced(object)
	if err != nil {
		return err
	}
	if namespaced && object.GetNamespace() == "" {
		object.SetNamespace("default")
	}
	return c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("landscape"), client.ForceOwnership)
}
