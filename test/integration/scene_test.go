package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/openmcp-project/controller-utils/pkg/clusteraccess"
	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
	"github.com/openmcp-project/service-provider-velero/test/landscape/apiserver"
	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

// stage is one bare API server that is all four clusters at once. Nobody works on it but the test, so that the calls of a reconcile are the
// same in every run: the others are played, step by step.
type stage struct {
	client.WithWatch
	// kubeconfig leads to the stage itself.
	kubeconfig []byte
}

// theStage starts with the first test that needs it, and goes with the landscape.
var theStage = sync.OnceValues(func() (*stage, error) {
	return newStage(context.Background(), "stage", func(string) bool { return true })
})

// newStage starts an API server that has those CRDs of the platform and the onboarding cluster that are wanted.
func newStage(ctx context.Context, name string, wanted func(crd string) bool) (*stage, error) {
	home, err := site.Open(world.Dir())
	if err != nil {
		return nil, err
	}
	server, err := apiserver.Start(ctx, home, apiserver.Spec{Name: name})
	if err != nil {
		return nil, err
	}
	config, err := server.RESTConfig()
	if err != nil {
		return nil, err
	}
	connected, err := client.NewWithWatch(config, client.Options{Scheme: scheme()})
	if err != nil {
		return nil, err
	}
	s := &stage{WithWatch: connected}
	for _, cluster := range []client.Client{platform, onboarding} {
		if err := s.copyCRDs(ctx, cluster, wanted); err != nil {
			return nil, err
		}
	}
	if err := s.furnish(ctx); err != nil {
		return nil, err
	}
	s.kubeconfig, err = s.access(ctx, server)
	return s, err
}

func (s *stage) copyCRDs(ctx context.Context, cluster client.Client, wanted func(crd string) bool) error {
	var definitions apiextensionsv1.CustomResourceDefinitionList
	if err := cluster.List(ctx, &definitions); err != nil {
		return err
	}
	copies := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(definitions.Items))
	for i := range definitions.Items {
		if !wanted(definitions.Items[i].Name) {
			continue
		}
		definitions.Items[i].Status = apiextensionsv1.CustomResourceDefinitionStatus{}
		copies = append(copies, &definitions.Items[i])
	}
	return establish(ctx, s, copies...)
}

// furnish is what a platform operator does: a namespace for the operator, and a ProviderConfig with what it refers to.
func (s *stage) furnish(ctx context.Context) error {
	docker := map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{"reg.example":{"auth":"dXNlcjpwYXNz"}}}`)}
	config := fullProviderConfigObject()
	config.Spec.CABundleRef, config.Spec.Charts.ProxySecretRef, config.Spec.Charts.Verify = nil, nil, nil
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: landscape.SystemNamespace}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: landscape.SystemNamespace, Name: "privateregcred"}, Type: corev1.SecretTypeDockerConfigJson, Data: docker},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: landscape.SystemNamespace, Name: "chartcred"}, Type: corev1.SecretTypeDockerConfigJson, Data: docker},
		config,
	} {
		if err := s.Create(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// access is a kubeconfig for the stage as a ClusterProvider writes it.
func (s *stage) access(ctx context.Context, server apiserver.Server) ([]byte, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: landscape.SystemNamespace, Name: "remote"}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "remote"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}
	if err := errors.Join(s.Create(ctx, account), s.Create(ctx, binding)); err != nil {
		return nil, err
	}
	token := &authenticationv1.TokenRequest{}
	if err := s.SubResource("token").Create(ctx, account, token); err != nil {
		return nil, err
	}
	ca, err := server.CA()
	if err != nil {
		return nil, err
	}
	return clusteraccess.CreateTokenKubeconfig("remote", server.URL(), ca, token.Status.Token)
}

// theirs is the finalizer of everybody who is played.
const theirs = "example.com/played"

// play has the others take one step for a tenant: openmcp-operator, the ClusterProvider, source-controller and helm-controller.
func (s *stage) play(t *testing.T, names plan.Names) {
	t.Helper()
	s.playOpenMCP(t, names.TenantNamespace)
	s.playFlux(t, names.TenantNamespace)
}

// playOpenMCP has openmcp-operator and the ClusterProvider take one step.
func (s *stage) playOpenMCP(t *testing.T, namespace string) {
	t.Helper()
	var requests clustersv1alpha1.AccessRequestList
	var clusters clustersv1alpha1.ClusterRequestList
	for _, list := range []client.ObjectList{&requests, &clusters} {
		must(t, s.List(t.Context(), list, client.InNamespace(namespace)))
	}
	for i := range clusters.Items {
		s.settle(t, &clusters.Items[i], func() {
			clusters.Items[i].Status.Phase, clusters.Items[i].Status.ObservedGeneration = clustersv1alpha1.REQUEST_GRANTED, clusters.Items[i].Generation
		})
	}
	for i := range requests.Items {
		s.grant(t, &requests.Items[i])
	}
}

// playFlux has source-controller and helm-controller take one step.
func (s *stage) playFlux(t *testing.T, namespace string) {
	t.Helper()
	var sources sourcev1.OCIRepositoryList
	var releases helmv2.HelmReleaseList
	for _, list := range []client.ObjectList{&sources, &releases} {
		must(t, s.List(t.Context(), list, client.InNamespace(namespace)))
	}
	for i := range sources.Items {
		source := &sources.Items[i]
		s.settle(t, source, func() {
			source.Status.Artifact = &fluxmeta.Artifact{Digest: digest, Revision: "0.1.0@" + source.Spec.Reference.Digest, Path: "path", URL: "http://source.example", LastUpdateTime: metav1.Unix(1, 0)}
			source.Status.ObservedGeneration = source.Generation
			setReady(&source.Status.Conditions, source.Generation, "Succeeded")
		})
	}
	for i := range releases.Items {
		release := &releases.Items[i]
		s.settle(t, release, func() {
			release.Status.History = helmv2.Snapshots{s.snapshot(t, release)}
			release.Status.LastAttemptedConfigDigest, release.Status.LastAttemptedGeneration = digest, release.Generation
			release.Status.ObservedGeneration = release.Generation
			setReady(&release.Status.Conditions, release.Generation, helmv2.InstallSucceededReason)
		})
	}
}

func (s *stage) snapshot(t *testing.T, release *helmv2.HelmRelease) *helmv2.Snapshot {
	t.Helper()
	source := &sourcev1.OCIRepository{}
	must(t, s.Get(t.Context(), client.ObjectKey{Namespace: release.Namespace, Name: release.Spec.ChartRef.Name}, source))
	return &helmv2.Snapshot{
		Version: 1, Name: release.Name, Namespace: release.Spec.TargetNamespace, ChartName: release.Name, ChartVersion: "0.1.0", Status: "deployed",
		ConfigDigest: digest, Digest: digest, OCIDigest: source.Spec.Reference.Digest, FirstDeployed: metav1.Unix(1, 0), LastDeployed: metav1.Unix(1, 0),
	}
}

// settle is how every controller treats an object of its own: a finalizer, then a status; at the end the finalizer goes.
func (s *stage) settle(t *testing.T, object client.Object, status func()) {
	t.Helper()
	before := object.DeepCopyObject().(client.Object)
	if !object.GetDeletionTimestamp().IsZero() {
		controllerutil.RemoveFinalizer(object, theirs)
		must(t, client.IgnoreNotFound(s.Patch(t.Context(), object, client.MergeFrom(before))))
		return
	}
	if controllerutil.AddFinalizer(object, theirs) {
		must(t, s.Patch(t.Context(), object, client.MergeFrom(before)))
	}
	before = object.DeepCopyObject().(client.Object)
	status()
	must(t, s.Status().Patch(t.Context(), object, client.MergeFrom(before)))
}

func (s *stage) grant(t *testing.T, request *clustersv1alpha1.AccessRequest) {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: request.Namespace, Name: request.Name + ".kubeconfig"},
		Data:       map[string][]byte{clustersv1alpha1.SecretKeyKubeconfig: s.kubeconfig},
	}
	if request.DeletionTimestamp.IsZero() {
		must(t, ensure(t.Context(), s, secret))
	} else {
		must(t, client.IgnoreNotFound(s.Delete(t.Context(), secret)))
	}
	s.settle(t, request, func() {
		request.Status.Phase, request.Status.ObservedGeneration = clustersv1alpha1.REQUEST_GRANTED, request.Generation
		request.Status.SecretRef = &commonapi.LocalObjectReference{Name: secret.Name}
	})
}

func setReady(conditions *[]metav1.Condition, generation int64, reason string) {
	*conditions = []metav1.Condition{{Type: fluxmeta.ReadyCondition, Status: metav1.ConditionTrue, Reason: reason, Message: "played", ObservedGeneration: generation, LastTransitionTime: metav1.Unix(1, 0)}}
}

// left are the objects in a tenant namespace that should be gone with the Velero.
func (s *stage) left(ctx context.Context, names plan.Names, controlPlane string) error {
	var requests clustersv1alpha1.AccessRequestList
	var clusters clustersv1alpha1.ClusterRequestList
	var sources sourcev1.OCIRepositoryList
	var releases helmv2.HelmReleaseList
	var secrets corev1.SecretList
	for _, list := range []client.ObjectList{&requests, &clusters, &sources, &releases, &secrets} {
		if err := s.List(ctx, list, client.InNamespace(names.TenantNamespace)); err != nil {
			return err
		}
	}
	if len(clusters.Items) != 1 || clusters.Items[0].Name != controlPlane {
		return fmt.Errorf("%d ClusterRequests are left, want that of the control plane", len(clusters.Items))
	}
	if count := len(requests.Items) + len(sources.Items) + len(releases.Items) + len(secrets.Items); count > 0 {
		return fmt.Errorf("%d AccessRequests, %d OCIRepositories, %d HelmReleases, %d Secrets are left", len(requests.Items), len(sources.Items), len(releases.Items), len(secrets.Items))
	}
	return nil
}
