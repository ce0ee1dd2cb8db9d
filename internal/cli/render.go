package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/access"
	"github.com/openmcp-project/service-provider-velero/internal/app"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
	"github.com/openmcp-project/service-provider-velero/internal/render"
)

const aboutRender = `service-provider-velero render -f VELEROS -c PROVIDERCONFIG [--secrets FILE] [--diff --kubeconfig PLATFORM]

Prints what the operator would write on the platform cluster, without any cluster: AccessRequests, Secrets, OCIRepositories and
HelmReleases. Where a Velero would be blocked, it prints the operator's message to the standard error and ends with 1.

The names of OCIRepositories and the annotations of Secrets depend on the UIDs and resource versions of the Secrets that the ProviderConfig
refers to: with --secrets as kubectl get -o yaml prints them, they are those of the cluster. Kubeconfigs have the names that openMCP's
ClusterProviders give them; what is in them is not known before access is granted, unless --secrets has it, too.

With --diff it reads a live platform cluster, writes nothing, and prints for each Velero what the ProviderConfig would change about its
objects. All Veleros: kubectl get velero -A -o yaml | service-provider-velero render --diff -f - -c edited.yaml`

type renderOptions struct {
	veleros, configs, secrets []string
	output                    string
	showSecrets               bool
	namespace, providerName   string
	diff                      bool
	kubeconfig                string
}

func (o *renderOptions) register(flags *pflag.FlagSet) {
	flags.StringSliceVarP(&o.veleros, "filename", "f", nil, "files with Veleros, alone or in Lists; -: standard input")
	flags.StringSliceVarP(&o.configs, "config", "c", nil, "file with the ProviderConfig; -: standard input")
	flags.StringSliceVar(&o.secrets, "secrets", nil, "files with the Secrets and ConfigMaps that the ProviderConfig refers to; -: standard input")
	flags.StringVarP(&o.output, "output", "o", "yaml", "yaml or json")
	flags.BoolVar(&o.showSecrets, "show-secrets", false, "print what the Secrets hold")
	flags.BoolVar(&o.diff, "diff", false, "print what would change on a live platform cluster")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "with --diff: kubeconfig of the platform cluster; default: as kubectl finds it")
	flags.StringVar(&o.namespace, "namespace", "openmcp-system", "the operator's namespace, which Secrets without a namespace are in")
	flags.StringVar(&o.providerName, "provider-name", "", "name of the ServiceProvider, to choose among several ProviderConfigs")
}

func (o *renderOptions) validate() error {
	switch {
	case len(o.veleros) == 0:
		return errors.New("render: -f is missing: the file with the Veleros")
	case len(o.configs) == 0:
		return errors.New("render: -c is missing: the file with the ProviderConfig")
	case !slices.Contains([]string{"yaml", "json"}, o.output):
		return fmt.Errorf("render: -o %s is neither yaml nor json", o.output)
	case o.diff && o.output != "yaml":
		return errors.New("render: --diff prints unified diffs of yaml only")
	case !o.diff && o.kubeconfig != "":
		return errors.New("render: --kubeconfig is for --diff; nothing else needs a cluster")
	}
	return nil
}

// Render is the command that prints what the operator would write.
func Render(ctx context.Context, args []string, streams Streams) error {
	var options renderOptions
	flags := pflag.NewFlagSet("render", pflag.ContinueOnError)
	options.register(flags)
	if err := parse(flags, aboutRender, args, streams); err != nil {
		return helped(err)
	}
	if err := options.validate(); err != nil {
		return err
	}
	found, err := load(ctx, streams.In, slices.Concat(options.configs, options.veleros, options.secrets)...)
	if err != nil {
		return err
	}
	config, err := found.config(options.providerName)
	if err != nil {
		return err
	}
	if len(found.veleros) == 0 {
		return errors.New("there is no Velero in what was given")
	}
	all, err := found.hold(options.namespace)
	if err != nil {
		return err
	}
	if options.diff {
		return printDiff(ctx, found.veleros, &config.Spec, all, options, streams.Out)
	}
	return printRendered(found.veleros, &config.Spec, all, options, streams.Out)
}

// printRendered prints all that can be, and then says what is blocked.
func printRendered(veleros []v1alpha1.Velero, config *v1alpha1.ProviderConfigSpec, all *held, options renderOptions, out io.Writer) error {
	printed := newPrinter(out, options.output)
	var problems []error
	for i := range veleros {
		objects, blocked, err := offline(&veleros[i], config, all)
		if err != nil {
			return err
		}
		if blocked != nil {
			problems = append(problems, blockedError(&veleros[i], blocked))
		}
		for _, object := range objects {
			manifest, err := render.Manifest(object, options.showSecrets)
			if err != nil {
				return err
			}
			if err := printed.add(manifest); err != nil {
				return err
			}
		}
	}
	return errors.Join(printed.close(), errors.Join(problems...))
}

func offline(velero *v1alpha1.Velero, config *v1alpha1.ProviderConfigSpec, all *held) ([]client.Object, *plan.Blocked, error) {
	key := client.ObjectKeyFromObject(velero)
	names, err := plan.NamesOf(key)
	if err != nil {
		return nil, nil, err
	}
	grants, err := access.Foreseen(key)
	if err != nil {
		return nil, nil, err
	}
	objects, blocked, err := render.Objects(render.Input{
		Velero: key, Spec: velero.Spec, Config: config,
		Sources: all.references(plan.References(config)), Contents: all.of(names), Grants: all.granted(grants, names),
	})
	if blocked != nil || err != nil {
		return nil, blocked, err
	}
	requests, err := access.Requests(key, app.TenantPermissions())
	return append(requests, objects...), nil, err
}

// blockedError says it as the status of the Velero would.
func blockedError(velero *v1alpha1.Velero, blocked *plan.Blocked) error {
	hint := ""
	if blocked.Reason == v1alpha1.ReasonSecretNotFound || blocked.Reason == v1alpha1.ReasonConfigMapNotFound {
		hint = " (give it with --secrets)"
	}
	return fmt.Errorf("velero %s/%s: %s: %s%s", velero.Namespace, velero.Name, blocked.Reason, blocked.Message, hint)
}
