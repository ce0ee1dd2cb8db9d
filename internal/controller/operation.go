package controller

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	openmcpconst "github.com/openmcp-project/openmcp-operator/api/constants"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// ignored says whether an object asks to be left alone, also while it is deleted (openMCP's rule for the operation annotation).
func ignored(object client.Object) bool {
	return object.GetAnnotations()[openmcpconst.OperationAnnotation] == openmcpconst.OperationAnnotationValueIgnore
}

// reportIgnored tells about a deletion that cannot go on, which is otherwise invisible and holds up the control plane's deletion too.
func (r *Reconciler) reportIgnored(velero *v1alpha1.Velero) {
	if velero.DeletionTimestamp.IsZero() {
		return
	}
	r.Recorder.Eventf(velero, nil, corev1.EventTypeWarning, v1alpha1.EventDeletionIgnored, "Delete",
		"deletion does not go on while annotation %s is %q", openmcpconst.OperationAnnotation, openmcpconst.OperationAnnotationValueIgnore)
}

// acknowledge takes the annotation off that asked for this reconcile.
func (r *Reconciler) acknowledge(ctx context.Context, velero *v1alpha1.Velero) error {
	if velero.Annotations[openmcpconst.OperationAnnotation] != openmcpconst.OperationAnnotationValueReconcile {
		return nil
	}
	before := velero.DeepCopy()
	delete(velero.Annotations, openmcpconst.OperationAnnotation)
	return r.patch(ctx, velero, before, "acknowledge the reconcile annotation")
}
