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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// deniedWith is how an API server passes on what a webhook answers.
func deniedWith(code int32, reason metav1.StatusReason) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: `admission webhook "x" denied the request: no`}}
}

func TestRefusal(t *testing.T) {
	resource, kind := schema.GroupResource{Resource: "secrets"}, schema.GroupKind{Kind: "Secret"}
	terminating := apierrors.NewForbidden(resource, "x", errors.New("because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	tests := map[string]struct {
		err  error
		want bool
	}{
		"Forbidden":        {apierrors.NewForbidden(resource, "x", errors.New("exceeded quota: all")), true},
		"Invalid":          {apierrors.NewInvalid(kind, "x", nil), true},
		"WebhookForbidden": {deniedWith(http.StatusForbidden, ""), true},
		"WebhookNoCode":    {deniedWith(http.StatusBadRequest, ""), true},
		"PolicyInvalid":    {deniedWith(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid), true},
		"Wrapped":          {fmt.Errorf("create: %w", deniedWith(http.StatusForbidden, metav1.StatusReasonForbidden)), true},
		"NamespaceIsGoing": {terminating, false},
		"Conflict":         {apierrors.NewConflict(resource, "x", errors.New("changed")), false},
		"Exists":           {apierrors.NewAlreadyExists(resource, "x"), false},
		"NotFound":         {apierrors.NewNotFound(resource, "x"), false},
		"Throttled":        {apierrors.NewTooManyRequests("slow down", 1), false},
		"WebhookThrottles": {deniedWith(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests), false},
		"ServerTimeout":    {apierrors.NewServerTimeout(resource, "create", 1), false},
		"Timeout":          {apierrors.NewTimeoutError("late", 1), false},
		"WebhookIsDown":    {apierrors.NewInternalError(errors.New(`failed calling webhook "x"`)), false},
		"Unavailable":      {apierrors.NewServiceUnavailable("down"), false},
		"Unauthorized":     {apierrors.NewUnauthorized("who"), false},
		"Deadline":         {context.DeadlineExceeded, false},
		"NoAnswer":         {errors.New("connection refused"), false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var subject refusals
			if subject.stands(veleroA, test.err, start) {
				t.Error("it is told at once")
			}
			if got := subject.stands(veleroA, test.err, start.Add(standing)); got != test.want {
				t.Errorf("told after %s: %t, want %t", standing, got, test.want)
			}
		})
	}
}

func TestRefusalsAreOver(t *testing.T) {
	var subject refusals
	refused := deniedWith(http.StatusForbidden, "")
	subject.stands(veleroA, refused, start)
	if subject.stands(veleroB, refused, start.Add(standing)) {
		t.Error("that of another Velero counts")
	}
	if subject.stands(veleroA, refused, start.Add(standing-time.Millisecond)) {
		t.Error("it is told too early")
	}
	subject.over(veleroA)
	if subject.stands(veleroA, refused, start.Add(standing)) {
		t.Error("one that was over counts")
	}
}
