package status

import (
	"strings"
	"unicode/utf8"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// maxMessage is the longest message that a status has. Ours are shorter; those that name what is offered may not be.
const maxMessage = 1024

// verdict is what one condition says. Its message is ours, never one of Flux.
type verdict struct {
	status          metav1.ConditionStatus
	reason, message string
	// person: nothing will change before a person acts.
	person bool
	// unready: what was installed did not become ready.
	unready bool
}

func good(reason, message string) verdict {
	return verdict{status: metav1.ConditionTrue, reason: reason, message: message}
}

// waiting is for what comes, or may come, without a person.
func waiting(reason, message string) verdict {
	return verdict{status: metav1.ConditionFalse, reason: reason, message: message}
}

func stuck(reason, message string) verdict {
	return verdict{status: metav1.ConditionFalse, reason: reason, message: message, person: true}
}

func unknown(reason, message string) verdict {
	return verdict{status: metav1.ConditionUnknown, reason: reason, message: message}
}

// none says that there is no verdict.
func (v verdict) none() bool { return v.reason == "" }

// and adds to the message.
func (v verdict) and(addition string) verdict {
	v.message += addition
	return v
}

// named is the verdict on one condition type.
type named struct {
	conditionType string
	verdict
}

type verdicts []named

// summary is the verdict on Ready: the first that is not True says why.
func (v verdicts) summary(version string) verdict {
	var first *verdict
	status := metav1.ConditionUnknown
	for _, one := range v {
		if one.status == metav1.ConditionTrue {
			continue
		}
		if first == nil {
			first = &one.verdict
		}
		if one.status == metav1.ConditionFalse {
			status = metav1.ConditionFalse
		}
	}
	if first == nil {
		return good(v1alpha1.ReasonReady, "Velero "+version+" is installed")
	}
	return verdict{status: status, reason: first.reason, message: first.message}
}

// conditionOrder is how the conditions are listed: the summary, and then what stands in its way first.
var conditionOrder = []string{
	v1alpha1.ConditionReady, v1alpha1.ConditionConfigurationValid, v1alpha1.ConditionAccessGranted,
	v1alpha1.ConditionControlPlaneInstalled, v1alpha1.ConditionServerInstalled,
}

// conditions are the stored ones with the verdicts in them, in an order that does not depend on how they were stored. The stored ones may be
// overwritten.
func (v verdicts) conditions(stored []metav1.Condition, generation int64, now metav1.Time) []metav1.Condition {
	for _, one := range v {
		// Keeps the time of the last transition unless the status changes.
		apimeta.SetStatusCondition(&stored, metav1.Condition{
			Type: one.conditionType, Status: one.status, Reason: one.reason, Message: bounded(one.message),
			ObservedGeneration: generation, LastTransitionTime: now,
		})
	}
	ordered := make([]metav1.Condition, 0, len(stored))
	for _, conditionType := range conditionOrder {
		if condition := apimeta.FindStatusCondition(stored, conditionType); condition != nil {
			ordered = append(ordered, *condition)
		}
	}
	for _, condition := range stored {
		if apimeta.FindStatusCondition(ordered, condition.Type) == nil {
			ordered = append(ordered, condition)
		}
	}
	return ordered
}

// bounded is the message, cut where it is too long for the API.
func bounded(message string) string {
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= maxMessage {
		return message
	}
	const ellipsis = "…"
	end := maxMessage - len(ellipsis)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + ellipsis
}
