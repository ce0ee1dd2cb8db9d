package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// deniedWith is how an API server passes on what a webhook answers.
func deniedWith(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: `admission webhook "x" denied the request: no`}}
}

func TestReasonOfFailure(t *testing.T) {
	const refuses, incomplete, unavailable = v1alpha1.ReasonPlatformRefuses, v1alpha1.ReasonPlatformIncomplete, v1alpha1.ReasonPlatformUnavailable
	resource, kind := schema.GroupResource{Resource: "secrets"}, schema.GroupKind{Kind: "Secret"}
	terminating := apierrors.NewForbidden(resource, "x", errors.New("because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	tests := map[string]struct {
		err  error
		want string
	}{
		"Forbidden":        {apierrors.NewForbidden(resource, "x", errors.New("exceeded quota: all")), refuses},
		"Invalid":          {apierrors.NewInvalid(kind, "x", nil), refuses},
		"WebhookForbidden": {deniedWith(http.StatusForbidden, ""), refuses},
		"WebhookNoCode":    {deniedWith(http.StatusBadRequest, ""), refuses},
		"PolicyInvalid":    {deniedWith(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid), refuses},
		"Wrapped":          {fmt.Errorf("create: %w", deniedWith(http.StatusForbidden, metav1.StatusReasonForbidden)), refuses},
		"NoSuchKind":       {fmt.Errorf("list: %w", &apimeta.NoKindMatchError{GroupKind: kind}), incomplete},
		"KindNotServed":    {fmt.Errorf("create: %w", notServed()), incomplete},
		"NotFound":         {apierrors.NewNotFound(resource, "x"), unavailable},
		"NamespaceIsGoing": {terminating, unavailable},
		"Exists":           {apierrors.NewAlreadyExists(resource, "x"), unavailable},
		"ServerTimeout":    {apierrors.NewServerTimeout(resource, "create", 1), unavailable},
		"Timeout":          {apierrors.NewTimeoutError("late", 1), unavailable},
		"WebhookIsDown":    {apierrors.NewInternalError(errors.New(`failed calling webhook "x"`)), unavailable},
		"Unavailable":      {apierrors.NewServiceUnavailable("down"), unavailable},
		"Unauthorized":     {apierrors.NewUnauthorized("who"), unavailable},
		"Deadline":         {context.DeadlineExceeded, unavailable},
		"NoAnswer":         {errors.New("connection refused"), unavailable},
		"Conflict":         {apierrors.NewConflict(resource, "x", errors.New("changed")), ""},
		"Throttled":        {apierrors.NewTooManyRequests("slow down", 1), ""},
		"WebhookThrottles": {deniedWith(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests), ""},
		"OperatorStops":    {fmt.Errorf("create: %w", context.Canceled), ""},
	}
	lasts := map[string]time.Duration{refuses: standing, incomplete: standing, unavailable: outage, "": 0}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var subject failures
			for _, after := range []time.Duration{0, lasts[test.want] - time.Millisecond} {
				if reason, tell := subject.stands(veleroA, test.err, start.Add(after)); tell {
					t.Errorf("%s is told after %s", reason, after)
				}
			}
			reason, tell := subject.stands(veleroA, test.err, start.Add(max(lasts[test.want], time.Hour)))
			if reason != test.want || tell != (test.want != "") {
				t.Errorf("told in the end: %t, reason %q, want %q", tell, reason, test.want)
			}
		})
	}
}

// notServed is what a client makes of the answer of an API server that does not know the kind.
func notServed() error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "post", schema.GroupResource{Resource: "helmreleases"}, "", "404 page not found", 0, true)
}

func TestFailuresAreOver(t *testing.T) {
	var subject failures
	tells := func(velero types.NamespacedName, after time.Duration) bool {
		_, tell := subject.stands(velero, deniedWith(http.StatusForbidden, ""), start.Add(after))
		return tell
	}
	tells(veleroA, 0)
	if tells(veleroB, standing) {
		t.Error("that of another Velero counts")
	}
	if tells(veleroA, standing-time.Millisecond) {
		t.Error("it is told too early")
	}
	subject.over(veleroA)
	if tells(veleroA, standing) {
		t.Error("one that was over counts")
	}
}

// TestFailuresThatTakeTurns: they are told, but not in turns.
func TestFailuresThatTakeTurns(t *testing.T) {
	var subject failures
	told := map[string]int{}
	last := ""
	for after := time.Duration(0); after < 10*outage; after += time.Second {
		err := []error{deniedWith(http.StatusForbidden, ""), errors.New("connection refused"), apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("changed")), notServed()}[int(after.Seconds())%4]
		if reason, tell := subject.stands(veleroA, err, start.Add(after)); tell && reason != last {
			told[reason]++
			last = reason
		}
	}
	if told[v1alpha1.ReasonPlatformUnavailable] != 1 || len(told) != 1 {
		t.Errorf("told %v", told)
	}
	for after := 10 * outage; after <= 10*outage+standing; after += time.Second {
		last, _ = subject.stands(veleroA, notServed(), start.Add(after))
	}
	if _, tell := subject.stands(veleroA, errors.New("connection refused"), start.Add(11*outage)); last != v1alpha1.ReasonPlatformIncomplete || tell {
		t.Errorf("what lasts by itself is %s, and another takes its place at once: %t", last, tell)
	}
}
