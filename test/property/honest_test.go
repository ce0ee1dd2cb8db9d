package property

import (
	"context"
	"fmt"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// honest: whoever is told Ready has what it asks for, at every moment.
func (w *world) honest(ctx context.Context) error {
	for i, velero := range veleros {
		object, release := &v1alpha1.Velero{}, &helmv2.HelmRelease{}
		if err := w.onboarding.Get(ctx, velero, object); err != nil {
			return err
		}
		if object.Status.Phase != string(v1alpha1.Ready) || object.Status.ObservedGeneration != object.Generation {
			continue
		}
		if err := w.platform.Get(ctx, types.NamespacedName{Namespace: w.names[i].TenantNamespace, Name: plan.ServerRelease}, release); err != nil {
			return err
		}
		asked := []string{object.Spec.Version}
		for _, plugin := range object.Spec.Plugins {
			asked = append(asked, plugin.Version)
		}
		images := imagesOf(release)
		for _, version := range asked {
			if !anyOf(images, version) {
				return fmt.Errorf("Velero %s is Ready and asks for %s, and its images are %q", velero.Name, version, images)
			}
		}
		if len(images) != len(asked) {
			return fmt.Errorf("Velero %s is Ready and asks for %q, and its images are %q", velero.Name, asked, images)
		}
	}
	return nil
}

// anyOf says whether one of the images is of a version, maybe pinned to a digest.
func anyOf(images []string, version string) bool {
	for _, image := range images {
		if strings.HasSuffix(image, version) || strings.Contains(image, ":"+version+"@") {
			return true
		}
	}
	return false
}
