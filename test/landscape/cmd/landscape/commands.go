package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/openmcp-project/service-provider-velero/test/landscape"
	"github.com/openmcp-project/service-provider-velero/test/landscape/clusterprovider"
	"github.com/openmcp-project/service-provider-velero/test/landscape/demo"
	"github.com/openmcp-project/service-provider-velero/test/landscape/node"
	"github.com/openmcp-project/service-provider-velero/test/landscape/programs"
	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

// upFlags are the flags that decide what landscape comes up.
func upFlags(flags *flag.FlagSet, options *landscape.Options) {
	flags.BoolVar(&options.RealNodes, "real-nodes", false, "run real nodes and an object store, which needs root on Linux")
	flags.BoolVar(&options.Race, "race", false, "build the operator with the race detector")
	flags.DurationVar(&options.TokenLifetime, "token-lifetime", clusterprovider.DefaultTokenLifetime,
		"how long granted tokens last, 10m at least")
}

func up(ctx context.Context, args []string) error {
	withoutOperator := false
	options, err := parse("up", args, func(flags *flag.FlagSet, options *landscape.Options) {
		upFlags(flags, options)
		flags.BoolVar(&withoutOperator, "without-operator", false, "leave the operator out")
	})
	if err != nil {
		return err
	}
	running, err := landscape.Open(options)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if running != nil && (withoutOperator || running.OperatorRunning()) {
		fmt.Println("the landscape is up already")
		return running.Describe(os.Stdout)
	}
	l, err := landscape.Up(ctx, options)
	if err != nil {
		return err
	}
	if !withoutOperator {
		if _, err := l.StartOperator(ctx, landscape.OperatorOptions{}); err != nil {
			return err
		}
	}
	return l.Describe(os.Stdout)
}

func status(args []string) error {
	options, err := parse("status", args, nil)
	if err != nil {
		return err
	}
	l, err := landscape.Open(options)
	if errors.Is(err, os.ErrNotExist) {
		fmt.Println("no landscape is up")
		return nil
	}
	if err != nil {
		return err
	}
	return l.Describe(os.Stdout)
}

func down(ctx context.Context, args []string) error {
	options, err := parse("down", args, nil)
	if err != nil {
		return err
	}
	if err := landscape.Down(ctx, options); err != nil {
		return err
	}
	fmt.Println("the landscape is down")
	return nil
}

func clusterProvider(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("landscape cluster-provider", flag.ContinueOnError)
	dir := flags.String("site", "", "the directory of the landscape")
	kubeconfig := flags.String("kubeconfig", "", "access to the platform cluster")
	health := flags.String("health", "", "the address of the readiness probe")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctrl.SetLogger(zap.New())
	s, err := site.Open(*dir)
	if err != nil {
		return err
	}
	platform, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("read the access to the platform cluster: %w", err)
	}
	return clusterprovider.Run(ctx, platform, s, *health)
}

func runNode(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("node: which file describes it?")
	}
	return node.Run(ctx, args[0])
}

func showDemo(ctx context.Context, args []string) error {
	options, err := parse("demo", args, upFlags)
	if err != nil {
		return err
	}
	l, err := landscape.Up(ctx, options)
	if err != nil {
		return err
	}
	return demo.Run(ctx, l, os.Stdout)
}

// listPrograms prints where the named programs are, all without a name, and builds them before when it must.
func listPrograms(ctx context.Context, names []string) error {
	if len(names) == 0 {
		names = programs.Names()
	}
	shelf, err := programs.Default()
	if err != nil {
		return err
	}
	shelf.Progress = func(line string) { fmt.Fprintln(os.Stderr, line) }
	paths, err := shelf.All(ctx, names...)
	if err != nil {
		return err
	}
	for _, name := range names {
		fmt.Println(paths[name])
	}
	return nil
}
