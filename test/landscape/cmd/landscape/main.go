// Command landscape brings up the whole system on this machine, shows it, and takes it down again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/openmcp-project/service-provider-velero/test/landscape"
)

const usage = `usage: landscape COMMAND [flags]

commands:
  up      bring the landscape up; one that runs already is left alone
  demo    up, and then an end user's Velero until it is Ready
  status  show what runs, and where kubeconfigs and logs are
  down    end everything and remove its state
  programs [NAME...]
          build the programs (all without a name) where they are not cached yet, and print their paths

landscape COMMAND -h shows the flags of a command.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	if err != nil && ctx.Err() != nil {
		err = errors.New("interrupted") // what it broke off is of no interest
	}
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "landscape:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return fmt.Errorf("no command given")
	}
	name, args := args[0], args[1:]
	switch name {
	case "up":
		return up(ctx, args)
	case "demo":
		return showDemo(ctx, args)
	case "status":
		return status(args)
	case "down":
		return down(ctx, args)
	case "programs":
		return listPrograms(ctx, args)
	case "cluster-provider": // run by the landscape itself
		return clusterProvider(ctx, args)
	case "node": // the same, as the first process of a node
		return runNode(ctx, args)
	case "help", "-h", "--help":
		fmt.Print(usage)
		return nil
	}
	fmt.Fprint(os.Stderr, usage)
	return fmt.Errorf("unknown command %q", name)
}

// parse reads the flags every command has, and those that more adds.
func parse(name string, args []string, more func(*flag.FlagSet, *landscape.Options)) (landscape.Options, error) {
	options := landscape.Options{Progress: func(line string) { fmt.Println(line) }}
	flags := flag.NewFlagSet("landscape "+name, flag.ContinueOnError)
	flags.StringVar(&options.Name, "name", "default", "tells landscapes on one machine apart")
	flags.StringVar(&options.State, "state", "", "directory for states (default: $"+landscape.StateVariable+", or the user's cache directory)")
	flags.StringVar(&options.Programs, "programs", "", "directory with ready-made programs (default: build them once)")
	if more != nil {
		more(flags, &options)
	}
	if err := flags.Parse(args); err != nil {
		return options, err
	}
	if flags.NArg() > 0 {
		return options, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return options, nil
}
