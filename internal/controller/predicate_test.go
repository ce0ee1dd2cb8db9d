package controller

import (
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"
	openmcpconst "github.com/openmcp-project/openmcp-operator/api/constants"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// update is one change of an object, and whether it is worth a reconcile.
type update[T client.Object] struct {
	change func(T)
	passes bool
}

// check applies each change to a copy of the object, with what every write changes: resourceVersion and managed fields.
func check[T client.Object](t *testing.T, filter predicate.TypedPredicate[T], before T, updates map[string]update[T]) {
	t.Helper()
	for name, test := range updates {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopyObject().(T)
			after.SetResourceVersion("2")
			after.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "somebody", Time: &metav1.Time{Time: time.Unix(2, 0)}}})
			test.change(after)
			if got := filter.Update(event.TypedUpdateEvent[T]{ObjectOld: before, ObjectNew: after}); got != test.passes {
				t.Errorf("passes = %v", got)
			}
		})
	}
	t.Run("Creation", func(t *testing.T) {
		if !filter.Create(event.TypedCreateEvent[T]{Object: before}) {
			t.Error("a new object does not pass")
		}
	})
	t.Run("Deletion", func(t *testing.T) {
		if !filter.Delete(event.TypedDeleteEvent[T]{Object: before}) {
			t.Error("an object that is gone does not pass")
		}
	})
}

func condition(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "as it was", LastTransitionTime: metav1.Unix(1, 0), ObservedGeneration: 1}
}

func setCondition(conditions *[]metav1.Condition, wanted metav1.Condition) {
	for i := range *conditions {
		if (*conditions)[i].Type == wanted.Type {
			(*conditions)[i] = wanted
			return
		}
	}
	*conditions = append(*conditions, wanted)
}

func TestHelmReleaseEvents(t *testing.T) {
	installed := &helmv2.HelmRelease{
		ObjectMeta: metav1.ObjectMeta{Name: "velero-server", UID: "1", ResourceVersion: "1", Generation: 1, Labels: map[string]string{"a": "b"}},
		Status: helmv2.HelmReleaseStatus{
			ObservedGeneration: 1, Conditions: []metav1.Condition{condition(fluxmeta.ReadyCondition, metav1.ConditionTrue, "InstallSucceeded")},
			History: helmv2.Snapshots{{Version: 1, ChartVersion: "0.1.0", Status: "deployed"}},
		},
	}
	type change = update[*helmv2.HelmRelease]
	check(t, changed(releaseState), installed, map[string]change{
		"OnlyAWrite": {func(*helmv2.HelmRelease) {}, false},
		"TickBegins": {func(r *helmv2.HelmRelease) {
			setCondition(&r.Status.Conditions, condition(fluxmeta.ReconcilingCondition, metav1.ConditionTrue, "Progressing"))
		}, false},
		"TickRenewsTheTime": {func(r *helmv2.HelmRelease) { r.Status.Conditions[0].LastTransitionTime = metav1.Unix(9, 0) }, false},
		"TickNotesItsWork":  {func(r *helmv2.HelmRelease) { r.Status.LastAttemptedReleaseAction = "upgrade" }, false},
		"RequestIsHandled":  {func(r *helmv2.HelmRelease) { r.Status.LastHandledReconcileAt = "now" }, false},
		"Annotation": {func(r *helmv2.HelmRelease) {
			r.Annotations = map[string]string{"reconcile.fluxcd.io/requestedAt": "now"}
		}, false},
		"Spec":           {func(r *helmv2.HelmRelease) { r.Generation = 2; r.Spec.Suspend = true }, true},
		"Labels":         {func(r *helmv2.HelmRelease) { r.Labels = nil }, true},
		"Finalizers":     {func(r *helmv2.HelmRelease) { r.Finalizers = []string{"finalizers.fluxcd.io"} }, true},
		"DeletionBegins": {func(r *helmv2.HelmRelease) { r.DeletionTimestamp = &metav1.Time{Time: time.Unix(2, 0)} }, true},
		"CreatedAnew":    {func(r *helmv2.HelmRelease) { r.UID = "2" }, true},
		"ReadyIsFalse": {func(r *helmv2.HelmRelease) {
			setCondition(&r.Status.Conditions, condition(fluxmeta.ReadyCondition, metav1.ConditionFalse, "UpgradeFailed"))
		}, true},
		"OtherReason":  {func(r *helmv2.HelmRelease) { r.Status.Conditions[0].Reason = "UpgradeSucceeded" }, true},
		"OtherMessage": {func(r *helmv2.HelmRelease) { r.Status.Conditions[0].Message = "not as it was" }, true},
		"Stalled": {func(r *helmv2.HelmRelease) {
			setCondition(&r.Status.Conditions, condition(fluxmeta.StalledCondition, metav1.ConditionTrue, "InvalidChart"))
		}, true},
		"SpecIsObserved": {func(r *helmv2.HelmRelease) { r.Status.ObservedGeneration = 2 }, true},
		"NewRevision": {func(r *helmv2.HelmRelease) {
			r.Status.History = append(helmv2.Snapshots{{Version: 2, ChartVersion: "0.2.0", Status: "deployed"}}, r.Status.History...)
		}, true},
		"RevisionFailed": {func(r *helmv2.HelmRelease) { r.Status.History[0].Status = "failed" }, true},
	})
}

// TestRefusedDriftCorrectionPasses: while Ready is Unknown, the condition Reconciling is all that says that the target refuses a correction.
func TestRefusedDriftCorrectionPasses(t *testing.T) {
	working := &helmv2.HelmRelease{Status: helmv2.HelmReleaseStatus{Conditions: []metav1.Condition{
		condition(fluxmeta.ReadyCondition, metav1.ConditionUnknown, "Progressing"),
		condition(fluxmeta.ReconcilingCondition, metav1.ConditionTrue, "Progressing"),
	}}}
	type change = update[*helmv2.HelmRelease]
	check(t, changed(releaseState), working, map[string]change{
		"OtherReason": {func(r *helmv2.HelmRelease) { r.Status.Conditions[1].Reason = "DriftCorrectionFailed" }, true},
		"OtherTime":   {func(r *helmv2.HelmRelease) { r.Status.Conditions[1].LastTransitionTime = metav1.Unix(9, 0) }, false},
	})
}

func TestOCIRepositoryEvents(t *testing.T) {
	fetched := &sourcev1.OCIRepository{
		ObjectMeta: metav1.ObjectMeta{UID: "1", Generation: 1},
		Status: sourcev1.OCIRepositoryStatus{
			ObservedGeneration: 1, Conditions: []metav1.Condition{condition(fluxmeta.ReadyCondition, metav1.ConditionTrue, "Succeeded")},
			Artifact: &fluxmeta.Artifact{Digest: "sha256:1", Revision: "0.1.0@sha256:1"},
		},
	}
	type change = update[*sourcev1.OCIRepository]
	check(t, changed(sourceState), fetched, map[string]change{
		"OnlyAWrite": {func(*sourcev1.OCIRepository) {}, false},
		"TickBegins": {func(s *sourcev1.OCIRepository) {
			setCondition(&s.Status.Conditions, condition(fluxmeta.ReconcilingCondition, metav1.ConditionTrue, "Progressing"))
		}, false},
		"TickRenewsTheTime": {func(s *sourcev1.OCIRepository) { s.Status.Conditions[0].LastTransitionTime = metav1.Unix(9, 0) }, false},
		"Spec":              {func(s *sourcev1.OCIRepository) { s.Generation = 2 }, true},
		"Artifact":          {func(s *sourcev1.OCIRepository) { s.Status.Artifact.Digest = "sha256:2" }, true},
		"ArtifactIsLost":    {func(s *sourcev1.OCIRepository) { s.Status.Artifact = nil }, true},
		"FetchFails": {func(s *sourcev1.OCIRepository) {
			setCondition(&s.Status.Conditions, condition(fluxmeta.ReadyCondition, metav1.ConditionFalse, "OCIArtifactPullFailed"))
		}, true},
	})
}

func TestAccessRequestEvents(t *testing.T) {
	granted := &clustersv1alpha1.AccessRequest{ObjectMeta: metav1.ObjectMeta{UID: "1", Generation: 1}}
	granted.Status.Phase, granted.Status.ObservedGeneration = clustersv1alpha1.REQUEST_GRANTED, 1
	granted.Status.SecretRef = &commonapi.LocalObjectReference{Name: "kubeconfig"}
	type change = update[*clustersv1alpha1.AccessRequest]
	check(t, changed(accessState), granted, map[string]change{
		"OnlyAWrite": {func(*clustersv1alpha1.AccessRequest) {}, false},
		"Condition": {func(r *clustersv1alpha1.AccessRequest) {
			r.Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionTrue, "Reconciled")}
		}, false},
		"Denied":          {func(r *clustersv1alpha1.AccessRequest) { r.Status.Phase = clustersv1alpha1.REQUEST_DENIED }, true},
		"GrantIsCurrent":  {func(r *clustersv1alpha1.AccessRequest) { r.Status.ObservedGeneration = 2 }, true},
		"OtherSecret":     {func(r *clustersv1alpha1.AccessRequest) { r.Status.SecretRef.Name = "other" }, true},
		"FinalizersGoOff": {func(r *clustersv1alpha1.AccessRequest) { r.Finalizers = []string{"one"} }, true},
	})
}

func TestClusterRequestEvents(t *testing.T) {
	pending := &clustersv1alpha1.ClusterRequest{ObjectMeta: metav1.ObjectMeta{UID: "1", Generation: 1}}
	type change = update[*clustersv1alpha1.ClusterRequest]
	check(t, changed(clusterState), pending, map[string]change{
		"OnlyAWrite": {func(*clustersv1alpha1.ClusterRequest) {}, false},
		"Granted":    {func(r *clustersv1alpha1.ClusterRequest) { r.Status.Phase = clustersv1alpha1.REQUEST_GRANTED }, true},
		"Bound": {func(r *clustersv1alpha1.ClusterRequest) {
			r.Status.Cluster = &commonapi.ObjectReference{Namespace: "clusters", Name: "one"}
		}, true},
	})
}

// TestOwnStatusWritesDoNotPass: otherwise each status write would cause the next reconcile.
func TestOwnStatusWritesDoNotPass(t *testing.T) {
	velero := &v1alpha1.Velero{ObjectMeta: metav1.ObjectMeta{UID: "1", Generation: 1}}
	velero.Status.Phase = string(v1alpha1.Progressing)
	type change = update[*v1alpha1.Velero]
	check(t, intended[*v1alpha1.Velero](), velero, map[string]change{
		"Phase": {func(v *v1alpha1.Velero) { v.Status.Phase = string(v1alpha1.Ready) }, false},
		"Conditions": {func(v *v1alpha1.Velero) {
			v.Status.Conditions = []metav1.Condition{condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)}
		}, false},
		"ObservedGeneration": {func(v *v1alpha1.Velero) { v.Status.ObservedGeneration = 1 }, false},
		"Resources":          {func(v *v1alpha1.Velero) { v.Status.Resources = []v1alpha1.ManagedResource{{Message: "new"}} }, false},
		"OtherAnnotation":    {func(v *v1alpha1.Velero) { v.Annotations = map[string]string{"note": "mine"} }, false},
		"OtherLabel":         {func(v *v1alpha1.Velero) { v.Labels = map[string]string{"note": "mine"} }, false},
		"Spec":               {func(v *v1alpha1.Velero) { v.Generation = 2 }, true},
		"Reconcile": {func(v *v1alpha1.Velero) {
			v.Annotations = map[string]string{openmcpconst.OperationAnnotation: openmcpconst.OperationAnnotationValueReconcile}
		}, true},
		"Finalizer":      {func(v *v1alpha1.Velero) { v.Finalizers = []string{"one"} }, true},
		"DeletionBegins": {func(v *v1alpha1.Velero) { v.DeletionTimestamp = &metav1.Time{Time: time.Unix(2, 0)} }, true},
	})
	config := &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{UID: "1", Generation: 1}}
	check(t, intended[*v1alpha1.ProviderConfig](), config, map[string]update[*v1alpha1.ProviderConfig]{
		"Status": {func(c *v1alpha1.ProviderConfig) { c.Status.Veleros = 3 }, false},
		"Spec":   {func(c *v1alpha1.ProviderConfig) { c.Generation = 2 }, true},
	})
}

func TestComesOrGoes(t *testing.T) {
	config := &v1alpha1.ProviderConfig{}
	filter := comesOrGoes[*v1alpha1.ProviderConfig]()
	if !filter.Create(event.TypedCreateEvent[*v1alpha1.ProviderConfig]{Object: config}) || !filter.Delete(event.TypedDeleteEvent[*v1alpha1.ProviderConfig]{Object: config}) {
		t.Error("one that comes or goes does not pass")
	}
	if filter.Update(event.TypedUpdateEvent[*v1alpha1.ProviderConfig]{ObjectOld: config, ObjectNew: config}) {
		t.Error("one that stays passes")
	}
}
