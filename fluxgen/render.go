package fluxgen

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ShardLabel has the Flux shard of this name reconcile an object, and no other.
const ShardLabel = "sharding.fluxcd.io/key"

// maxNameLength of a HelmRelease; Helm allows release names of 53 characters.
const maxNameLength = 50

// Render generates the objects of a release. Every field that the API server would default is set, so that comparing a generated spec with
// the stored one shows real differences only. The error says everything that is wrong with the release.
func Render(release Release) (*sourcev1.OCIRepository, *helmv2.HelmRelease, error) {
	if err := release.validate(); err != nil {
		return nil, nil, err
	}
	helmRelease, err := helmReleaseOf(release)
	if err != nil {
		return nil, nil, err
	}
	return ociRepositoryOf(release), helmRelease, nil
}

func (r Release) objectMeta(name string) metav1.ObjectMeta {
	labels := maps.Clone(r.Labels)
	if r.Shard != "" {
		if labels == nil {
			labels = map[string]string{}
		}
		labels[ShardLabel] = r.Shard
	}
	return metav1.ObjectMeta{Name: name, Namespace: r.Namespace, Labels: labels}
}

func (r Release) validate() error {
	problems := []error{r.Target.validate(), r.Chart.validate(), r.validateLabels()}
	if len(r.Name) > maxNameLength || len(validation.IsDNS1123Label(r.Name)) > 0 {
		problems = append(problems, fmt.Errorf("release: name %q is not a DNS label of at most %d characters", r.Name, maxNameLength))
	}
	if len(validation.IsDNS1123Label(r.Namespace)) > 0 {
		problems = append(problems, fmt.Errorf("release: %q is not the name of a namespace", r.Namespace))
	}
	for _, name := range r.ValuesSecrets {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			problems = append(problems, fmt.Errorf("release: %q is not the name of a Secret with values", name))
		}
	}
	if r.Interval < time.Second || r.Timeout < time.Second {
		problems = append(problems, fmt.Errorf("release: interval %s and timeout %s must be at least a second", r.Interval, r.Timeout))
	}
	return errors.Join(problems...)
}

func (r Release) validateLabels() error {
	labels := r.objectMeta("").Labels
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(labels[key])) > 0 {
			return fmt.Errorf("release: %s: %q is not a label", key, labels[key])
		}
	}
	return nil
}
