package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	openmcpconst "github.com/openmcp-project/openmcp-operator/api/constants"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// holder is a finalizer of a test's own.
const holder = "test.example/hold"

// deletionGuard shows that no user's object is lost with a Velero, one after another on one control plane.
func deletionGuard(t *testing.T) {
	tenant := newTenant(t, "team-guard", "guard-mcp")
	defer tenant.leave(t)
	tenant.orderControlPlane(t)
	t.Run("deletion: somebody else's CRDs were there before | complete, and they stay", tenant.foreignCRDsStay)
	t.Run("deletion: users have objects on the control plane | blocked, naming kinds, counts and five of them", tenant.usersObjectsBlock)
	t.Run("deletion: the last of the users' objects goes | complete within seconds", tenant.lastObjectGoes)
	t.Run("deletion: a user's object comes after the server went | complete, and the CRDs stay until a later deletion", tenant.lateObject)
	t.Run("deletion: operation ignore | nothing happens and an event says so, complete when it is taken off", tenant.ignoredDeletion)
	t.Run("installation: operation ignore | nothing happens until it is taken off", tenant.ignoredChange)
	t.Run("installation: operation reconcile | acknowledged", tenant.reconcileNow)
	t.Run("ProviderConfig: operation ignore and reconcile | untouched, then acknowledged", annotatedConfig)
}

// veleroObject is an object of one of Velero's kinds, as a user makes it.
func veleroObject(kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "velero.io", Version: "v1", Kind: kind})
	object.SetNamespace("velero")
	object.SetName(name)
	switch kind {
	case "Schedule":
		object.Object["spec"] = map[string]any{"schedule": "@daily", "template": map[string]any{}}
	case "BackupStorageLocation":
		object.Object["spec"] = map[string]any{"provider": "aws", "objectStorage": map[string]any{"bucket": "backups"}}
	default:
		object.Object["spec"] = map[string]any{}
	}
	return object
}

func (s tenant) usersObjects() []client.Object {
	var objects []client.Object
	for i := range 4 {
		objects = append(objects, veleroObject("Backup", fmt.Sprintf("nightly-%d", i)))
	}
	return append(objects, veleroObject("Schedule", "daily"), veleroObject("BackupStorageLocation", "default"), veleroObject("BackupStorageLocation", "offsite"))
}

func (s tenant) usersObjectsBlock(t *testing.T) {
	s.order(t, aws)
	controlPlane := s.controlPlane(t)
	for _, object := range s.usersObjects() {
		must(t, controlPlane.Create(t.Context(), object))
	}
	before := s.generations(t)
	s.startDeletion(t)
	s.awaitBlocked(t, v1alpha1.ReasonUserResourcesExist, "4 of kind Backup", "1 of kind Schedule", "2 of kind BackupStorageLocation",
		"velero/nightly-0", "velero/nightly-1", "velero/nightly-2", "velero/nightly-3", "velero/daily")
	must(t, controlPlane.Delete(t.Context(), veleroObject("Backup", "nightly-0")))
	s.awaitBlocked(t, v1alpha1.ReasonUserResourcesExist, "3 of kind Backup", "velero/default")
	time.Sleep(settle)
	if diff := cmp.Diff(before, s.generations(t)); diff != "" {
		t.Errorf("what the users' objects need was touched (-before +after):\n%s", diff)
	}
	warnings := s.warnings(t, v1alpha1.ReasonUserResourcesExist)
	if len(warnings) != 1 {
		t.Errorf("%d Warning events, want exactly one: %q", len(warnings), warnings)
	}
}

// warnings are the notes of the Warning events about the Velero that exists now, one for each time that it was told.
func (s tenant) warnings(t *testing.T, reason string) []string {
	t.Helper()
	velero, err := s.velero(t.Context())
	must(t, err)
	var list eventsv1.EventList
	must(t, onboarding.List(t.Context(), &list, client.InNamespace(s.Namespace)))
	var notes []string
	for _, event := range list.Items {
		if event.Regarding.UID != velero.UID || event.Reason != reason || event.Type != corev1.EventTypeWarning {
			continue
		}
		notes = append(notes, event.Note)
		for i := int32(1); event.Series != nil && i < event.Series.Count; i++ {
			notes = append(notes, event.Note)
		}
	}
	return notes
}

func (s tenant) lastObjectGoes(t *testing.T) {
	controlPlane := s.controlPlane(t)
	for _, object := range s.usersObjects() {
		must(t, client.IgnoreNotFound(controlPlane.Delete(t.Context(), object)))
	}
	eventually(t, 3*soon, "the deletion goes on", func(ctx context.Context) error {
		velero, err := s.velero(ctx)
		if err != nil {
			return client.IgnoreNotFound(err)
		}
		if hasCondition(velero, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonUserResourcesExist) == nil {
			return errStillThere
		}
		return nil
	})
	s.awaitDeleted(t)
	s.assertGone(t)
}

// foreignCRDsStay: the release adopts CRDs that are there already, so that they are of its version; but they are not its own.
func (s tenant) foreignCRDsStay(t *testing.T) {
	controlPlane := s.awaitControlPlane(t)
	foreign := []client.Object{
		crd("velero.io", "v1", "backups", "Backup"), crd("velero.io", "v1", "volumeclones", "VolumeClone"), crd("example.org", "v1", "gadgets", "Gadget"),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "velero"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "velero", Name: "mine"}},
	}
	for _, object := range foreign {
		must(t, controlPlane.Create(t.Context(), object))
	}
	time.Sleep(time.Second) // Times of creation have no fractions of a second.
	s.orderVelero(t, oldVersion)
	s.awaitReady(t)
	s.startDeletion(t)
	s.awaitDeleted(t)
	for _, object := range foreign {
		uid := object.GetUID()
		must(t, controlPlane.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		if object.GetUID() != uid || object.GetDeletionTimestamp() != nil {
			t.Errorf("%T %s is not the one that was there before", object, object.GetName())
		}
	}
	if diff := cmp.Diff([]string{"backups.velero.io", "volumeclones.velero.io"}, veleroCRDs(t, controlPlane)); diff != "" {
		t.Errorf("CRDs (-want +got):\n%s", diff)
	}
	for _, object := range foreign[:2] {
		must(t, controlPlane.Delete(t.Context(), object))
		eventually(t, soon, "the CRD is gone", func(ctx context.Context) error { return isGone(ctx, controlPlane, object) })
	}
}

func crd(group, version, plural, kind string) *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	open := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &preserve}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: open},
			}},
		},
	}
}

func veleroCRDs(t *testing.T, controlPlane client.Client) []string {
	t.Helper()
	var list apiextensionsv1.CustomResourceDefinitionList
	must(t, controlPlane.List(t.Context(), &list))
	var names []string
	for _, crd := range list.Items {
		if crd.Spec.Group == "velero.io" {
			names = append(names, crd.Name)
		}
	}
	return names
}

// lateObject holds the deletion after the server, where there is no way back.
func (s tenant) lateObject(t *testing.T) {
	s.orderVelero(t, oldVersion)
	s.awaitReady(t)
	release := s.holdWorkloadNamespace(t)
	s.startDeletion(t)
	s.awaitBlocked(t, v1alpha1.ReasonRemovingWorkloadNamespace)
	controlPlane := s.controlPlane(t)
	late := veleroObject("Backup", "late")
	must(t, controlPlane.Create(t.Context(), late))
	release()
	s.awaitDeleted(t)
	if got := len(veleroCRDs(t, controlPlane)); got != 13 {
		t.Errorf("%d CRDs are left, want all 13", got)
	}
	must(t, controlPlane.Get(t.Context(), client.ObjectKeyFromObject(late), late))
	must(t, controlPlane.Delete(t.Context(), late))
	s.orderVelero(t, oldVersion)
	s.awaitReady(t)
	s.startDeletion(t)
	s.awaitDeleted(t)
	s.assertGone(t)
}

// holdWorkloadNamespace keeps the server's namespace from going until it is released.
func (s tenant) holdWorkloadNamespace(t *testing.T) (release func()) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.names.WorkloadNamespace, Name: "hold", Finalizers: []string{holder}}}
	must(t, workload.Create(t.Context(), object))
	return func() { must(t, setFinalizers(t.Context(), workload, object)) }
}

func (s tenant) ignoredDeletion(t *testing.T) {
	s.orderVelero(t, oldVersion)
	s.awaitReady(t)
	velero, err := s.velero(t.Context())
	must(t, err)
	annotate(t, onboarding, velero, openmcpconst.OperationAnnotation, openmcpconst.OperationAnnotationValueIgnore)
	s.startDeletion(t)
	eventually(t, soon, "an event says that the deletion does not go on", func(context.Context) error {
		if len(s.warnings(t, v1alpha1.EventDeletionIgnored)) == 0 {
			return fmt.Errorf("no event")
		}
		return nil
	})
	time.Sleep(settle)
	s.generations(t) // fails when something is gone
	velero, err = s.velero(t.Context())
	must(t, err)
	annotate(t, onboarding, velero, openmcpconst.OperationAnnotation, "")
	s.awaitDeleted(t)
	s.assertGone(t)
}

func (s tenant) ignoredChange(t *testing.T) {
	s.orderVelero(t, oldVersion)
	s.awaitReady(t)
	velero, err := s.velero(t.Context())
	must(t, err)
	annotate(t, onboarding, velero, openmcpconst.OperationAnnotation, openmcpconst.OperationAnnotationValueIgnore)
	before := s.generations(t)
	s.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Plugins = []v1alpha1.Plugin{gcp} })
	time.Sleep(settle)
	if diff := cmp.Diff(before, s.generations(t)); diff != "" {
		t.Errorf("an ignored change arrived (-before +after):\n%s", diff)
	}
	velero, err = s.velero(t.Context())
	must(t, err)
	if velero.Status.ObservedGeneration == velero.Generation {
		t.Error("the status claims to have observed what is ignored")
	}
	annotate(t, onboarding, velero, openmcpconst.OperationAnnotation, "")
	eventually(t, installed, "the change arrives", func(ctx context.Context) error {
		images, err := s.running(ctx)
		if err != nil || len(images) != 2 || images[1] != gcpImage+":"+gcp.Version {
			return fmt.Errorf("images are %v: %w", images, err)
		}
		return nil
	})
	s.awaitReady(t)
}

func (s tenant) reconcileNow(t *testing.T) {
	s.acknowledged(t)
	s.awaitReady(t)
}

// acknowledged has everything looked at again, and waits until that has begun.
func (s tenant) acknowledged(t *testing.T) {
	t.Helper()
	velero, err := s.velero(t.Context())
	must(t, err)
	annotate(t, onboarding, velero, openmcpconst.OperationAnnotation, openmcpconst.OperationAnnotationValueReconcile)
	eventually(t, soon, "the annotation is taken off", func(ctx context.Context) error {
		velero, err := s.velero(ctx)
		if err != nil || velero.Annotations[openmcpconst.OperationAnnotation] == "" {
			return err
		}
		return errStillThere
	})
}

// annotatedConfig: ignore means the status of the ProviderConfig; what it offers still counts.
func annotatedConfig(t *testing.T) {
	key := client.ObjectKey{Name: v1alpha1.DefaultProviderConfigName}
	config := &v1alpha1.ProviderConfig{}
	must(t, platform.Get(t.Context(), key, config))
	original := config.Spec.PollInterval
	defer changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) { spec.PollInterval = original })
	annotate(t, platform, config, openmcpconst.OperationAnnotation, openmcpconst.OperationAnnotationValueIgnore)
	changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) {
		spec.PollInterval = &metav1.Duration{Duration: 7 * time.Minute}
	})
	time.Sleep(settle)
	must(t, platform.Get(t.Context(), key, config))
	if config.Status.ObservedGeneration == config.Generation {
		t.Error("the status of an ignored ProviderConfig was written")
	}
	annotate(t, platform, config, openmcpconst.OperationAnnotation, openmcpconst.OperationAnnotationValueReconcile)
	eventually(t, soon, "the annotation is taken off and the status is written", func(ctx context.Context) error {
		if err := platform.Get(ctx, key, config); err != nil {
			return err
		}
		if config.Annotations[openmcpconst.OperationAnnotation] != "" || config.Status.ObservedGeneration != config.Generation {
			return fmt.Errorf("annotations %v, observed %d of %d", config.Annotations, config.Status.ObservedGeneration, config.Generation)
		}
		return nil
	})
}
