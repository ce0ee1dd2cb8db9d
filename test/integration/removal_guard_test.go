package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"

	"github.com/openmcp-project/service-provider-velero/internal/access"
	"github.com/openmcp-project/service-provider-velero/internal/cluster"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// TestRemovalBegun: only what was marked for this Velero counts. That a release is not there, or being deleted, is no sign of its removal.
func TestRemovalBegun(t *testing.T) {
	_, names := newTenant(t, "removal-begun")
	expect := func(when string, velero types.UID, want bool) {
		t.Helper()
		if begun, err := platformOf().RemovalBegun(t.Context(), names, velero); begun != want || err != nil {
			t.Errorf("%s: begun %v, error %v", when, begun, err)
		}
	}
	begin := func() {
		t.Helper()
		eventually(t, "it begins", func(ctx context.Context) error { return platformOf().BeginRemoval(ctx, names, "velero") })
	}
	expect("without any release", "velero", true)
	_, controlPlane := installedRelease(t, "removal-begun", func(r *helmv2.HelmRelease) { r.Name, r.Spec.Suspend = plan.ControlPlaneRelease, true })
	expect("without a server", "velero", false)
	begin()
	expect("without a server, after it began", "velero", true)
	expect("without a server, after another Velero's began", "another", false)
	_, server := installedRelease(t, "removal-begun", func(r *helmv2.HelmRelease) { r.Spec.Suspend = true })
	begin()
	expect("with a server", "velero", false)
	must(t, platform.Delete(t.Context(), server))
	expect("while the server goes", "velero", true)
	expect("while another Velero's server goes", "another", false)
	release(t.Context(), server)
	eventually(t, "the server is gone", func(ctx context.Context) error { return isGone(ctx, platform, server) })
	must(t, platform.Delete(t.Context(), controlPlane))
	expect("while the control plane's release goes", "velero", true)
	expect("while another Velero's control plane's release goes", "another", false)
}

// TestRemovalMarksWhatIsBeingDeleted by others, so that users are not asked again once that is gone.
func TestRemovalMarksWhatIsBeingDeleted(t *testing.T) {
	names, server := installedRelease(t, "removal-marks", func(r *helmv2.HelmRelease) { r.Spec.Suspend = true })
	must(t, platform.Delete(t.Context(), server))
	if begun, err := platformOf().RemovalBegun(t.Context(), names, "velero"); begun || err != nil {
		t.Errorf("after somebody deleted it: begun %v, error %v", begun, err)
	}
	eventually(t, "it is marked", func(ctx context.Context) error { return platformOf().BeginRemoval(ctx, names, "velero") })
	if begun, err := platformOf().RemovalBegun(t.Context(), names, "velero"); !begun || err != nil {
		t.Errorf("after it began: begun %v, error %v", begun, err)
	}
}

// TestErrorsOfTwoClusters: what goes wrong on the platform is not taken for a target that cannot be reached.
func TestErrorsOfTwoClusters(t *testing.T) {
	_, names := newTenant(t, "errors")
	must(t, platform.Create(t.Context(), kubeconfigSecret(t, names)))
	connected := remote(t, names)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, ofPlatform := platformOf().Remote(ended, names, plan.Grant{Secret: "kubeconfig", Key: clustersv1alpha1.SecretKeyKubeconfig})
	_, ofNamespace := cluster.RemoveNamespace(ended, connected, names.WorkloadNamespace)
	_, ofCRDs := cluster.RemoveCRDs(ended, connected, names, metav1.Time{})
	var remote *cluster.RemoteError
	if ofPlatform == nil || errors.As(ofPlatform, &remote) || errors.Is(ofPlatform, cluster.ErrCredentials) {
		t.Errorf("an error of the platform: %v", ofPlatform)
	}
	for what, err := range map[string]error{"namespace": ofNamespace, "CRDs": ofCRDs} {
		if !errors.As(err, &remote) || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestCRDThatCannotGo: nothing else says why the deletion stands still.
func TestCRDThatCannotGo(t *testing.T) {
	_, names := newTenant(t, "crd-held")
	must(t, platform.Create(t.Context(), kubeconfigSecret(t, names)))
	crd, held := veleroCRD("ServerStatusRequest"), instance("ServerStatusRequest", "held")
	must(t, establish(t.Context(), workload, crd))
	held.SetFinalizers([]string{hold})
	must(t, workload.Create(t.Context(), held))
	connected := remote(t, names)
	eventually(t, "the CRD is named", func(ctx context.Context) error {
		progress, err := cluster.RemoveCRDs(ctx, connected, names, metav1.Time{})
		if err == nil && (progress.Done || !strings.Contains(progress.Detail, crd.Name)) {
			err = fmt.Errorf("%+v", progress)
		}
		return err
	})
	merge(t, workload, held, `{"metadata":{"finalizers":null}}`)
	eventually(t, "the CRD is gone", func(ctx context.Context) error {
		progress, err := cluster.RemoveCRDs(ctx, connected, names, metav1.Time{})
		if err == nil && !progress.Done {
			err = fmt.Errorf("%+v", progress)
		}
		return err
	})
}

// using is a HelmRelease of nobody in particular that refers to a Secret; Flux leaves it alone.
func using(t *testing.T, names plan.Names, name, secret string) *helmv2.HelmRelease {
	t.Helper()
	_, used := rendered(t, names)
	used.Name, used.Labels, used.Finalizers = name, nil, []string{hold}
	used.Spec.Suspend, used.Spec.KubeConfig.SecretRef = true, &fluxmeta.SecretKeyReference{Name: secret, Key: clustersv1alpha1.SecretKeyKubeconfig}
	must(t, platform.Create(t.Context(), used))
	t.Cleanup(func() { release(context.WithoutCancel(t.Context()), used) })
	return used
}

// TestAccessThatIsTakenAway: people delete what an uninstallation needs.
func TestAccessThatIsTakenAway(t *testing.T) {
	velero, names := newTenant(t, "access-taken")
	standIn(t, velero, names)
	subject := accessOf(rights("secrets"))
	grants, _ := ensured(t, subject, velero)
	secretStaysForARelease(t, subject, velero, names, grants.ControlPlane.Secret)
	requestComesBack(t, subject, velero, names)
	usersAreNamed(t, subject, velero, names, grants.Workload.Secret)
	// Our label is not what the finalizer is found by.
	for _, secret := range secretsOf(t, names, grants) {
		merge(t, platform, secret, `{"metadata":{"labels":null}}`)
	}
	givesBack(t, subject, velero)
	for _, grant := range []plan.Grant{grants.ControlPlane, grants.Server, grants.Workload} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace, Name: grant.Secret}}
		eventually(t, "the Secret is gone", func(ctx context.Context) error { return isGone(ctx, platform, secret) })
	}
}

// secretStaysForARelease that is being deleted: Flux would drop it as soon as the Secret is gone.
func secretStaysForARelease(t *testing.T, subject *access.Access, velero types.NamespacedName, names plan.Names, name string) {
	t.Helper()
	user := using(t, names, "going", name)
	must(t, platform.Delete(t.Context(), user))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace, Name: name}}
	must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
	uid := secret.UID
	must(t, platform.Delete(t.Context(), secret))
	eventually(t, "the Secret is no grant any more", func(ctx context.Context) error {
		outcome, err := subject.Ensure(ctx, velero)
		if err == nil && outcome.Waiting == nil {
			err = errors.New("it is")
		}
		return err
	})
	must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
	if secret.UID != uid || !controllerutil.ContainsFinalizer(secret, plan.Finalizer) {
		t.Errorf("the Secret is let go: UID %s, before %s, finalizers %v", secret.UID, uid, secret.Finalizers)
	}
	release(t.Context(), user)
	ensured(t, subject, velero)
	must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(secret), secret))
	if secret.UID == uid {
		t.Error("the Secret is not made anew after the release is gone")
	}
}

// requestComesBack, with credentials that work.
func requestComesBack(t *testing.T, subject *access.Access, velero types.NamespacedName, names plan.Names) {
	t.Helper()
	request := requestOf(velero, names, access.Workload)
	must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(request), request))
	uid := request.UID
	must(t, platform.Delete(t.Context(), request))
	eventually(t, "the access is back", func(ctx context.Context) error {
		granted, err := subject.Restore(ctx, velero, access.Workload)
		if apierrors.IsConflict(err) || err == nil && !granted {
			err = fmt.Errorf("not granted, error %w", err)
		}
		return err
	})
	must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(request), request))
	if request.UID == uid {
		t.Fatal("it is the request that was deleted")
	}
	grant := plan.Grant{Secret: request.Status.SecretRef.Name, Key: clustersv1alpha1.SecretKeyKubeconfig}
	must(t, userOf(t, names, grant).List(t.Context(), &corev1.SecretList{}, client.InNamespace(names.WorkloadNamespace)))
}

// usersAreNamed whatever their labels.
func usersAreNamed(t *testing.T, subject *access.Access, velero types.NamespacedName, names plan.Names, secret string) {
	t.Helper()
	user := using(t, names, "relabelled", secret)
	using(t, names, "unrelated", "of-somebody-else")
	if users, err := subject.Users(t.Context(), velero); err != nil || fmt.Sprint(users) != "[relabelled]" {
		t.Errorf("users %v, error %v", users, err)
	}
	must(t, platform.Delete(t.Context(), user))
	release(t.Context(), user)
	eventually(t, "nobody uses it", func(ctx context.Context) error {
		users, err := subject.Users(ctx, velero)
		if err == nil && len(users) > 0 {
			err = fmt.Errorf("users %v", users)
		}
		return err
	})
}

// TestHoldingsOnTheirWay: a ClusterProvider makes the namespace before it grants.
func TestHoldingsOnTheirWay(t *testing.T) {
	velero, names := newTenant(t, "holdings-pending")
	var clusters clustersv1alpha1.ClusterList
	must(t, platform.List(t.Context(), &clusters))
	request := requestOf(velero, names, access.Workload)
	request.Labels = names.Labels()
	request.Labels[clustersv1alpha1.ProviderLabel], request.Labels[clustersv1alpha1.ProfileLabel] = "nobody", "none"
	request.Spec.Token = &clustersv1alpha1.TokenConfig{}
	request.Spec.ClusterRef = &commonapi.ObjectReference{Namespace: clusters.Items[0].Namespace, Name: clusters.Items[0].Name}
	expect := func(when string, pending bool) {
		t.Helper()
		holdings, err := accessOf(rights("secrets")).Holdings(t.Context(), velero)
		if err != nil || holdings.WorkloadPending != pending || holdings.WorkloadGone || holdings.Workload.Secret != "" {
			t.Errorf("%s: %+v, error %v", when, holdings, err)
		}
	}
	expect("before there is a request", false)
	must(t, platform.Create(t.Context(), request))
	expect("before it is granted", true)
	// A patch: openmcp-operator may write it, too.
	must(t, platform.Status().Patch(t.Context(), request, client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"Denied","observedGeneration":0}}`))))
	expect("when it is denied", false)
}
