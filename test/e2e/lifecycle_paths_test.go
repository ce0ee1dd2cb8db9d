package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

const (
	// rounds of as many paths as there are walkers.
	rounds = 4
	// maxSteps of a round.
	maxSteps = 8
	// pathChart is a chart version that no other test publishes.
	pathChart = "0.1.7"
)

// paths walks a few random paths as test/property does, but with real Flux, and compares what is on all clusters in the end. What happens to the
// ProviderConfig happens to all walkers.
func paths(t *testing.T) {
	publish(t, pathChart, "")
	must(t, platform.Create(t.Context(), dockerSecret(pathSecret, "0")))
	must(t, platform.Create(t.Context(), caSource(authorityOf(t, world.Platform))))
	walkers := []tenant{newTenant(t, "path-a", "walker"), newTenant(t, "path-b", "walker"), newTenant(t, "path-c", "walker")}
	for _, walker := range walkers {
		walker.orderControlPlane(t)
		walker.orderVelero(t, oldVersion, aws)
	}
	release := holdWorkloadCluster(t)
	defer release()
	for round := range rounds {
		t.Run("paths, round "+strconv.Itoa(round)+": random changes of three Veleros, the ProviderConfig and its Secrets | the same as new Veleros with the last of them", func(t *testing.T) {
			walk(t, walkers, rand.New(rand.NewPCG(uint64(round), 0)))
		})
	}
	changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) { *spec = offered().Spec })
	must(t, platform.Delete(t.Context(), dockerSecret(pathSecret, "")))
	must(t, platform.Delete(t.Context(), caSource("")))
	for _, walker := range walkers {
		walker.leave(t)
	}
}

// walk starts from where the round before ended.
func walk(t *testing.T, walkers []tenant, random *rand.Rand) {
	steps := pathSteps(t)
	for range 1 + random.IntN(maxSteps) {
		step, walker := steps[random.IntN(len(steps))], walkers[random.IntN(len(walkers))]
		pause := []time.Duration{0, 300 * time.Millisecond, time.Second, 3 * time.Second}[random.IntN(4)]
		t.Logf("%s (for %s, if it is one's own), then %s pause", step.name, walker, pause)
		step.do(t, walker)
		time.Sleep(pause)
	}
	walked := awaitSettled(t, walkers)
	var last []*v1alpha1.Velero
	for _, walker := range walkers {
		velero, err := walker.velero(t.Context())
		must(t, err)
		last = append(last, velero)
		walker.startDeletion(t)
	}
	for i, walker := range walkers {
		walker.awaitDeleted(t)
		walker.orderVelero(t, last[i].Spec.Version, last[i].Spec.Plugins...)
	}
	if diff := cmp.Diff(awaitSettled(t, walkers), walked); diff != "" {
		t.Errorf("the end is another one than that of new Veleros (-new +walked):\n%s", diff)
	}
}

// awaitSettled waits until the Veleros are Ready and nothing changes any more.
func awaitSettled(t *testing.T, walkers []tenant) map[string]string {
	t.Helper()
	const still = 3 * time.Second
	var last map[string]string
	since := time.Now()
	eventually(t, installed, "all come to rest", func(ctx context.Context) error {
		now := map[string]string{}
		ready := true
		for _, walker := range walkers {
			velero, err := walker.velero(ctx)
			if err != nil {
				return err
			}
			ready = ready && velero.Status.Phase == string(v1alpha1.Ready) && velero.Status.ObservedGeneration == velero.Generation
			if err := walker.everything(ctx, t, now); err != nil {
				return err
			}
		}
		if diff := cmp.Diff(last, now); diff != "" || !ready {
			last, since = now, time.Now()
			return fmt.Errorf("ready: %t, and this just changed:\n%s", ready, diff)
		}
		if time.Since(since) < still {
			return errors.New("it has not been at rest for long")
		}
		return nil
	})
	return last
}

// pathStep is one change, by somebody with kubectl.
type pathStep struct {
	name string
	do   func(*testing.T, tenant)
}

const pathSecret = "pathcred"

func pathSteps(t *testing.T) []pathStep {
	t.Helper()
	ca, other := authorityOf(t, world.Platform), authorityOf(t, world.Workload)
	digests := digestsOf(t, pathChart)
	velero := func(name string, edit func(*v1alpha1.VeleroSpec)) pathStep {
		return pathStep{name, func(t *testing.T, walker tenant) { walker.change(t, edit) }}
	}
	config := func(name string, edit func(*v1alpha1.ProviderConfigSpec)) pathStep {
		return pathStep{name, func(t *testing.T, _ tenant) { changeOffer(t, edit) }}
	}
	steps := []pathStep{
		velero("the new version", func(spec *v1alpha1.VeleroSpec) { spec.Version = newVersion }),
		velero("the old version", func(spec *v1alpha1.VeleroSpec) { spec.Version = oldVersion }),
		velero("other plugins", func(spec *v1alpha1.VeleroSpec) { spec.Plugins = []v1alpha1.Plugin{gcp, aws} }),
		velero("no plugins", func(spec *v1alpha1.VeleroSpec) { spec.Plugins = nil }),
		config("another poll interval", func(spec *v1alpha1.ProviderConfigSpec) { spec.PollInterval = &metav1.Duration{Duration: time.Minute} }),
		config("no poll interval", func(spec *v1alpha1.ProviderConfigSpec) { spec.PollInterval = nil }),
		config("a CA bundle", func(spec *v1alpha1.ProviderConfigSpec) {
			spec.CABundleRef = &v1alpha1.ConfigMapKeyReference{Name: caConfigMap, Key: caKey}
		}),
		config("no CA bundle", func(spec *v1alpha1.ProviderConfigSpec) { spec.CABundleRef = nil }),
		config("another pull secret", func(spec *v1alpha1.ProviderConfigSpec) {
			spec.ImagePullSecrets = []v1alpha1.SecretReference{{Name: pathSecret}}
		}),
		config("no pull secret", func(spec *v1alpha1.ProviderConfigSpec) { spec.ImagePullSecrets = nil }),
		config("a chart pull secret", func(spec *v1alpha1.ProviderConfigSpec) {
			spec.Charts.PullSecret = &v1alpha1.SecretReference{Name: pathSecret}
		}),
		config("another chart version", func(spec *v1alpha1.ProviderConfigSpec) { spec.Charts.Version, spec.Charts.Digests = pathChart, nil }),
		config("chart digests", func(spec *v1alpha1.ProviderConfigSpec) { spec.Charts.Version, spec.Charts.Digests = pathChart, digests }),
		config("the charts of the start", func(spec *v1alpha1.ProviderConfigSpec) { spec.Charts = offered().Spec.Charts }),
		config("a shard", func(spec *v1alpha1.ProviderConfigSpec) { spec.FluxShard = "shard1" }),
		config("no shard", func(spec *v1alpha1.ProviderConfigSpec) { spec.FluxShard = "" }),
		config("values", func(spec *v1alpha1.ProviderConfigSpec) {
			spec.Values = &v1alpha1.ChartValues{Server: &apiextensionsv1.JSON{Raw: []byte(`{"podLabels":{"team":"a"},"proxy":{"http":"http://proxy.example:3128"}}`)}}
		}),
		config("no values", func(spec *v1alpha1.ProviderConfigSpec) { spec.Values = nil }),
		config("the ProviderConfig of the start", func(spec *v1alpha1.ProviderConfigSpec) { *spec = offered().Spec }),
		{"the CA bundle is rotated", func(t *testing.T, _ tenant) { must(t, platform.Update(t.Context(), caSource(ca+other))) }},
		{"the CA bundle is rotated back", func(t *testing.T, _ tenant) { must(t, platform.Update(t.Context(), caSource(ca))) }},
		{"the operator is restarted", func(t *testing.T, _ tenant) { restart(t) }},
	}
	return append(steps, pathStep{"the pull secret is rotated", func(t *testing.T, _ tenant) {
		must(t, platform.Update(t.Context(), dockerSecret(pathSecret, "1")))
	}}, pathStep{"the pull secret is deleted and made again", func(t *testing.T, _ tenant) {
		must(t, platform.Delete(t.Context(), dockerSecret(pathSecret, "")))
		time.Sleep(time.Second)
		must(t, platform.Create(t.Context(), dockerSecret(pathSecret, "2")))
	}}, pathStep{"the ProviderConfig is deleted and made again", func(t *testing.T, _ tenant) {
		config := &v1alpha1.ProviderConfig{}
		must(t, platform.Get(t.Context(), client.ObjectKeyFromObject(offered()), config))
		must(t, platform.Delete(t.Context(), offered()))
		time.Sleep(time.Second)
		must(t, platform.Create(t.Context(), &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: config.Name}, Spec: config.Spec}))
	}})
}

func dockerSecret(name, password string) *corev1.Secret {
	config := `{"auths":{"https://` + world.Registry + `/v2/":{"username":"user","password":"` + strings.Repeat(password, 3) + `"}}}`
	return sourceSecret(name, corev1.SecretTypeDockerConfigJson, map[string]string{corev1.DockerConfigJsonKey: config})
}
