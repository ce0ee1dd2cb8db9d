// Package landscape brings up the whole system on one machine, with the real programs and without root: API servers for
// the platform, the onboarding and the workload cluster and one per managed control plane, Flux, an OCI registry,
// openmcp-operator, and a ClusterProvider of its own. Tests and the demo use it; command landscape is its front.
package landscape

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/openmcp-project/service-provider-velero/test/landscape/apiserver"
	"github.com/openmcp-project/service-provider-velero/test/landscape/node"
	"github.com/openmcp-project/service-provider-velero/test/landscape/programs"
	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

// StateVariable is the environment variable that names the directory of the landscape's state.
const StateVariable = "VELERO_LANDSCAPE_STATE"

// The clusters every landscape has.
const (
	Platform   = "platform"
	Onboarding = "onboarding"
	Workload   = "workload"
)

// SystemNamespace is the namespace of the operators on the platform cluster.
const SystemNamespace = "openmcp-system"

// Options say what landscape to bring up; the zero value is the default one.
type Options struct {
	// Name tells landscapes on one machine apart; "default" when empty.
	Name string
	// State is the directory for everything the landscape writes; below the user's cache directory when empty.
	State string
	// Programs is a directory with ready-made programs; when empty they are built once and cached.
	Programs string
	// Race builds the operator with the race detector.
	Race bool
	// OperatorRules are the rights of the operator on the platform cluster; everything when empty.
	OperatorRules []rbacv1.PolicyRule
	// RealNodes asks for nodes that pull images and run containers, one each for the workload and the platform cluster, and for
	// an object store. They need root on Linux; where they cannot be had, Progress is told why and the nodes are simulated.
	RealNodes bool
	// TokenLifetime is how long the tokens last that the cluster provider grants; 30 days when zero.
	TokenLifetime time.Duration
	// Progress is told what goes on, one line a call; nil is silent.
	Progress func(line string)
}

// minTokenLifetime is what an API server grants at least.
const minTokenLifetime = 10 * time.Minute

// Landscape is a running landscape.
type Landscape struct {
	// Platform, Onboarding and Workload are its shared clusters.
	Platform, Onboarding, Workload Cluster
	// Registry is the address of the OCI registry, host:port.
	Registry string

	site    *site.Site
	options Options
	begin   time.Time
}

// Up brings a landscape up, or returns the one that runs already. What a crash left behind is cleaned up first.
func Up(ctx context.Context, options Options) (*Landscape, error) {
	if options.TokenLifetime != 0 && options.TokenLifetime < minTokenLifetime {
		return nil, fmt.Errorf("a token lifetime of %s is too short: an API server grants %s at least", options.TokenLifetime, minTokenLifetime)
	}
	dir, err := options.dir()
	if err != nil {
		return nil, err
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	l := &Landscape{options: options, begin: time.Now()}
	running, err := l.attach(dir)
	if err != nil {
		return nil, err
	}
	if running && l.hasWantedNodes() {
		return l, nil
	}
	if err := l.prepare(ctx, dir); err != nil {
		return nil, err
	}
	if err := l.start(ctx); err != nil {
		// The processes go, but the logs stay for whoever wants to know why.
		return nil, errors.Join(err, l.stop(context.WithoutCancel(ctx)))
	}
	return l, nil
}

// Open returns a landscape that runs; the error is os.ErrNotExist when there is none.
func Open(options Options) (*Landscape, error) {
	dir, err := options.dir()
	if err != nil {
		return nil, err
	}
	l := &Landscape{options: options, begin: time.Now()}
	running, err := l.attach(dir)
	if err != nil {
		return nil, err
	}
	if !running {
		return nil, fmt.Errorf("no landscape runs in %s: %w", dir, os.ErrNotExist)
	}
	return l, nil
}

// Down ends everything that belongs to the landscape in the state directory and removes it. It works on what a crash left.
func Down(ctx context.Context, options Options) error {
	dir, err := options.dir()
	if err != nil {
		return err
	}
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	return (&Landscape{options: options, site: &site.Site{Dir: dir}}).Down(ctx)
}

// Down ends every process of the landscape and removes its state.
func (l *Landscape) Down(ctx context.Context) error {
	if err := l.stop(ctx); err != nil {
		return fmt.Errorf("take the landscape down: %w", err)
	}
	if err := os.RemoveAll(l.site.Dir); err != nil {
		return fmt.Errorf("remove the state of the landscape: %w", err)
	}
	return nil
}

// hasWantedNodes says whether the nodes that run are of the kind that was asked for, as far as the machine allows it.
func (l *Landscape) hasWantedNodes() bool {
	return l.RealNodes() == (l.options.RealNodes && node.Possible() == nil)
}

// stop ends all processes, and removes what nodes have outside of the state directory.
func (l *Landscape) stop(ctx context.Context) error {
	if err := l.site.Processes().StopAll(ctx); err != nil {
		return err
	}
	return node.Remove(context.WithoutCancel(ctx), l.site.Dir)
}

// attach opens the landscape in dir and says whether it is complete and alive.
func (l *Landscape) attach(dir string) (bool, error) {
	s, err := site.Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l.site = s
	records, err := s.Processes().Records()
	if err != nil {
		return false, err
	}
	if !s.Complete || len(records) == 0 {
		return false, nil
	}
	for _, record := range records {
		// The operator under test comes and goes; the landscape is up without it.
		if record.Stage != site.StageOperator && !record.Alive() {
			l.Report("%s of the last landscape has died", record.Name)
			return false, nil
		}
	}
	// The operator is built from the checkout of the caller, whoever brought the landscape up.
	if s.Checkout, err = programs.Checkout(); err != nil {
		return false, err
	}
	return true, l.open()
}

// open fills in what callers see.
func (l *Landscape) open() error {
	for name, cluster := range map[string]*Cluster{Platform: &l.Platform, Onboarding: &l.Onboarding, Workload: &l.Workload} {
		server, found, err := apiserver.Open(l.site, name)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("the landscape lacks the cluster %s", name)
		}
		cluster.Server = server
	}
	l.Registry = fmt.Sprintf("%s:%d", l.site.Address(), l.site.RegistryPort)
	return nil
}

// prepare removes what is left of an earlier landscape and lays out a new one.
func (l *Landscape) prepare(ctx context.Context, dir string) error {
	if _, err := os.Stat(dir); err == nil {
		l.Report("cleaning up after an earlier landscape in %s", dir)
	}
	l.site = &site.Site{Dir: dir, TokenLifetime: l.options.TokenLifetime}
	if err := l.Down(ctx); err != nil {
		return err
	}
	shelf, err := l.shelf()
	if err != nil {
		return err
	}
	l.site.Checkout = shelf.Checkout
	if l.site.Programs, err = shelf.All(ctx, programs.Names()...); err != nil {
		return err
	}
	if l.site.KubernetesVersion, err = programs.KubernetesVersion(shelf.Checkout); err != nil {
		return err
	}
	if err := l.plug(ctx, shelf); err != nil {
		return err
	}
	if l.site.EtcdPort, err = site.FreePort(); err != nil {
		return err
	}
	for _, port := range []*int{&l.site.RegistryPort, &l.site.S3Port} {
		if *port, err = site.FreePortAt(l.site.Address()); err != nil {
			return err
		}
	}
	return l.site.Save()
}

func (l *Landscape) shelf() (programs.Shelf, error) {
	shelf, err := programs.Default()
	if err != nil {
		return shelf, err
	}
	if l.options.Programs != "" {
		shelf.Provided = l.options.Programs
	}
	shelf.Progress = func(line string) { l.Report("%s", line) }
	return shelf, nil
}

// Dir is the directory with the state of the landscape.
func (l *Landscape) Dir() string { return l.site.Dir }

// Logs is the directory with one log per process.
func (l *Landscape) Logs() string { return l.site.Path("logs") }

// Program is the path of one of the programs the landscape runs, for example kubectl.
func (l *Landscape) Program(name string) string { return l.site.Programs[name] }

func (o Options) dir() (string, error) {
	name := o.Name
	if name == "" {
		name = "default"
	}
	for _, dir := range []string{o.State, os.Getenv(StateVariable)} {
		if dir != "" {
			return filepath.Abs(filepath.Join(dir, name))
		}
	}
	cache, err := programs.CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "state", name), nil
}

// Report tells one line of progress to whom Options.Progress names.
func (l *Landscape) Report(format string, args ...any) {
	if l.options.Progress != nil {
		elapsed := time.Since(l.begin).Seconds()
		l.options.Progress(fmt.Sprintf("%6.1fs  ", elapsed) + fmt.Sprintf(format, args...))
	}
}
