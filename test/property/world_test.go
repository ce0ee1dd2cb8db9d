package property

import (
	"context"
	"fmt"
	"maps"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/access"
	"github.com/openmcp-project/service-provider-velero/internal/cluster"
	"github.com/openmcp-project/service-provider-velero/internal/controller"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

const (
	operatorNamespace = "openmcp-system"
	providerName      = "velero"
	// maxRounds is far more than any change takes.
	maxRounds = 30
)

// veleros are two, so that one may have to wait for the other.
var veleros = []types.NamespacedName{{Namespace: "default", Name: "test-mcp"}, {Namespace: "default", Name: "other-mcp"}}

// velero is the one that a test is about which needs only one.
var velero = veleros[0]

// world is a platform and an onboarding cluster with two control planes and a Velero for each.
type world struct {
	input                input
	platform, onboarding *apiServer
	names                []plan.Names
	veleros              *controller.Reconciler
	configs              *controller.ConfigReconciler
	// images that were ever offered.
	images map[string]bool
	// violation is the first thing that must never be.
	violation error
}

// newWorld is one with everything but a Velero.
func newWorld(ctx context.Context, in input) (*world, error) {
	w := &world{platform: newAPIServer(), onboarding: newAPIServer(), images: map[string]bool{}}
	w.platform.written = w.look
	w.restart()
	for _, velero := range veleros {
		names, err := plan.NamesOf(velero)
		if err != nil {
			return nil, err
		}
		w.names = append(w.names, names)
		controlPlane := &clustersv1alpha1.ClusterRequest{ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace, Name: velero.Name}}
		for _, object := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.TenantNamespace}}, controlPlane} {
			if err := w.platform.Create(ctx, object); err != nil {
				return nil, err
			}
		}
	}
	if err := w.apply(ctx, in); err != nil {
		return nil, err
	}
	return w, nil
}

// restart is a new process of the operator: it remembers nothing.
func (w *world) restart() {
	platform := cluster.New(w.platform, w.platform, operatorNamespace)
	configs := controller.Configs{Platform: w.platform, ProviderName: providerName}
	w.veleros = &controller.Reconciler{
		Onboarding: w.onboarding, Configs: configs, Access: access.New(w.platform, w.platform, permissions()), Platform: platform, Recorder: &events.FakeRecorder{},
	}
	w.configs = &controller.ConfigReconciler{Onboarding: w.onboarding, Client: w.platform, Configs: configs, Platform: platform}
}

func permissions() access.Permissions {
	return access.Permissions{
		ControlPlane: []clustersv1alpha1.PermissionsRequest{{}}, ServerRoles: []commonapi.RoleRef{{Kind: "ClusterRole", Name: "cluster-admin"}},
		Workload: func(string) []clustersv1alpha1.PermissionsRequest { return []clustersv1alpha1.PermissionsRequest{{}} },
	}
}

// look checks what must hold for every HelmRelease at every moment.
func (w *world) look(release *helmv2.HelmRelease) {
	if w.violation != nil {
		return
	}
	kubeconfig := release.Spec.KubeConfig
	if kubeconfig == nil || kubeconfig.SecretRef == nil || kubeconfig.SecretRef.Name == "" || kubeconfig.SecretRef.Key == "" {
		w.violation = fmt.Errorf("HelmRelease %s has no kubeConfig", release.Name)
	}
	for _, image := range imagesOf(release) {
		if !w.images[image] {
			w.violation = fmt.Errorf("HelmRelease %s has image %q, which was never offered", release.Name, image)
		}
	}
}

// apply writes what differs from the input of before, as people with kubectl do.
func (w *world) apply(ctx context.Context, in input) error {
	for _, available := range in.Config.AvailableImages {
		for _, version := range available.Versions {
			w.images[imageReference(available.Image, version)] = true
		}
	}
	if err := w.applyObjects(ctx, in.Objects); err != nil {
		return err
	}
	if err := w.applyConfig(ctx, in); err != nil {
		return err
	}
	for i, velero := range veleros {
		if equality.Semantic.DeepEqual(w.input.Veleros[i], in.Veleros[i]) {
			continue
		}
		if err := put(ctx, w.onboarding, velero, &v1alpha1.Velero{}, func(object *v1alpha1.Velero) { object.Spec = *in.Veleros[i].DeepCopy() }); err != nil {
			return err
		}
	}
	w.input = in.copy()
	return nil
}

func imageReference(repository, version string) string {
	if strings.HasPrefix(version, "sha256:") {
		return repository + "@" + version
	}
	return repository + ":" + version
}

func (w *world) applyConfig(ctx context.Context, in input) error {
	if w.input.ConfigName != "" && w.input.ConfigName != in.ConfigName {
		if err := w.platform.Delete(ctx, &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: w.input.ConfigName}}); err != nil {
			return err
		}
	}
	if in.ConfigName == "" || in.ConfigName == w.input.ConfigName && equality.Semantic.DeepEqual(w.input.Config, in.Config) {
		return nil
	}
	return put(ctx, w.platform, types.NamespacedName{Name: in.ConfigName}, &v1alpha1.ProviderConfig{}, func(object *v1alpha1.ProviderConfig) {
		object.Spec = *in.Config.DeepCopy()
	})
}

func (w *world) applyObjects(ctx context.Context, wanted map[plan.Reference]content) error {
	for reference, before := range w.input.Objects {
		// The type of a Secret cannot be changed.
		if after, stays := wanted[reference]; !stays || after.Type != before.Type {
			if err := w.platform.Delete(ctx, emptyObject(reference)); err != nil {
				return err
			}
		}
	}
	for reference, content := range wanted {
		if before, existed := w.input.Objects[reference]; existed && before.Type == content.Type && maps.Equal(before.Data, content.Data) {
			continue
		}
		if err := w.putObject(ctx, reference, content); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) putObject(ctx context.Context, reference plan.Reference, content content) error {
	key := types.NamespacedName{Namespace: operatorNamespace, Name: reference.Name}
	if reference.Kind == plan.ConfigMap {
		return put(ctx, w.platform, key, &corev1.ConfigMap{}, func(object *corev1.ConfigMap) { object.Data = content.Data })
	}
	return put(ctx, w.platform, key, &corev1.Secret{}, func(object *corev1.Secret) {
		object.Type, object.Data = content.Type, map[string][]byte{}
		for key, value := range content.Data {
			object.Data[key] = []byte(value)
		}
	})
}

func emptyObject(reference plan.Reference) client.Object {
	meta := metav1.ObjectMeta{Namespace: operatorNamespace, Name: reference.Name}
	if reference.Kind == plan.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: meta}
	}
	return &corev1.Secret{ObjectMeta: meta}
}

// put creates or updates an object.
func put[T client.Object](ctx context.Context, server *apiServer, key types.NamespacedName, object T, edit func(T)) error {
	err := server.Get(ctx, key, object)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	edit(object)
	if err != nil {
		object.SetNamespace(key.Namespace)
		object.SetName(key.Name)
		return server.Create(ctx, object)
	}
	return server.Update(ctx, object)
}

// round lets everybody look once.
func (w *world) round(ctx context.Context) error {
	for _, names := range w.names {
		if err := (grants{w.platform, w.input.Token}).step(ctx, names.TenantNamespace); err != nil {
			return err
		}
	}
	if err := w.reconcile(ctx); err != nil {
		return err
	}
	if err := w.honest(ctx); err != nil {
		return err
	}
	for _, names := range w.names {
		if err := (flux{w.platform}).step(ctx, names.TenantNamespace); err != nil {
			return err
		}
	}
	return w.violation
}

func (w *world) reconcile(ctx context.Context) error {
	for _, velero := range veleros {
		if _, err := w.veleros.Reconcile(ctx, ctrl.Request{NamespacedName: velero}); err != nil {
			return fmt.Errorf("reconcile Velero %s: %w", velero.Name, err)
		}
	}
	if _, err := w.configs.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Name: w.input.ConfigName}}); err != nil {
		return fmt.Errorf("reconcile the ProviderConfig: %w", err)
	}
	return nil
}

// settle goes on until nobody writes any more.
func (w *world) settle(ctx context.Context) error {
	for range maxRounds {
		before := w.writes()
		if err := w.round(ctx); err != nil {
			return err
		}
		if w.writes() == before {
			return nil
		}
	}
	return fmt.Errorf("somebody still writes after %d rounds", maxRounds)
}

func (w *world) writes() int { return w.platform.writes + w.onboarding.writes }
