package property

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// state is every object of a Velero as text, by kind and name, without what tells when and how often it was written.
type state map[string]string

// sourceHash is in the names of OCIRepositories. It derives, among others, from UIDs and resource versions.
var sourceHash = regexp.MustCompile(`(velero-control-plane|velero-server)-[0-9a-f]{10}\b`)

func (w *world) state(ctx context.Context) (state, error) {
	all := state{}
	lists := []client.ObjectList{
		&helmv2.HelmReleaseList{}, &sourcev1.OCIRepositoryList{}, &corev1.SecretList{}, &clustersv1alpha1.AccessRequestList{}, &clustersv1alpha1.ClusterRequestList{},
	}
	for _, list := range lists {
		for _, names := range w.names {
			if err := all.add(ctx, w.platform, list, client.InNamespace(names.TenantNamespace)); err != nil {
				return nil, err
			}
		}
	}
	if err := all.add(ctx, w.platform, &v1alpha1.ProviderConfigList{}); err != nil {
		return nil, err
	}
	return all, all.add(ctx, w.onboarding, &v1alpha1.VeleroList{})
}

func (s state) add(ctx context.Context, server *apiServer, list client.ObjectList, options ...client.ListOption) error {
	if err := server.List(ctx, list, options...); err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	for _, item := range items {
		object := item.(client.Object)
		if err := mask(object); err != nil {
			return err
		}
		text, err := json.MarshalIndent(object, "", " ")
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%T %s/%s", object, object.GetNamespace(), sourceHash.ReplaceAllString(object.GetName(), "$1-HASH"))
		if _, twice := s[name]; twice {
			return fmt.Errorf("there is more than one %s", name)
		}
		s[name] = sourceHash.ReplaceAllString(string(text), "$1-HASH")
	}
	return nil
}

// mask removes what may differ.
func mask(object client.Object) error {
	if _, generated := object.GetAnnotations()[plan.SourcesAnnotation]; generated {
		object.SetAnnotations(map[string]string{plan.SourcesAnnotation: "FINGERPRINT"})
	}
	generation := object.GetGeneration()
	object.SetUID("")
	object.SetResourceVersion("")
	object.SetGeneration(0)
	object.SetCreationTimestamp(metav1.Time{})
	object.SetManagedFields(nil)
	switch object := object.(type) {
	case *v1alpha1.Velero:
		if object.Status.ObservedGeneration != generation {
			return fmt.Errorf("the status is of generation %d, the Velero is at %d", object.Status.ObservedGeneration, generation)
		}
		object.Status.ObservedGeneration = 0
		return maskConditions(object.Status.Conditions, generation)
	case *v1alpha1.ProviderConfig:
		object.Status.ObservedGeneration = 0
		return maskConditions(object.Status.Conditions, generation)
	case *helmv2.HelmRelease:
		// What runs, and not what ran before.
		runs := *object.Status.History[0]
		runs.Version = 0
		object.Status = helmv2.HelmReleaseStatus{History: helmv2.Snapshots{&runs}}
	case *sourcev1.OCIRepository:
		object.Status = sourcev1.OCIRepositoryStatus{Artifact: object.Status.Artifact}
	case *clustersv1alpha1.AccessRequest:
		object.Status.ObservedGeneration = 0
	}
	return nil
}

func maskConditions(conditions []metav1.Condition, generation int64) error {
	for i := range conditions {
		if conditions[i].ObservedGeneration != generation {
			return fmt.Errorf("condition %s is of generation %d, the object is at %d", conditions[i].Type, conditions[i].ObservedGeneration, generation)
		}
		conditions[i].ObservedGeneration, conditions[i].LastTransitionTime = 0, metav1.Time{}
	}
	return nil
}

// verdict is what a user is told first, which must not depend on the path either when what is asked for cannot be had.
type verdict struct {
	Phase                string
	Configuration, Ready metav1.Condition
}

func (w *world) verdict(ctx context.Context, velero types.NamespacedName) (verdict, error) {
	object := &v1alpha1.Velero{}
	if err := w.onboarding.Get(ctx, velero, object); err != nil {
		return verdict{}, err
	}
	if err := maskConditions(object.Status.Conditions, object.Generation); err != nil {
		return verdict{}, err
	}
	told := verdict{Phase: object.Status.Phase}
	for _, condition := range object.Status.Conditions {
		switch condition.Type {
		case v1alpha1.ConditionReady:
			told.Ready = condition
		case v1alpha1.ConditionConfigurationValid:
			told.Configuration = condition
		}
	}
	// It may add that what is installed stays as it is.
	told.Ready.Message, _, _ = strings.Cut(told.Ready.Message, "; what is installed")
	return told, nil
}

// check looks at what must hold in the end: each release uses a source that exists, and runs only images that are offered now.
func (w *world) check(ctx context.Context) error {
	offered := map[string]bool{}
	for _, available := range w.input.Config.AvailableImages {
		for _, version := range available.Versions {
			offered[imageReference(available.Image, version)] = true
		}
	}
	for _, names := range w.names {
		if err := w.checkOne(ctx, names, offered); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) checkOne(ctx context.Context, names plan.Names, offered map[string]bool) error {
	for _, name := range []string{plan.ControlPlaneRelease, plan.ServerRelease} {
		release := &helmv2.HelmRelease{}
		if err := w.platform.Get(ctx, types.NamespacedName{Namespace: names.TenantNamespace, Name: name}, release); err != nil {
			return err
		}
		if err := w.platform.Get(ctx, types.NamespacedName{Namespace: release.Namespace, Name: release.Spec.ChartRef.Name}, &sourcev1.OCIRepository{}); err != nil {
			return fmt.Errorf("the source of %s: %w", name, err)
		}
		images := imagesOf(release)
		if len(images) == 0 {
			return fmt.Errorf("%s has no image", name)
		}
		for _, image := range images {
			if !offered[image] {
				return fmt.Errorf("%s has image %q, which is not offered", name, image)
			}
		}
	}
	return nil
}

// imagesOf finds every image in the values of a release.
func imagesOf(release *helmv2.HelmRelease) []string {
	if release.Spec.Values == nil {
		return nil
	}
	var values any
	if err := json.Unmarshal(release.Spec.Values.Raw, &values); err != nil {
		return []string{"values that are no JSON"}
	}
	return imagesIn(values)
}

func imagesIn(value any) []string {
	var images []string
	switch value := value.(type) {
	case map[string]any:
		for key, element := range value {
			if text, isText := element.(string); isText && key == "image" {
				images = append(images, text)
			}
			images = append(images, imagesIn(element)...)
		}
	case []any:
		for _, element := range value {
			images = append(images, imagesIn(element)...)
		}
	}
	slices.Sort(images)
	return images
}
