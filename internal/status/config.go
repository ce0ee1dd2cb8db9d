package status

import (
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// ComputeConfig says what a ProviderConfig is told that has that many users, and a problem or none. It does not modify its inputs.
func ComputeConfig(config *v1alpha1.ProviderConfig, veleros int, problem *plan.Blocked, now metav1.Time) v1alpha1.ProviderConfigStatus {
	status := *config.Status.DeepCopy()
	status.ObservedGeneration = config.Generation
	status.Veleros = int32(min(max(veleros, 0), math.MaxInt32))
	status.Offered = offered(config.Spec.AvailableImages)
	valid, phase := good(v1alpha1.ReasonValid, "the configuration can be used"), v1alpha1.Ready
	if problem != nil {
		valid, phase = stuck(problem.Reason, problem.Message), v1alpha1.Failed
	}
	if !config.DeletionTimestamp.IsZero() {
		phase = v1alpha1.Terminating
	}
	status.Phase = string(phase)
	status.Conditions = verdicts{{v1alpha1.ConditionReady, valid}}.conditions(status.Conditions, config.Generation, now)
	return status
}

// offered lists the components as the configuration does.
func offered(images []v1alpha1.AvailableImage) []v1alpha1.OfferedComponent {
	components := make([]v1alpha1.OfferedComponent, 0, len(images))
	for _, image := range images {
		components = append(components, v1alpha1.OfferedComponent{Name: image.Name, Versions: slices.Clone(image.Versions)})
	}
	return components
}

// ConfigChanged says whether the new status of a ProviderConfig must be written.
func ConfigChanged(before, after v1alpha1.ProviderConfigStatus) bool {
	return !equality.Semantic.DeepEqual(before, after)
}
