package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/controller-utils/pkg/logging"
	openmcpconst "github.com/openmcp-project/openmcp-operator/api/constants"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/app"
	"github.com/openmcp-project/service-provider-velero/test/await"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

func ofFlux(crd string) bool { return strings.HasSuffix(crd, ".toolkit.fluxcd.io") }

// fluxless is a whole operator on a platform where Flux comes and goes.
type fluxless struct {
	*stage
	health string
	ended  chan error
}

// runWithoutFlux starts the operator on a stage without Flux's CRDs.
func runWithoutFlux(t *testing.T) *fluxless {
	t.Helper()
	stage, err := newStage(t.Context(), "fluxless", func(crd string) bool { return !ofFlux(crd) })
	must(t, err)
	port, err := site.FreePort()
	must(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, os.WriteFile(kubeconfig, stage.kubeconfig, 0o600))
	t.Setenv(openmcpconst.EnvVariablePodNamespace, landscape.SystemNamespace)
	ctx, stop := context.WithCancel(t.Context())
	f := &fluxless{stage: stage, health: fmt.Sprintf("127.0.0.1:%d", port), ended: make(chan error, 1)}
	go func() {
		f.ended <- app.Run(ctx, app.Options{
			ProviderName: landscape.ProviderName, Kubeconfig: kubeconfig, AccessTimeout: limit, MetricsAddress: "0", HealthAddress: f.health,
		}, logging.Discard())
	}()
	t.Cleanup(func() {
		stop()
		if err := <-f.ended; err != nil {
			t.Errorf("the operator ended with %v", err)
		}
	})
	return f
}

// within plays openMCP, and Flux if it is there, until check passes.
func (f *fluxless) within(t *testing.T, limit time.Duration, what string, flux bool, lives []*life, check func(context.Context) error) {
	t.Helper()
	err := await.Until(t.Context(), limit, func(ctx context.Context) error {
		select {
		case err := <-f.ended:
			f.ended <- nil
			t.Fatalf("%s: the operator ended with %v", what, err)
		default:
		}
		f.playOpenMCP(t, landscape.SystemNamespace)
		for _, life := range lives {
			f.playOpenMCP(t, life.names.TenantNamespace)
			if flux {
				f.playFlux(t, life.names.TenantNamespace)
			}
		}
		return check(ctx)
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// says checks the phase of a Velero, and the status and reason of its condition Ready.
func (f *fluxless) says(life *life, phase v1alpha1.InstancePhase, status metav1.ConditionStatus, reason string) func(context.Context) error {
	return func(ctx context.Context) error {
		velero := &v1alpha1.Velero{}
		if err := f.Get(ctx, life.velero, velero); err != nil {
			return err
		}
		ready := apimeta.FindStatusCondition(velero.Status.Conditions, v1alpha1.ConditionReady)
		if velero.Status.Phase != string(phase) || ready == nil || ready.Status != status || ready.Reason != reason {
			return fmt.Errorf("its status is %+v", velero.Status)
		}
		return nil
	}
}

// answers checks an endpoint of the operator.
func (f *fluxless) answers(path string, status int) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.health+path, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != status {
			return fmt.Errorf("%s answers %s", path, response.Status)
		}
		return nil
	}
}

// removeFlux deletes Flux's CRDs, and has Flux let go of its objects.
func (f *fluxless) removeFlux(t *testing.T, life *life) {
	t.Helper()
	var definitions apiextensionsv1.CustomResourceDefinitionList
	must(t, f.List(t.Context(), &definitions))
	for i := range definitions.Items {
		definition := &definitions.Items[i]
		if !ofFlux(definition.Name) {
			continue
		}
		must(t, f.Delete(t.Context(), definition))
		eventually(t, "CRD "+definition.Name+" is gone", func(ctx context.Context) error {
			if definition.Spec.Names.Kind == "HelmRelease" || definition.Spec.Names.Kind == "OCIRepository" {
				f.letGo(ctx, life, definition)
			}
			err := isGone(ctx, f, definition)
			if err != nil {
				f.lookAgain(ctx, definition)
			}
			return err
		})
	}
}

// lookAgain has the API server try again at once to finish the removal of a CRD. When that fails at first, as it does while the kind is not served
// yet, its own attempts become so rare that one of them alone may take minutes.
func (f *fluxless) lookAgain(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition) {
	touch := fmt.Sprintf(`{"metadata":{"annotations":{"test.example/looked":%q}}}`, time.Now())
	_ = f.Patch(ctx, definition.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(touch)))
}

// letGo takes the finalizers off the objects of a kind that goes.
func (f *fluxless) letGo(ctx context.Context, life *life, definition *apiextensionsv1.CustomResourceDefinition) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: definition.Spec.Group, Version: definition.Status.StoredVersions[0], Kind: definition.Spec.Names.ListKind})
	_ = f.List(ctx, list, client.InNamespace(life.names.TenantNamespace))
	for i := range list.Items {
		_ = f.Patch(ctx, &list.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	}
}

// TestOperatorWithoutFlux: it starts before Flux is installed, tells so, deletes what need not wait, goes on by itself when Flux comes, and tells
// again when Flux is taken away. It never ends.
func TestOperatorWithoutFlux(t *testing.T) {
	f := runWithoutFlux(t)
	stays, goes := f.newLife(t, "stays", &line{}), f.newLife(t, "goes", &line{})
	both := []*life{stays, goes}
	incomplete := f.says(stays, v1alpha1.Failed, metav1.ConditionFalse, v1alpha1.ReasonPlatformIncomplete)
	f.within(t, limit, "without Flux", false, both, incomplete)
	must(t, errors.Join(f.answers("/healthz", http.StatusOK)(t.Context()), f.answers("/readyz", http.StatusInternalServerError)(t.Context())))
	must(t, f.Delete(t.Context(), &v1alpha1.Velero{ObjectMeta: metav1.ObjectMeta{Namespace: goes.velero.Namespace, Name: goes.velero.Name}}))
	f.within(t, limit, "a deletion without Flux", false, both, func(ctx context.Context) error {
		return isGone(ctx, f, &v1alpha1.Velero{ObjectMeta: metav1.ObjectMeta{Namespace: goes.velero.Namespace, Name: goes.velero.Name}})
	})
	must(t, f.copyCRDs(t.Context(), platform, ofFlux))
	ready := f.says(stays, v1alpha1.Ready, metav1.ConditionTrue, v1alpha1.ReasonReady)
	f.within(t, limit, "Flux has come", true, both, ready)
	f.within(t, soon, "Flux has come", true, both, f.answers("/readyz", http.StatusOK))
	f.removeFlux(t, stays)
	f.within(t, limit, "Flux was taken away", false, both, incomplete)
	must(t, f.copyCRDs(t.Context(), platform, ofFlux))
	f.within(t, 2*limit, "Flux is back", true, both, ready)
}
