package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/access"
	"github.com/openmcp-project/service-provider-velero/internal/app"
	"github.com/openmcp-project/service-provider-velero/internal/cluster"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/internal/render"
)

// live is a platform cluster that is only read.
type live struct {
	client   client.Client
	platform *cluster.Platform
	// given are manifests that count as if they were applied already.
	given *held
}

// printDiff prints, Velero by Velero, what would change.
func printDiff(ctx context.Context, veleros []v1alpha1.Velero, config *v1alpha1.ProviderConfigSpec, given *held, options renderOptions, out io.Writer) error {
	connected, err := app.PlatformClient(options.kubeconfig)
	if err != nil {
		return err
	}
	there := live{client: connected, platform: cluster.New(connected, connected, options.namespace), given: given}
	var problems []error
	for i := range veleros {
		changes, blocked, err := there.changes(ctx, &veleros[i], config)
		if err != nil {
			return fmt.Errorf("velero %s/%s: %w", veleros[i].Namespace, veleros[i].Name, err)
		}
		if blocked != nil {
			problems = append(problems, blockedError(&veleros[i], blocked))
			continue
		}
		if err := printChanges(out, client.ObjectKeyFromObject(&veleros[i]), changes, options.showSecrets); err != nil {
			return err
		}
	}
	return errors.Join(problems...)
}

func (l live) changes(ctx context.Context, velero *v1alpha1.Velero, config *v1alpha1.ProviderConfigSpec) ([]cluster.Change, *plan.Blocked, error) {
	key := client.ObjectKeyFromObject(velero)
	names, err := plan.NamesOf(key)
	if err != nil {
		return nil, nil, err
	}
	input, err := l.input(ctx, key, names, config)
	if err != nil {
		return nil, nil, err
	}
	input.Spec = velero.Spec
	objects, blocked, err := render.Objects(input)
	if blocked != nil || err != nil {
		return nil, blocked, err
	}
	changes, err := l.platform.Preview(ctx, names, objects)
	return changes, nil, err
}

// input is what the operator would see on the platform, with what was given in addition.
func (l live) input(ctx context.Context, velero types.NamespacedName, names plan.Names, config *v1alpha1.ProviderConfigSpec) (render.Input, error) {
	grants, err := access.Granted(ctx, l.client, velero)
	if err != nil {
		return render.Input{}, err
	}
	references := plan.References(config)
	versions, err := l.platform.Versions(ctx, references)
	if err != nil {
		return render.Input{}, err
	}
	given := l.given.references(references)
	var sources []plan.Source
	for reference := range versions {
		if _, replaced := given[reference]; !replaced {
			sources = append(sources, plan.Source{Reference: reference})
		}
	}
	if grants.Server.Version != (plan.Version{}) {
		sources = append(sources, plan.Source{Reference: plan.Reference{Kind: plan.Secret, Name: grants.Server.Secret}, Tenant: true})
	}
	contents, err := l.platform.Contents(ctx, names, sources)
	if err != nil {
		return render.Input{}, err
	}
	maps.Copy(versions, given)
	maps.Copy(contents, l.given.of(names))
	return render.Input{Velero: velero, Config: config, Sources: versions, Contents: contents, Grants: grants}, nil
}

func printChanges(out io.Writer, velero types.NamespacedName, changes []cluster.Change, showSecrets bool) error {
	var created, changed, removed int
	var diffs string
	for _, change := range changes {
		switch {
		case change.Before == nil:
			created++
		case change.After == nil:
			removed++
		default:
			changed++
		}
		diff, err := render.Diff(kindOf(change), change.Before, change.After, showSecrets)
		if err != nil {
			return err
		}
		diffs += diff
	}
	summary := "no change"
	if len(changes) > 0 {
		summary = fmt.Sprintf("%d created, %d changed, %d removed once unused", created, changed, removed)
	}
	_, err := fmt.Fprintf(out, "# velero %s: %s\n%s", velero, summary, diffs)
	return err
}

// kindOf is the kind of a typed object, which a client leaves out.
func kindOf(change cluster.Change) string {
	object := change.After
	if object == nil {
		object = change.Before
	}
	return reflect.TypeOf(object).Elem().Name()
}
