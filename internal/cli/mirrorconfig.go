package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/mirror"
	"github.com/openmcp-project/service-provider-velero/internal/render"
)

const aboutConfig = `service-provider-velero mirror config -c PROVIDERCONFIG --to MIRROR [flags]

Prints the ProviderConfig that takes everything from the mirror, as mirror copy left it, pinned to the digests that are there. Users go on
asking for plain versions. It fails when something is missing in the mirror. All other settings stay as they are.`

type configOptions struct {
	mirrorOptions
	pullSecret, caBundle string
}

func mirrorConfig(ctx context.Context, args []string, streams Streams) error {
	var options configOptions
	flags := pflag.NewFlagSet("mirror config", pflag.ContinueOnError)
	options.register(flags)
	options.registerAccess(flags)
	flags.StringVar(&options.pullSecret, "set-pull-secret", "", "name of the Secret with the credentials of the mirror, for charts and images")
	flags.StringVar(&options.caBundle, "set-ca-bundle", "", "NAME/KEY of the ConfigMap with the certificates of the mirror")
	if err := parse(flags, aboutConfig, args, streams); err != nil {
		return err
	}
	config, err := options.config(ctx, streams)
	if err != nil {
		return err
	}
	point, err := options.point(ctx)
	if err != nil {
		return err
	}
	pointed, err := point.Config(ctx, config.Spec)
	if err != nil {
		return err
	}
	manifest, err := render.Manifest(&v1alpha1.ProviderConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ProviderConfig"},
		ObjectMeta: metav1.ObjectMeta{Name: config.Name, Labels: config.Labels},
		Spec:       *pointed,
	}, false)
	if err != nil {
		return err
	}
	return newPrinter(streams.Out, "yaml").add(manifest)
}

func (o *configOptions) point(ctx context.Context) (mirror.Point, error) {
	to, err := o.target()
	if err != nil {
		return mirror.Point{}, err
	}
	point := mirror.Point{Layout: *to, PullSecret: o.pullSecret}
	if o.caBundle != "" {
		name, key, found := strings.Cut(o.caBundle, "/")
		if !found || name == "" || key == "" {
			return point, fmt.Errorf("mirror config: --set-ca-bundle %s is not NAME/KEY", o.caBundle)
		}
		point.CABundle = &v1alpha1.ConfigMapKeyReference{Name: name, Key: key}
	}
	point.Access, err = o.access(ctx, "to")
	return point, err
}
