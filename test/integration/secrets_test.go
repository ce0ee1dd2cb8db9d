package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/internal/cluster"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

func generated(names plan.Names, name string, kind corev1.SecretType, data map[string][]byte) *corev1.Secret {
	recorded := map[string]string{plan.SourcesAnnotation: "1", plan.KeysAnnotation: strings.Join(slices.Sorted(maps.Keys(data)), ",")}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace, Name: name, Labels: names.Labels(), Annotations: recorded},
		Type:       kind,
		Data:       data,
	}
}

func stored(t *testing.T, secret *corev1.Secret) *corev1.Secret {
	t.Helper()
	found := &corev1.Secret{}
	must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(secret), found))
	return found
}

func TestApplySecretReplacesAllData(t *testing.T) {
	_, names := newTenant(t, "secret-data")
	first := generated(names, "sp-velero-copy", corev1.SecretTypeOpaque, map[string][]byte{"gone": []byte("1"), "kept": []byte("1")})
	must(t, platformOf().ApplySecret(t.Context(), first.DeepCopy()))
	before := stored(t, first)
	merge(t, platform, before.DeepCopy(), `{"metadata":{"labels":{"note":"of-an-SRE"}},"data":{"foreign":"MQ=="}}`)
	second := generated(names, "sp-velero-copy", corev1.SecretTypeOpaque, map[string][]byte{"kept": []byte("2"), "new": []byte("2")})
	second.Annotations[plan.SourcesAnnotation] = "2"
	must(t, platformOf().ApplySecret(t.Context(), second.DeepCopy()))
	after := stored(t, first)
	if diff := cmp.Diff(second.Data, after.Data); diff != "" {
		t.Errorf("data (-wanted +there):\n%s", diff)
	}
	if after.UID != before.UID || after.Labels["note"] != "of-an-SRE" || after.Annotations[plan.SourcesAnnotation] != "2" || after.Labels[plan.InstanceLabel] != names.Instance {
		t.Errorf("the metadata is not that of before and of what is wanted: %+v", after.ObjectMeta)
	}
}

// TestApplySecretChangesTheType: the API server does not, so the Secret is made anew.
func TestApplySecretChangesTheType(t *testing.T) {
	_, names := newTenant(t, "secret-type")
	opaque := generated(names, "sp-velero-copy", corev1.SecretTypeOpaque, map[string][]byte{"a": []byte("1")})
	must(t, platformOf().ApplySecret(t.Context(), opaque.DeepCopy()))
	before := stored(t, opaque)
	docker := generated(names, "sp-velero-copy", corev1.SecretTypeDockerConfigJson, map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)})
	must(t, platformOf().ApplySecret(t.Context(), docker.DeepCopy()))
	after := stored(t, opaque)
	if after.Type != corev1.SecretTypeDockerConfigJson || after.UID == before.UID {
		t.Errorf("type %s, the same object: %v", after.Type, after.UID == before.UID)
	}
	if diff := cmp.Diff(docker.Data, after.Data); diff != "" {
		t.Errorf("data (-wanted +there):\n%s", diff)
	}
}

func TestSecretOfSomebodyElse(t *testing.T) {
	_, names := newTenant(t, "secret-conflict")
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace, Name: "sp-velero-copy"}, StringData: map[string]string{"mine": "1"}}
	must(t, platform.Create(t.Context(), foreign))
	for _, kind := range []corev1.SecretType{corev1.SecretTypeOpaque, corev1.SecretTypeBasicAuth} {
		err := platformOf().ApplySecret(t.Context(), generated(names, foreign.Name, kind, map[string][]byte{"a": []byte("1")}))
		conflicts(t, err, "Secret", foreign.Name)
	}
	if after := stored(t, foreign); after.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("a Secret of somebody else was written: %v", after.Data)
	}
}

// TestPrune removes only what is ours and not named.
func TestPrune(t *testing.T) {
	_, names := newTenant(t, "prune")
	source, _ := rendered(t, names)
	applied(t, names)
	used := generated(names, "sp-velero-used", corev1.SecretTypeOpaque, nil)
	unused := generated(names, "sp-velero-unused", corev1.SecretTypeOpaque, nil)
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace, Name: "sp-velero-foreign"}}
	for _, secret := range []*corev1.Secret{used, unused, foreign} {
		must(t, platform.Create(t.Context(), secret))
	}
	seen := observed(t, names, func(seen cluster.Observation) error {
		if len(seen.Secrets) != 2 || len(seen.Sources) != 1 {
			return fmt.Errorf("the caches have %d Secrets and %d sources", len(seen.Secrets), len(seen.Sources))
		}
		return nil
	})
	must(t, platformOf().Prune(t.Context(), seen, map[string]bool{source.Name: true}, map[string]bool{used.Name: true}))
	must(t, isGone(t.Context(), platform, unused))
	stored(t, used)
	stored(t, foreign)
	must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(source), source))
	callsNothing(t, "a prune with nothing to remove", func() {
		must(t, platformOf().Prune(t.Context(), current(t, names), map[string]bool{source.Name: true}, map[string]bool{used.Name: true, unused.Name: true}))
	})
	must(t, platformOf().Prune(t.Context(), seen, nil, map[string]bool{used.Name: true}))
	eventually(t, "the source is gone", func(ctx context.Context) error { return isGone(ctx, platform, source) })
}

// TestPruneOfAnOlderView: what was made anew since must not go.
func TestPruneOfAnOlderView(t *testing.T) {
	_, names := newTenant(t, "prune-stale")
	secret := generated(names, "sp-velero-copy", corev1.SecretTypeOpaque, nil)
	must(t, platform.Create(t.Context(), secret.DeepCopy()))
	seen := observed(t, names, func(seen cluster.Observation) error {
		if seen.Secrets[secret.Name] == nil {
			return errors.New("the cache lacks the Secret")
		}
		return nil
	})
	must(t, platform.Delete(t.Context(), stored(t, secret)))
	must(t, platform.Create(t.Context(), secret.DeepCopy()))
	if err := platformOf().Prune(t.Context(), seen, nil, nil); !apierrors.IsConflict(err) {
		t.Errorf("error %v, want a conflict", err)
	}
	stored(t, secret)
}

func TestVersionsAndContents(t *testing.T) {
	_, names := newTenant(t, "contents")
	own := metav1.ObjectMeta{Namespace: landscape.SystemNamespace, Name: "contents"}
	secret := &corev1.Secret{ObjectMeta: own, Type: corev1.SecretTypeDockerConfigJson, Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte(`{"auths":{}}`)}}
	configMap := &corev1.ConfigMap{ObjectMeta: own, Data: map[string]string{"ca.crt": "PEM"}, BinaryData: map[string][]byte{"binary": {0xff}}}
	ending := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: landscape.SystemNamespace, Name: "ending", Finalizers: []string{"example.com/hold"}}}
	tenants := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: names.TenantNamespace, Name: "kubeconfig"}, Data: map[string][]byte{"kubeconfig": []byte("k")}}
	for _, object := range []client.Object{secret, configMap, ending, tenants} {
		must(t, platform.Create(t.Context(), object))
	}
	must(t, platform.Delete(t.Context(), ending))
	t.Cleanup(func() {
		_ = platform.Patch(context.WithoutCancel(t.Context()), ending, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
	})
	references := []plan.Reference{{Kind: plan.Secret, Name: "contents"}, {Kind: plan.ConfigMap, Name: "contents"}, {Kind: plan.Secret, Name: "absent"}, {Kind: plan.Secret, Name: "ending"}}
	eventually(t, "the caches know the versions", func(ctx context.Context) error {
		want := map[plan.Reference]plan.Version{
			references[0]: {UID: secret.UID, ResourceVersion: secret.ResourceVersion}, references[1]: {UID: configMap.UID, ResourceVersion: configMap.ResourceVersion},
		}
		got, err := platformOf().Versions(ctx, references)
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("versions (-want +got):\n%s", diff)
		}
		return err
	})
	callsNothing(t, "the look at versions", func() {
		_, err := platformOf().Versions(t.Context(), references)
		must(t, err)
	})
	sources := []plan.Source{{Reference: references[0]}, {Reference: references[1], Key: "ca.crt"}, {Reference: plan.Reference{Kind: plan.Secret, Name: "kubeconfig"}, Tenant: true}}
	got, err := platformOf().Contents(t.Context(), names, sources)
	must(t, err)
	want := map[plan.Source]plan.Content{
		sources[0]: {Type: secret.Type, Data: secret.Data}, sources[1]: {Data: map[string][]byte{"ca.crt": []byte("PEM"), "binary": {0xff}}}, sources[2]: {Type: corev1.SecretTypeOpaque, Data: tenants.Data},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("contents (-want +got):\n%s", diff)
	}
	if _, err := platformOf().Contents(t.Context(), names, []plan.Source{{Reference: plan.Reference{Kind: plan.Secret, Name: "absent"}}}); !apierrors.IsNotFound(err) {
		t.Errorf("error %v, want that it is not found", err)
	}
}
