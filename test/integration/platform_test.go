package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/openmcp-project/service-provider-velero/fluxgen"
	"github.com/openmcp-project/service-provider-velero/internal/cluster"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

func platformOf() *cluster.Platform { return cluster.New(cached, uncached, landscape.SystemNamespace) }

// rendered is what Flux is told for one release of a tenant. The chart does not exist, so Flux does nothing on any target.
func rendered(t *testing.T, names plan.Names) (*sourcev1.OCIRepository, *helmv2.HelmRelease) {
	t.Helper()
	target, err := fluxgen.NewTarget("kubeconfig", "kubeconfig", names.WorkloadNamespace)
	must(t, err)
	source, release, err := fluxgen.Render(fluxgen.Release{
		Name: plan.ServerRelease, Namespace: names.TenantNamespace, Labels: names.Labels(),
		Chart:  fluxgen.Chart{Repository: world.ChartRepository(), Name: "absent", Version: "0.1.0", Insecure: true},
		Target: target, Values: map[string]any{"image": "velero/velero:v1.17.1", "plugins": []any{map[string]any{"name": "aws", "image": "a:b"}}, "a": 1},
		Interval: time.Hour, Timeout: time.Minute, Policy: fluxgen.Policy{Wait: true},
	})
	must(t, err)
	return source, release
}

// applied are the objects of a tenant after a first apply, as the caches have them.
func applied(t *testing.T, names plan.Names) cluster.Observation {
	t.Helper()
	source, release := rendered(t, names)
	_, err := platformOf().ApplySource(t.Context(), nil, source)
	must(t, err)
	_, err = platformOf().ApplyRelease(t.Context(), nil, release)
	must(t, err)
	return observed(t, names, func(seen cluster.Observation) error {
		if seen.Sources[source.Name] == nil || seen.Releases[release.Name] == nil {
			return fmt.Errorf("the caches have %d sources and %d releases", len(seen.Sources), len(seen.Releases))
		}
		return nil
	})
}

// observed waits until the caches show what check wants.
func observed(t *testing.T, names plan.Names, check func(cluster.Observation) error) cluster.Observation {
	t.Helper()
	var seen cluster.Observation
	eventually(t, "the caches follow", func(ctx context.Context) error {
		var err error
		if seen, err = platformOf().Observe(ctx, names); err != nil {
			return err
		}
		return check(seen)
	})
	return seen
}

// current waits until the caches have the newest state of both objects.
func current(t *testing.T, names plan.Names) cluster.Observation {
	t.Helper()
	source, release := rendered(t, names)
	return observed(t, names, func(seen cluster.Observation) error {
		var newest helmv2.HelmRelease
		var newestSource sourcev1.OCIRepository
		if err := errors.Join(
			platform.Get(t.Context(), client.ObjectKeyFromObject(release), &newest), platform.Get(t.Context(), client.ObjectKeyFromObject(source), &newestSource),
		); err != nil {
			return err
		}
		if seen.Releases[release.Name] == nil || seen.Sources[source.Name] == nil {
			return errors.New("the caches lack an object")
		}
		if seen.Releases[release.Name].Generation != newest.Generation || !equality.Semantic.DeepEqual(seen.Releases[release.Name].Labels, newest.Labels) ||
			seen.Sources[source.Name].Generation != newestSource.Generation || !equality.Semantic.DeepEqual(seen.Sources[source.Name].Labels, newestSource.Labels) {
			return errors.New("the caches are behind")
		}
		return nil
	})
}

// correct applies both objects to what the caches have, again when Flux wrote a status in between, as the operator does.
func correct(t *testing.T, names plan.Names) {
	t.Helper()
	source, release := rendered(t, names)
	var err error
	for range 100 {
		seen := current(t, names)
		_, err = platformOf().ApplySource(t.Context(), seen.Sources[source.Name], source.DeepCopy())
		if err == nil {
			_, err = platformOf().ApplyRelease(t.Context(), seen.Releases[release.Name], release.DeepCopy())
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	must(t, err)
}

// apply applies both objects to what was observed.
func apply(t *testing.T, names plan.Names, seen cluster.Observation) {
	t.Helper()
	source, release := rendered(t, names)
	_, err := platformOf().ApplySource(t.Context(), seen.Sources[source.Name], source)
	must(t, err)
	_, err = platformOf().ApplyRelease(t.Context(), seen.Releases[release.Name], release)
	must(t, err)
}

func TestApplyCreates(t *testing.T) {
	_, names := newTenant(t, "apply-creates")
	seen := applied(t, names)
	wantedSource, wantedRelease := rendered(t, names)
	source, release := seen.Sources[wantedSource.Name], seen.Releases[wantedRelease.Name]
	// What the API server stores is what was generated: it has no default left to add.
	if diff := cmp.Diff(wantedSource.Spec, source.Spec); diff != "" {
		t.Errorf("OCIRepository (-generated +stored):\n%s", diff)
	}
	wantedRelease.Spec.Values, release = nil, release.DeepCopy()
	release.Spec.Values = nil
	if diff := cmp.Diff(wantedRelease.Spec, release.Spec, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("HelmRelease (-generated +stored):\n%s", diff)
	}
	for key, value := range names.Labels() {
		if source.Labels[key] != value || release.Labels[key] != value {
			t.Errorf("label %s is %q and %q, want %q", key, source.Labels[key], release.Labels[key], value)
		}
	}
}

func TestSecondApplyCallsNothing(t *testing.T) {
	_, names := newTenant(t, "apply-twice")
	applied(t, names)
	seen := current(t, names)
	callsNothing(t, "an apply of what is there", func() { apply(t, names, seen) })
	source, _ := rendered(t, names)
	merge(t, platform, seen.Sources[source.Name].DeepCopy(), `{"metadata":{"annotations":{"note":"of an SRE"},"labels":{"note":"of-an-SRE"}}}`)
	seen = current(t, names)
	callsNothing(t, "an apply of what has a note", func() { apply(t, names, seen) })
}

func TestApplyAgainBeforeTheCacheKnows(t *testing.T) {
	_, names := newTenant(t, "apply-blind")
	source, release := rendered(t, names)
	for range 2 {
		_, err := platformOf().ApplySource(t.Context(), nil, source.DeepCopy())
		must(t, err)
		_, err = platformOf().ApplyRelease(t.Context(), nil, release.DeepCopy())
		must(t, err)
	}
}

func TestDriftIsCorrected(t *testing.T) {
	_, names := newTenant(t, "apply-drift")
	wantedSource, wantedRelease := rendered(t, names)
	seen := applied(t, names)
	tests := map[string]struct{ source, release string }{
		"Spec":          {`{"spec":{"interval":"1h1m","url":"oci://elsewhere.example/charts"}}`, `{"spec":{"interval":"1h1m","targetNamespace":"kube-system"}}`},
		"ValuesAdded":   {`{}`, `{"spec":{"values":{"evil":"yes"}}}`},
		"ValuesRemoved": {`{}`, `{"spec":{"values":null}}`},
		"FieldAdded":    {`{"spec":{"ignore":"*"}}`, `{"spec":{"serviceAccountName":"admin","dependsOn":[{"name":"other"}]}}`},
		"FieldRemoved":  {`{"spec":{"layerSelector":null}}`, `{"spec":{"storageNamespace":null,"driftDetection":null}}`},
		"Labels":        {`{"metadata":{"labels":{"openmcp.cloud/onboarding-name":"other"}}}`, `{"metadata":{"labels":{"openmcp.cloud/onboarding-name":null}}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			merge(t, platform, seen.Sources[wantedSource.Name].DeepCopy(), test.source)
			merge(t, platform, seen.Releases[wantedRelease.Name].DeepCopy(), test.release)
			correct(t, names)
			after := current(t, names)
			source, release := after.Sources[wantedSource.Name], after.Releases[wantedRelease.Name]
			if diff := cmp.Diff(wantedSource.Spec, source.Spec); diff != "" {
				t.Errorf("OCIRepository (-wanted +there):\n%s", diff)
			}
			if cluster.Differs(release, wantedRelease) {
				t.Errorf("HelmRelease (-wanted +there):\n%s", cmp.Diff(wantedRelease.Spec, release.Spec))
			}
			for key, value := range names.Labels() {
				if source.Labels[key] != value || release.Labels[key] != value {
					t.Errorf("label %s is %q and %q, want %q", key, source.Labels[key], release.Labels[key], value)
				}
			}
		})
	}
}

// TestSuspendIsTheSREs: suspending is how an SRE holds a release while working on it.
func TestSuspendIsTheSREs(t *testing.T) {
	_, names := newTenant(t, "apply-suspend")
	source, release := rendered(t, names)
	seen := applied(t, names)
	merge(t, platform, seen.Sources[source.Name].DeepCopy(), `{"spec":{"suspend":true}}`)
	merge(t, platform, seen.Releases[release.Name].DeepCopy(), `{"spec":{"suspend":true}}`)
	seen = current(t, names)
	callsNothing(t, "an apply of what is suspended", func() { apply(t, names, seen) })
	merge(t, platform, seen.Sources[source.Name].DeepCopy(), `{"spec":{"interval":"1h1m"}}`)
	merge(t, platform, seen.Releases[release.Name].DeepCopy(), `{"spec":{"interval":"1h1m"}}`)
	correct(t, names)
	after := current(t, names)
	if got := after.Sources[source.Name]; !got.Spec.Suspend || got.Spec.Interval != source.Spec.Interval {
		t.Errorf("OCIRepository: suspend %v, interval %s", got.Spec.Suspend, got.Spec.Interval.Duration)
	}
	if got := after.Releases[release.Name]; !got.Spec.Suspend || got.Spec.Interval != release.Spec.Interval {
		t.Errorf("HelmRelease: suspend %v, interval %s", got.Spec.Suspend, got.Spec.Interval.Duration)
	}
}

// TestStaleViewIsRefused: who looked at an old state must not overwrite the new one.
func TestStaleViewIsRefused(t *testing.T) {
	_, names := newTenant(t, "apply-stale")
	source, release := rendered(t, names)
	stale := applied(t, names)
	merge(t, platform, stale.Sources[source.Name].DeepCopy(), `{"spec":{"suspend":true}}`)
	merge(t, platform, stale.Releases[release.Name].DeepCopy(), `{"spec":{"suspend":true}}`)
	source.Spec.Interval.Duration, release.Spec.Interval.Duration = time.Minute, time.Minute
	if _, err := platformOf().ApplySource(t.Context(), stale.Sources[source.Name], source); err == nil {
		t.Error("an OCIRepository that changed since was overwritten")
	}
	if _, err := platformOf().ApplyRelease(t.Context(), stale.Releases[release.Name], release); err == nil {
		t.Error("a HelmRelease that changed since was overwritten")
	}
}

// TestObjectOfSomebodyElse: an object of our name that is not ours is told, and left as it is.
func TestObjectOfSomebodyElse(t *testing.T) {
	tests := map[string]map[string]string{
		"no-labels":    nil,
		"other-labels": {plan.ManagedByLabel: "Helm"},
		// As if another tenant's object had come here: it is in our caches.
		"other-tenant": {plan.ManagedByLabel: plan.ProviderName, plan.InstanceLabel: "another"},
	}
	for name, labels := range tests {
		t.Run(name, func(t *testing.T) {
			_, names := newTenant(t, "conflict-"+name)
			source, release := rendered(t, names)
			source.Labels, release.Labels = labels, labels
			// Flux leaves them alone too.
			source.Spec.Suspend, release.Spec.Suspend = true, true
			source.Spec.Interval.Duration, release.Spec.Interval.Duration = time.Minute, time.Minute
			for _, object := range []client.Object{source.DeepCopy(), release.DeepCopy()} {
				must(t, platform.Create(t.Context(), object))
			}
			seen := cluster.Observation{}
			if labels[plan.ManagedByLabel] == plan.ProviderName {
				seen = current(t, names)
			}
			before := contents(t, source, release)
			wantedSource, wantedRelease := rendered(t, names)
			_, err := platformOf().ApplySource(t.Context(), seen.Sources[source.Name], wantedSource)
			conflicts(t, err, "OCIRepository", source.Name)
			_, err = platformOf().ApplyRelease(t.Context(), seen.Releases[release.Name], wantedRelease)
			conflicts(t, err, "HelmRelease", release.Name)
			if diff := cmp.Diff(before, contents(t, source, release)); diff != "" {
				t.Errorf("an object of somebody else was written (-before +after):\n%s", diff)
			}
		})
	}
}

func conflicts(t *testing.T, err error, kind, name string) {
	t.Helper()
	var conflict *cluster.ConflictError
	if !errors.As(err, &conflict) || conflict.Kind != kind || conflict.Name != name {
		t.Errorf("error %v, want a conflict about %s %q", err, kind, name)
	}
}

// contents are objects as they are now, without what Flux writes into every object.
func contents(t *testing.T, objects ...client.Object) []any {
	t.Helper()
	var found []any
	for _, object := range objects {
		newest := &unstructured.Unstructured{}
		kind, err := apiutil.GVKForObject(object, scheme())
		must(t, err)
		newest.SetGroupVersionKind(kind)
		must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(object), newest))
		found = append(found, newest.GetUID(), newest.GetGeneration(), newest.GetLabels(), newest.GetAnnotations(), newest.Object["spec"])
	}
	return found
}
