package property

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// scheme knows all kinds of the platform and the onboarding cluster.
var scheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clustersv1alpha1.AddToScheme, helmv2.AddToScheme, sourcev1.AddToScheme, v1alpha1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}()

// apiServer keeps objects in memory and does with them what this operator relies on: resource versions as preconditions, UIDs, generations,
// finalizers, and status as a subresource. controller-runtime's fake client has no UIDs and generations, and takes ten times as long. What is not
// implemented here panics. It counts writes, also those that change nothing, and has somebody look at every HelmRelease that is written.
type apiServer struct {
	client.Client
	objects         map[string]map[types.NamespacedName]client.Object
	version, writes int
	written         func(*helmv2.HelmRelease)
}

func newAPIServer() *apiServer {
	return &apiServer{objects: map[string]map[types.NamespacedName]client.Object{}, written: func(*helmv2.HelmRelease) {}}
}

// Scheme implements client.Client.
func (s *apiServer) Scheme() *runtime.Scheme { return scheme }

// GroupVersionKindFor implements client.Client.
func (s *apiServer) GroupVersionKindFor(object runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(object, scheme)
}

func kindOf(object runtime.Object) string {
	gvk, err := apiutil.GVKForObject(object, scheme)
	utilruntime.Must(err)
	return strings.TrimSuffix(gvk.Kind, "List")
}

func (s *apiServer) stored(object client.Object, key types.NamespacedName) (client.Object, error) {
	kind := kindOf(object)
	stored, exists := s.objects[kind][key]
	if !exists {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: kind}, key.Name)
	}
	return stored, nil
}

// Get implements client.Client.
func (s *apiServer) Get(_ context.Context, key types.NamespacedName, object client.Object, _ ...client.GetOption) error {
	stored, err := s.stored(object, key)
	if err != nil {
		return err
	}
	show(stored, object)
	return nil
}

// show copies a stored object, or its metadata.
func show(stored, object client.Object) {
	if partial, ok := object.(*metav1.PartialObjectMetadata); ok {
		partial.ObjectMeta = metadataOf(stored)
		return
	}
	reflect.ValueOf(object).Elem().Set(reflect.ValueOf(stored.DeepCopyObject()).Elem())
}

func metadataOf(stored client.Object) metav1.ObjectMeta {
	return *reflect.ValueOf(stored).Elem().FieldByName("ObjectMeta").Addr().Interface().(*metav1.ObjectMeta).DeepCopy()
}

// List implements client.Client.
func (s *apiServer) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	applied := (&client.ListOptions{}).ApplyOptions(options)
	var found []runtime.Object
	for _, stored := range s.objects[kindOf(list)] {
		if applied.Namespace != "" && applied.Namespace != stored.GetNamespace() {
			continue
		}
		if applied.LabelSelector != nil && !applied.LabelSelector.Matches(labelsOf(stored)) {
			continue
		}
		if _, partial := list.(*metav1.PartialObjectMetadataList); partial {
			object := &metav1.PartialObjectMetadata{ObjectMeta: metadataOf(stored)}
			object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kindOf(list)))
			found = append(found, object)
			continue
		}
		found = append(found, stored.DeepCopyObject())
	}
	slices.SortFunc(found, func(a, b runtime.Object) int {
		return cmp.Compare(a.(client.Object).GetName(), b.(client.Object).GetName())
	})
	return meta.SetList(list, found)
}

type labelsOfObject map[string]string

func labelsOf(object client.Object) labelsOfObject { return object.GetLabels() }

// Has implements labels.Labels.
func (l labelsOfObject) Has(key string) bool { _, has := l[key]; return has }

// Get implements labels.Labels.
func (l labelsOfObject) Get(key string) string { return l[key] }

// Lookup implements labels.Labels.
func (l labelsOfObject) Lookup(key string) (string, bool) { value, has := l[key]; return value, has }

// Create implements client.Client.
func (s *apiServer) Create(_ context.Context, object client.Object, options ...client.CreateOption) error {
	kind, key := kindOf(object), client.ObjectKeyFromObject(object)
	if _, exists := s.objects[kind][key]; exists {
		return apierrors.NewAlreadyExists(schema.GroupResource{Resource: kind}, key.Name)
	}
	if s.objects[kind] == nil {
		s.objects[kind] = map[types.NamespacedName]client.Object{}
	}
	created := object.DeepCopyObject().(client.Object)
	if status := part(created, "Status"); status.IsValid() {
		status.SetZero()
	}
	created.SetUID(types.UID(fmt.Sprintf("uid-%d", s.version)))
	created.SetGeneration(1)
	created.SetCreationTimestamp(metav1.Now().Rfc3339Copy())
	record(nil, created, (&client.CreateOptions{}).ApplyOptions(options).FieldManager)
	s.store(created)
	show(created, object)
	return nil
}

func part(object client.Object, name string) reflect.Value {
	return reflect.ValueOf(object).Elem().FieldByName(name)
}

func (s *apiServer) store(object client.Object) {
	s.writes++
	s.version++
	object.SetResourceVersion(strconv.Itoa(s.version))
	if !object.GetDeletionTimestamp().IsZero() && len(object.GetFinalizers()) == 0 {
		delete(s.objects[kindOf(object)], client.ObjectKeyFromObject(object))
		return
	}
	s.objects[kindOf(object)][client.ObjectKeyFromObject(object)] = object
	if release, ok := object.(*helmv2.HelmRelease); ok {
		s.written(release)
	}
}

// Update implements client.Client.
func (s *apiServer) Update(_ context.Context, object client.Object, options ...client.UpdateOption) error {
	changed := object.DeepCopyObject().(client.Object)
	if before, err := s.stored(object, client.ObjectKeyFromObject(object)); err == nil {
		record(before, changed, (&client.UpdateOptions{}).ApplyOptions(options).FieldManager)
	}
	return s.replace(object, changed, false)
}

// replace stores changed: its status, or everything else. What is stored then is shown in object.
func (s *apiServer) replace(object, changed client.Object, status bool) error {
	before, err := s.stored(object, client.ObjectKeyFromObject(object))
	if err != nil {
		return err
	}
	if wanted := changed.GetResourceVersion(); wanted != "" && wanted != before.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{Resource: kindOf(object)}, object.GetName(), fmt.Errorf("it is at %s, not at %s", before.GetResourceVersion(), wanted))
	}
	after := before.DeepCopyObject().(client.Object)
	if status {
		part(after, "Status").Set(part(changed, "Status"))
	} else {
		kept := part(after, "Status")
		if kept.IsValid() {
			part(changed, "Status").Set(kept)
		}
		changed.SetUID(before.GetUID())
		changed.SetResourceVersion(before.GetResourceVersion())
		changed.SetGeneration(before.GetGeneration())
		changed.SetCreationTimestamp(before.GetCreationTimestamp())
		changed.SetDeletionTimestamp(before.GetDeletionTimestamp())
		after = changed
	}
	if spec := part(after, "Spec"); spec.IsValid() && !equality.Semantic.DeepEqual(spec.Interface(), part(before, "Spec").Interface()) {
		after.SetGeneration(before.GetGeneration() + 1)
	}
	if equality.Semantic.DeepEqual(before, after) {
		s.writes++
	} else {
		s.store(after)
	}
	show(after, object)
	return nil
}

// Patch implements client.Client.
func (s *apiServer) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return s.patch(object, patch, false)
}

func (s *apiServer) patch(object client.Object, patch client.Patch, status bool) error {
	before, err := s.stored(object, client.ObjectKeyFromObject(object))
	if err != nil {
		return err
	}
	if patch.Type() != types.MergePatchType {
		panic("only merge patches are implemented")
	}
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	var changes, fields map[string]any
	text, err := json.Marshal(before)
	if err := cmp.Or(err, json.Unmarshal(data, &changes), json.Unmarshal(text, &fields)); err != nil {
		return err
	}
	if text, err = json.Marshal(merged(fields, changes)); err != nil {
		return err
	}
	changed := reflect.New(reflect.TypeOf(before).Elem()).Interface().(client.Object)
	if err := json.Unmarshal(text, changed); err != nil {
		return err
	}
	return s.replace(object, changed, status)
}

// merged is a JSON merge patch (RFC 7386).
func merged(fields, changes map[string]any) map[string]any {
	if fields == nil {
		fields = map[string]any{}
	}
	for name, change := range changes {
		object, isObject := change.(map[string]any)
		switch {
		case change == nil:
			delete(fields, name)
		case isObject:
			before, _ := fields[name].(map[string]any)
			fields[name] = merged(before, object)
		default:
			fields[name] = change
		}
	}
	return fields
}

// Delete implements client.Client.
func (s *apiServer) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	stored, err := s.stored(object, client.ObjectKeyFromObject(object))
	if err != nil {
		return err
	}
	wanted := (&client.DeleteOptions{}).ApplyOptions(options).Preconditions
	if wanted != nil && wanted.UID != nil && *wanted.UID != stored.GetUID() {
		return apierrors.NewConflict(schema.GroupResource{Resource: kindOf(object)}, object.GetName(), fmt.Errorf("it is %s, not %s", stored.GetUID(), *wanted.UID))
	}
	deleted := stored.DeepCopyObject().(client.Object)
	if deleted.GetDeletionTimestamp().IsZero() {
		now := metav1.Now().Rfc3339Copy()
		deleted.SetDeletionTimestamp(&now)
	}
	s.store(deleted)
	return nil
}

// Status implements client.Client.
func (s *apiServer) Status() client.SubResourceWriter { return statusWriter{server: s} }

type statusWriter struct {
	client.SubResourceWriter
	server *apiServer
}

// Update implements client.SubResourceWriter.
func (w statusWriter) Update(_ context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	return w.server.replace(object, object.DeepCopyObject().(client.Object), true)
}

// Patch implements client.SubResourceWriter.
func (w statusWriter) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return w.server.patch(object, patch, true)
}
