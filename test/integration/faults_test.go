package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/access"
	"github.com/openmcp-project/service-provider-velero/internal/cluster"
	"github.com/openmcp-project/service-provider-velero/internal/controller"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

func fullProviderConfigObject() *v1alpha1.ProviderConfig {
	config := &v1alpha1.ProviderConfig{}
	if err := yaml.UnmarshalStrict([]byte(fullProviderConfig), config); err != nil {
		panic(err)
	}
	return config
}

// fault is how one call fails.
type fault string

const (
	// conflict: somebody else wrote in between.
	conflict fault = "conflict"
	// internal: the API server answers 500, and did nothing.
	internal fault = "internal"
	// lost: the API server did what it was asked to, but the answer is lost.
	lost fault = "timeout"
)

// marker is in the text of every error that is injected.
const marker = "injected-fault"

// line is the way to the API server. It knows each call by what it does and how often that was done before, and breaks some of them once.
type line struct {
	fault fault
	// breaks are the calls to break.
	breaks map[string]bool

	done  map[string]int
	calls []call
	// broken are those that were broken so far.
	broken []string
}

// call is what was called, and for which time.
type call struct {
	what  string
	time  int
	write bool
}

func (c call) name() string { return fmt.Sprintf("%s #%d", c.what, c.time) }

// call lets a call through, or breaks it.
func (l *line) call(write bool, verb string, kind any, name string, do func() error) error {
	if l.done == nil {
		l.done = map[string]int{}
	}
	if strings.HasPrefix(name, "mcp--") {
		// The tenant namespace has another name in each life.
		name = "of the tenant"
	}
	what := fmt.Sprintf("%s %T %s", verb, kind, name)
	l.done[what]++
	this := call{what: what, time: l.done[what], write: write}
	l.calls = append(l.calls, this)
	if !l.breaks[this.name()] {
		return do()
	}
	l.broken = append(l.broken, this.name())
	switch l.fault {
	case conflict:
		return apierrors.NewConflict(schema.GroupResource{Resource: marker}, marker, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	case lost:
		_ = do()
		return fmt.Errorf("%s: %w", marker, context.DeadlineExceeded)
	default:
		return apierrors.NewInternalError(errors.New(marker))
	}
}

// client is a client whose calls go through the line.
func (l *line) client(inner client.WithWatch) client.WithWatch {
	return interceptor.NewClient(inner, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			return l.call(false, "get", object, key.Name, func() error { return c.Get(ctx, key, object, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return l.call(false, "list", list, "", func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.CreateOption) error {
			return l.call(true, "create", object, object.GetName(), func() error { return c.Create(ctx, object, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			return l.call(true, "delete", object, object.GetName(), func() error { return c.Delete(ctx, object, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.UpdateOption) error {
			return l.call(true, "update", object, object.GetName(), func() error { return c.Update(ctx, object, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return l.call(true, "patch", object, object.GetName(), func() error { return c.Patch(ctx, object, patch, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, object runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return l.call(true, "apply", object, "", func() error { return c.Apply(ctx, object, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return l.call(true, "patch "+sub, object, object.GetName(), func() error { return c.SubResource(sub).Patch(ctx, object, patch, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, object client.Object, opts ...client.SubResourceUpdateOption) error {
			return l.call(true, "update "+sub, object, object.GetName(), func() error { return c.SubResource(sub).Update(ctx, object, opts...) })
		},
	})
}

// life is one Velero from its creation to its end, with some calls that fail.
type life struct {
	*line
	stage      *stage
	velero     types.NamespacedName
	names      plan.Names
	reconciler *controller.Reconciler
}

func newLife(t *testing.T, namespace string, line *line) *life {
	t.Helper()
	stage, err := theStage()
	must(t, err)
	return stage.newLife(t, namespace, line)
}

// newLife begins on this stage.
func (s *stage) newLife(t *testing.T, namespace string, line *line) *life {
	t.Helper()
	velero := types.NamespacedName{Namespace: namespace, Name: "life"}
	names, err := plan.NamesOf(velero)
	must(t, err)
	faulty := line.client(s)
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names.TenantNamespace}},
		&clustersv1alpha1.ClusterRequest{ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace, Name: velero.Name}, Spec: clustersv1alpha1.ClusterRequestSpec{Purpose: "mcp"}},
		&v1alpha1.Velero{ObjectMeta: metav1.ObjectMeta{Namespace: velero.Namespace, Name: velero.Name}, Spec: v1alpha1.VeleroSpec{Version: "v1.17.1", Plugins: []v1alpha1.Plugin{{Name: "aws", Version: "v1.13.0"}}}},
	} {
		must(t, s.Create(t.Context(), object))
	}
	return &life{line: line, stage: s, velero: velero, names: names, reconciler: &controller.Reconciler{
		Onboarding: faulty,
		Configs:    controller.Configs{Platform: faulty, ProviderName: landscape.ProviderName},
		Access:     access.New(faulty, faulty, rights("secrets")),
		Platform:   cluster.New(faulty, faulty, landscape.SystemNamespace),
		Recorder:   &events.FakeRecorder{},
	}}
}

// steps bounds the reconciles that one half of a life may take; an undisturbed one takes about ten.
const steps = 100

// until reconciles and lets the others act until the end is reached. Nothing that went wrong may be seen by the user.
func (l *life) until(t *testing.T, what string, end func(*v1alpha1.Velero) bool) {
	t.Helper()
	velero := &v1alpha1.Velero{}
	var last error
	for range steps {
		_, last = l.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: l.velero})
		velero = &v1alpha1.Velero{}
		must(t, client.IgnoreNotFound(l.stage.Get(t.Context(), l.velero, velero)))
		l.tellsNothing(t, velero)
		if last == nil && end(velero) {
			return
		}
		l.stage.play(t, l.names)
	}
	t.Fatalf("%s is not reached after these failed: %v; the last error is %v, the status %+v", what, l.broken, last, velero.Status)
}

// tellsNothing: what went wrong between two programs is nothing that a user can act on.
func (l *life) tellsNothing(t *testing.T, velero *v1alpha1.Velero) {
	t.Helper()
	if velero.Status.Phase == string(v1alpha1.Failed) {
		t.Errorf("a user is asked to act after these failed: %v: %+v", l.broken, velero.Status.Conditions)
	}
	for _, condition := range velero.Status.Conditions {
		for _, text := range []string{marker, "has been modified", "deadline", "conflict", "Internal error"} {
			if strings.Contains(condition.Message, text) {
				t.Errorf("condition %s tells %q", condition.Type, condition.Message)
			}
		}
	}
}

// run lives the life and returns the status at its height.
func (l *life) run(t *testing.T) v1alpha1.VeleroStatus {
	t.Helper()
	var height v1alpha1.VeleroStatus
	l.until(t, "Ready", func(velero *v1alpha1.Velero) bool {
		height = velero.Status
		return velero.Status.Phase == string(v1alpha1.Ready) && velero.Status.ObservedGeneration == velero.Generation
	})
	must(t, l.stage.Delete(t.Context(), &v1alpha1.Velero{ObjectMeta: metav1.ObjectMeta{Namespace: l.velero.Namespace, Name: l.velero.Name}}))
	l.until(t, "the end", func(velero *v1alpha1.Velero) bool { return velero.Name == "" })
	must(t, l.stage.left(t.Context(), l.names, l.velero.Name))
	return height
}

// lives is among how many lives the calls to break are dealt out: one fault in each life would be the same, but take an hour.
const lives = 4

// TestEachCallFailsOnce breaks each call of a whole life, in each way that it can fail. The end is the same as without.
func TestEachCallFailsOnce(t *testing.T) {
	calm := &line{}
	undisturbed := newLife(t, "life", calm).run(t)
	t.Logf("a life takes %d calls", len(calm.calls))
	for _, kind := range []fault{internal, conflict, lost} {
		disturbed := make([]*line, lives)
		t.Run(string(kind), func(t *testing.T) {
			for number := range disturbed {
				disturbed[number] = &line{fault: kind, breaks: dealt(calm.calls, kind, number)}
				t.Run(fmt.Sprint(number), func(t *testing.T) {
					t.Parallel()
					// The calls are known by names, so the Velero has the same one, in a namespace of its own.
					height := newLife(t, fmt.Sprintf("life-%s-%d", kind, number), disturbed[number]).run(t)
					if diff := cmp.Diff(undisturbed, height, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
						t.Errorf("after these failed: %v\nthe status is another (-undisturbed +disturbed):\n%s", disturbed[number].broken, diff)
					}
				})
			}
		})
		for _, call := range unbroken(calm.calls, kind, disturbed) {
			t.Errorf("%s: never failed: %s", kind, call)
		}
	}
}

// dealt are the calls that one life has to break: every write, and every read for the first and then each tenth time. Reads have no conflicts
// and nothing to lose.
func dealt(calls []call, kind fault, number int) map[string]bool {
	breaks, next := map[string]bool{}, 0
	for _, call := range calls {
		if !call.write && (kind != internal || call.time%10 != 1) {
			continue
		}
		if next%lives == number {
			breaks[call.name()] = true
		}
		next++
	}
	return breaks
}

// unbroken are the calls that failed in no life. A life with faults makes some calls less often than one without.
func unbroken(calls []call, kind fault, lines []*line) []string {
	failed := map[string]bool{}
	for _, line := range lines {
		for _, name := range line.broken {
			what, _, _ := strings.Cut(name, " #")
			failed[what] = true
		}
	}
	var left []string
	for _, call := range calls {
		if (call.write || kind == internal) && !failed[call.what] {
			left = append(left, call.what)
		}
	}
	return left
}
