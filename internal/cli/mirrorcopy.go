package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spf13/pflag"

	"github.com/openmcp-project/service-provider-velero/internal/mirror"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

const aboutCopy = `service-provider-velero mirror copy -c PROVIDERCONFIG --to MIRROR [flags]

Copies every chart and every version of every image that a ProviderConfig needs to another registry: images with all their platforms, and
with their signatures (tags of cosign, and referrers). Each digest is verified. What the mirror has already is left out, so a copy that was
stopped goes on when it is started again. It ends with 1 when something could not be copied, and names it; the rest is copied even so.

With --platform, other platforms are left out of the images; the index has another digest then, and no signature of its own.

Credentials: --pull-secret, then those of this user's Docker config.`

type copyOptions struct {
	mirrorOptions
	platforms []string
	parallel  int
	dryRun    bool
}

func mirrorCopy(ctx context.Context, args []string, streams Streams) error {
	var options copyOptions
	flags := pflag.NewFlagSet("mirror copy", pflag.ContinueOnError)
	options.register(flags)
	options.registerFrom(flags)
	options.registerAccess(flags)
	flags.StringSliceVar(&options.platforms, "platform", nil, "only these platforms of images, for example linux/amd64; default: all")
	flags.IntVar(&options.parallel, "parallel", 4, "how many charts and images are copied at the same time")
	flags.BoolVar(&options.dryRun, "dry-run", false, "only say what would be copied")
	if err := parse(flags, aboutCopy, args, streams); err != nil {
		return err
	}
	copying, err := options.copy(ctx, streams)
	if err != nil {
		return err
	}
	results, err := watched(ctx, copying, streams.Err)
	if failed := printResults(streams.Out, results, options.dryRun); failed != nil {
		return failed
	}
	return err
}

func (o *copyOptions) copy(ctx context.Context, streams Streams) (mirror.Copy, error) {
	config, err := o.config(ctx, streams)
	if err != nil {
		return mirror.Copy{}, err
	}
	to, err := o.target()
	if err != nil {
		return mirror.Copy{}, err
	}
	from, _, err := o.layouts()
	if err != nil {
		return mirror.Copy{}, err
	}
	copying := mirror.Copy{
		Artifacts: plan.Artifacts(&config.Spec), FromLayout: from, ToLayout: *to, Parallel: o.parallel, DryRun: o.dryRun,
	}
	for _, text := range o.platforms {
		platform, err := v1.ParsePlatform(text)
		if err != nil || platform.OS == "" || platform.Architecture == "" {
			return mirror.Copy{}, fmt.Errorf("mirror copy: --platform %s is not OS/ARCHITECTURE[/VARIANT]", text)
		}
		copying.Platforms = append(copying.Platforms, *platform)
	}
	if copying.From, err = o.access(ctx, "from"); err != nil {
		return mirror.Copy{}, err
	}
	copying.To, err = o.access(ctx, "to")
	return copying, err
}

func printResults(out io.Writer, results []mirror.Result, dryRun bool) error {
	if len(results) == 0 {
		return nil
	}
	rows := [][]string{{"STATE", "TARGET", "DIGEST", "SIGNATURES", "OF THEM NEW"}}
	for _, result := range results {
		state := "copied"
		switch {
		case result.Present:
			state = "present"
		case dryRun:
			state = "missing"
		}
		rows = append(rows, []string{state, result.Target, result.Digest, strconv.Itoa(result.Attached), strconv.Itoa(result.Added)})
	}
	return printTable(out, rows)
}
