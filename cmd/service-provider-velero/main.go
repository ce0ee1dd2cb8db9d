// Command service-provider-velero gives every managed control plane a Velero.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/openmcp-project/controller-utils/pkg/logging"

	"github.com/openmcp-project/service-provider-velero/internal/app"
	"github.com/openmcp-project/service-provider-velero/internal/cli"
)

const usage = `usage: service-provider-velero COMMAND [flags]

commands:
  init    install the CRDs and register the API; run by openmcp-operator before run
  run     run the operator
  render  print what the operator would write for a Velero, without a cluster
  mirror  list, copy and use the charts and images that a ProviderConfig needs`

// tools are the commands that people run; all of their arguments are their own.
var tools = map[string]func(context.Context, []string, cli.Streams) error{"render": cli.Render, "mirror": cli.Mirror}

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("no command given\n\n%s", usage)
	}
	if tool := tools[args[0]]; tool != nil {
		return tool(ctrl.SetupSignalHandler(), args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	}
	var options app.Options
	flags := pflag.NewFlagSet(args[0], pflag.ContinueOnError)
	options.Register(flags)
	start := map[string]func(context.Context, app.Options, logging.Logger) error{"init": app.Init, "run": app.Run}[args[0]]
	switch args[0] {
	case "init":
	case "run":
		options.RegisterRun(flags)
	default:
		return fmt.Errorf("unknown command %q\n\n%s", args[0], usage)
	}
	if err := flags.Parse(args[1:]); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil
		}
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s takes no argument %q\n\n%s", args[0], flags.Arg(0), usage)
	}
	log, err := logging.GetLogger()
	if err != nil {
		return fmt.Errorf("set up logging: %w", err)
	}
	ctrl.SetLogger(log.Logr())
	return start(ctrl.SetupSignalHandler(), options, log.WithName(args[0]))
}
