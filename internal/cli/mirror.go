package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/spf13/pflag"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/mirror"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

const aboutMirror = `service-provider-velero mirror list|copy|config -c PROVIDERCONFIG [flags]

  list    print every chart and image that a ProviderConfig needs
  copy    copy them to another registry
  config  print the ProviderConfig that takes them from there

Each has --help.`

// Mirror is the command that brings what a ProviderConfig needs to another registry.
func Mirror(ctx context.Context, args []string, streams Streams) error {
	commands := map[string]func(context.Context, []string, Streams) error{"list": mirrorList, "copy": mirrorCopy, "config": mirrorConfig}
	if len(args) > 0 && commands[args[0]] != nil {
		return helped(commands[args[0]](ctx, args[1:], streams))
	}
	if len(args) > 0 && slices.Contains([]string{"-h", "--help", "help"}, args[0]) {
		_, err := fmt.Fprintln(streams.Out, aboutMirror)
		return err
	}
	return fmt.Errorf("mirror needs one of list, copy and config\n\n%s", aboutMirror)
}

// mirrorOptions are what the three have in common.
type mirrorOptions struct {
	configs      []string
	providerName string
	from, to     string
	scoped       bool
	pullSecrets  []string
	authorities  []string
	plainHTTP    []string
}

func (o *mirrorOptions) register(flags *pflag.FlagSet) {
	flags.StringSliceVarP(&o.configs, "config", "c", nil, "file with the ProviderConfig; -: standard input")
	flags.StringVar(&o.to, "to", "", "the mirror: HOST[:PORT][/PATH]")
	flags.BoolVar(&o.scoped, "scoped", false, "put the host of the source into the path, so that registries with equal paths stay apart")
	flags.StringVar(&o.providerName, "provider-name", "", "name of the ServiceProvider, to choose among several ProviderConfigs")
}

func (o *mirrorOptions) registerFrom(flags *pflag.FlagSet) {
	flags.StringVar(&o.from, "from", "", "take everything from another mirror, which mirror copy filled; default: from where the ProviderConfig says")
}

func (o *mirrorOptions) registerAccess(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.pullSecrets, "pull-secret", nil, "files with credentials: Secrets of Kubernetes, or Docker configs; they win over the Docker config of this user")
	flags.StringSliceVar(&o.authorities, "ca-file", nil, "files with PEM certificates to trust beside the usual ones")
	flags.StringSliceVar(&o.plainHTTP, "plain-http", nil, "from, to or both: where HTTP without TLS is allowed")
}

func (o *mirrorOptions) config(ctx context.Context, streams Streams) (*v1alpha1.ProviderConfig, error) {
	if len(o.configs) == 0 {
		return nil, errors.New("mirror: -c is missing: the file with the ProviderConfig")
	}
	found, err := load(ctx, streams.In, o.configs...)
	if err != nil {
		return nil, err
	}
	return found.config(o.providerName)
}

// layout of one side; nil when it was not named.
func (o *mirrorOptions) layout(place string) (*mirror.Layout, error) {
	if place == "" {
		return nil, nil
	}
	layout, err := mirror.NewLayout(place, o.scoped)
	return &layout, err
}

func (o *mirrorOptions) layouts() (from, to *mirror.Layout, err error) {
	if from, err = o.layout(o.from); err != nil {
		return nil, nil, fmt.Errorf("mirror: --from: %w", err)
	}
	if to, err = o.layout(o.to); err != nil {
		return nil, nil, fmt.Errorf("mirror: --to: %w", err)
	}
	return from, to, nil
}

// target is where the mirror is; it must be named.
func (o *mirrorOptions) target() (*mirror.Layout, error) {
	_, to, err := o.layouts()
	if err == nil && to == nil {
		err = errors.New("mirror: --to is missing: the registry of the mirror, for example registry.internal/velero")
	}
	return to, err
}

// access is how the registries of one side, "from" or "to", are talked to.
func (o *mirrorOptions) access(ctx context.Context, side string) (mirror.Access, error) {
	for _, named := range o.plainHTTP {
		if named != "from" && named != "to" {
			return mirror.Access{}, fmt.Errorf("mirror: --plain-http=%s is neither from nor to", named)
		}
	}
	access := mirror.Access{PlainHTTP: slices.Contains(o.plainHTTP, side)}
	for _, path := range o.authorities {
		content, err := os.ReadFile(path) //nolint:gosec // the user names the file
		if err != nil {
			return access, err
		}
		access.Authorities = append(access.Authorities, content)
	}
	var keychains []authn.Keychain
	for _, path := range o.pullSecrets {
		found, err := keychainsOf(ctx, path)
		if err != nil {
			return access, fmt.Errorf("%s: %w", path, err)
		}
		keychains = append(keychains, found...)
	}
	access.Keychain = authn.NewMultiKeychain(append(keychains, authn.DefaultKeychain)...)
	return access, nil
}

// keychainsOf reads a file with a Docker config, or with Secrets.
func keychainsOf(ctx context.Context, path string) ([]authn.Keychain, error) {
	content, err := os.ReadFile(path) //nolint:gosec // the user names the file
	if err != nil {
		return nil, err
	}
	if config, err := mirror.NewKeychain(content); err == nil {
		return []authn.Keychain{config}, nil
	}
	found, err := load(ctx, strings.NewReader(string(content)), stdin)
	if err != nil {
		// The cause may quote the contents.
		return nil, errors.New("it holds neither a Docker config nor Secrets")
	}
	var keychains []authn.Keychain
	for i := range found.secrets {
		credentials, err := plan.PullCredentials(contentOf(&found.secrets[i]))
		if err != nil {
			return nil, fmt.Errorf("secret %q: %w", found.secrets[i].Name, err)
		}
		config, err := mirror.NewKeychain(credentials)
		if err != nil {
			return nil, fmt.Errorf("secret %q: %w", found.secrets[i].Name, err)
		}
		keychains = append(keychains, config)
	}
	if len(keychains) == 0 {
		return nil, errors.New("it holds no Secret")
	}
	return keychains, nil
}
