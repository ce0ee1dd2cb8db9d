package landscape

import (
	"context"
	"fmt"
	"os"

	"github.com/openmcp-project/service-provider-velero/test/landscape/process"
	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

const (
	// ProviderName is the name of the ServiceProvider object the operator belongs to.
	ProviderName = "velero"
	// OperatorUser is who the operator is on the platform cluster, as its API server's audit log has it.
	OperatorUser = "service-provider-velero"
)

// OperatorOptions say how to run the operator under test; the zero value is one replica without leader election.
type OperatorOptions struct {
	// Replica tells several running operators apart.
	Replica string
	// LeaderElect makes the replica wait for its turn.
	LeaderElect bool
	// SkipInit leaves the init command out, for a restart.
	SkipInit bool
	// Args and Env are added to those of the run command.
	Args, Env []string
}

// Operator is a running operator.
type Operator struct {
	// Log is the file with what it prints.
	Log string
	// Metrics and Health are the URLs of its endpoints.
	Metrics, Health string

	name      string
	landscape *Landscape
}

// StartOperator builds the operator from the checkout, runs its init command to the end, as the init Job does, and then its
// run command until it is ready.
func (l *Landscape) StartOperator(ctx context.Context, options OperatorOptions) (*Operator, error) {
	program := l.site.Path("bin", OperatorUser)
	if err := l.buildOperator(ctx, program); err != nil {
		return nil, err
	}
	platform, err := l.Platform.Client()
	if err != nil {
		return nil, err
	}
	if err := bindOperator(ctx, platform, l.options.OperatorRules); err != nil {
		return nil, err
	}
	kubeconfig, err := l.operatorKubeconfig()
	if err != nil {
		return nil, err
	}
	flags := []string{
		"--environment=" + Environment, "--provider-name=" + ProviderName, "--verbosity=INFO", "--kubeconfig=" + kubeconfig,
	}
	if !options.SkipInit {
		if err := l.once(ctx, OperatorUser+"-init", program, append([]string{"init"}, flags...)); err != nil {
			return nil, err
		}
	}
	return l.runOperator(ctx, program, flags, options)
}

func (l *Landscape) runOperator(ctx context.Context, program string, flags []string, options OperatorOptions) (*Operator, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	operator := l.operator(options.Replica)
	operator.Metrics, operator.Health = "http://"+loopback(ports[0])+"/metrics", "http://"+loopback(ports[1])+"/readyz"
	args := append([]string{"run"}, flags...)
	args = append(args,
		"--metrics-bind-address="+loopback(ports[0]), "--metrics-secure=false", "--health-probe-bind-address="+loopback(ports[1]))
	if options.LeaderElect {
		args = append(args, "--leader-elect=true")
	}
	err = l.run(ctx, process.Spec{
		Name: operator.name, Program: program, Args: append(args, options.Args...), Stage: site.StageOperator,
		Env: append(podEnv(operator.name), options.Env...),
	}, operator.Health)
	return operator, err
}

// buildOperator builds with the race detector only when asked: that needs a C compiler.
func (l *Landscape) buildOperator(ctx context.Context, target string) error {
	var flags []string
	if l.options.Race {
		flags = append(flags, "-race")
	}
	if err := l.goBuild(ctx, flags, target, "./cmd/service-provider-velero"); err != nil {
		return err
	}
	l.Report("the operator is built")
	return nil
}

// operatorKubeconfig keeps the operator's certificate over restarts.
func (l *Landscape) operatorKubeconfig() (string, error) {
	path := l.site.Path("servers", Platform, OperatorUser+".kubeconfig")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return l.Platform.UserKubeconfig(OperatorUser)
}

// operator names a replica.
func (l *Landscape) operator(replica string) *Operator {
	name := OperatorUser
	if replica != "" {
		name += "-" + replica
	}
	return &Operator{name: name, Log: l.site.Log(name), landscape: l}
}

// StopOperators ends every replica that runs, by whomever it was started.
func (l *Landscape) StopOperators(ctx context.Context) error {
	records, err := l.site.Processes().Records()
	if err != nil {
		return err
	}
	for _, record := range records {
		if record.Stage != site.StageOperator {
			continue
		}
		if err := l.site.Processes().Stop(ctx, record.Name); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends the operator as a rolling update does.
func (o *Operator) Stop(ctx context.Context) error {
	return o.landscape.site.Processes().Stop(ctx, o.name)
}

// Kill ends the operator with SIGKILL, as a crash does.
func (o *Operator) Kill(ctx context.Context) error {
	return o.landscape.site.Processes().Kill(ctx, o.name)
}

// Running is nil while the operator runs; after that it holds the end of its log.
func (o *Operator) Running() error {
	record, found, err := o.landscape.site.Processes().Lookup(o.name)
	if err != nil {
		return err
	}
	if !found || !record.Alive() {
		return fmt.Errorf("the operator has ended; %s", process.LogTail(o.Log))
	}
	return nil
}
