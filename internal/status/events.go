package status

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// Event is something about a Velero that is worth telling.
type Event struct {
	// Type is Normal or Warning.
	Type            string
	Reason, Message string
}

// quiet are the reasons for which nothing has happened yet: what is waited for is told when it is there.
var quiet = []string{
	v1alpha1.ReasonWaitingForConfiguration, v1alpha1.ReasonWaitingForAccess, v1alpha1.ReasonWaitingForCRDs,
	v1alpha1.ReasonWaitingForControlPlane, v1alpha1.ReasonWaitingForWorkloadCluster, v1alpha1.ReasonFetchingChart,
}

// expected are the reasons for which something goes on that is in order.
var expected = append([]string{v1alpha1.ReasonInstalling, v1alpha1.ReasonWaitingForBackup, v1alpha1.ReasonControlPlaneDeleting}, removalSteps...)

// Transitions are the events that follow from a change of conditions: one for each whose status or reason changed. A Warning tells of what
// failed; waiting is silent, unless something that was there is missing again.
func Transitions(before, after []metav1.Condition) []Event {
	var events []Event
	// The details come first: the summary repeats the first of them, and then it is no news.
	for _, condition := range slices.Concat(details(after), summaries(after)) {
		event, ok := transition(apimeta.FindStatusCondition(before, condition.Type), condition)
		if ok && !slices.Contains(events, event) {
			events = append(events, event)
		}
	}
	return events
}

func transition(before *metav1.Condition, after metav1.Condition) (Event, bool) {
	if before != nil && before.Status == after.Status && before.Reason == after.Reason {
		return Event{}, false
	}
	event := Event{Type: corev1.EventTypeWarning, Reason: after.Reason, Message: after.Message}
	lost := before != nil && before.Status == metav1.ConditionTrue
	switch {
	case after.Reason == v1alpha1.ReasonValidWithWarnings:
	case after.Status == metav1.ConditionTrue, slices.Contains(expected, after.Reason):
		event.Type = corev1.EventTypeNormal
	case slices.Contains(quiet, after.Reason):
		event.Type = corev1.EventTypeNormal
		return event, lost
	case after.Status == metav1.ConditionUnknown:
		return event, before != nil
	}
	return event, true
}

func details(conditions []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), isSummary)
}

func summaries(conditions []metav1.Condition) []metav1.Condition {
	return slices.DeleteFunc(slices.Clone(conditions), func(condition metav1.Condition) bool { return !isSummary(condition) })
}

func isSummary(condition metav1.Condition) bool { return condition.Type == v1alpha1.ConditionReady }
