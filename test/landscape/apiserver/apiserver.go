// Package apiserver runs kube-apiservers: each is a cluster of its own, with its own authority, token issuer, etcd prefix,
// audit log and kube-controller-manager.
package apiserver

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/openmcp-project/service-provider-velero/test/landscape/etcd"
	"github.com/openmcp-project/service-provider-velero/test/landscape/pki"
	"github.com/openmcp-project/service-provider-velero/test/landscape/process"
	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

// Spec says what kind of server to run.
type Spec struct {
	// Name of the server, and of its etcd prefix.
	Name string
	// Flags are added to those every server has.
	Flags []string
	// Services is the range of the addresses of the cluster's Services. A cluster whose pods are real must have one of its
	// own: the server then listens where pods expect it, at the first address of the range, and calls kubelets.
	Services string
}

// Server is a running API server.
type Server struct {
	Name    string
	Address string
	Port    int
	site    *site.Site
}

// NodelessControllers are what a cluster without nodes needs: namespaces that finish deleting, garbage collection by
// owner, and ServiceAccounts.
func NodelessControllers() []string {
	return []string{
		"namespace-controller", "garbage-collector-controller", "serviceaccount-controller",
		"root-ca-certificate-publisher-controller", "clusterrole-aggregation-controller",
	}
}

// Start runs a server and waits until it is ready. One that runs already is left alone.
func Start(ctx context.Context, s *site.Site, spec Spec) (Server, error) {
	server, found, err := Open(s, spec.Name)
	if err != nil {
		return Server{}, err
	}
	if !found {
		if server, err = create(s, spec); err != nil {
			return Server{}, err
		}
	}
	record, err := server.ensure(server.process(), func() (process.Spec, error) { return server.spec(spec) })
	if err != nil {
		return Server{}, err
	}
	return server, record.Await(ctx, 2*time.Minute, server.Ready)
}

// StartControllers runs a kube-controller-manager for the server, with all controllers when none is named. Kinds that are
// there by then are garbage collected at once; those that come later only after its next discovery, half a minute later.
func (s Server) StartControllers(controllers ...string) error {
	_, err := s.ensure(s.controllers(), func() (process.Spec, error) { return s.controllerSpec(controllers) })
	return err
}

// Open finds a server that was started before, whether it runs or not.
func Open(s *site.Site, name string) (server Server, found bool, err error) {
	content, err := os.ReadFile(s.Path("servers", name, "server.json"))
	if errors.Is(err, os.ErrNotExist) {
		return Server{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &server)
	}
	if err != nil {
		return Server{}, false, fmt.Errorf("open the API server %s: %w", name, err)
	}
	server.site = s
	return server, true, nil
}

// List names all servers of a site.
func List(s *site.Site) ([]string, error) {
	entries, err := os.ReadDir(s.Path("servers"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list the API servers: %w", err)
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, nil
}

// create makes the certificates and the port of a server, and records it last.
func create(s *site.Site, spec Spec) (Server, error) {
	server, err := place(s, spec)
	if err != nil {
		return Server{}, err
	}
	authority, err := pki.Create(server.path("pki"), server.Name)
	if err != nil {
		return Server{}, err
	}
	if _, err := authority.Server("server", server.Address); err != nil {
		return Server{}, err
	}
	if _, err := authority.Client(kubeletClient, "system:masters"); err != nil {
		return Server{}, err
	}
	if _, _, err := authority.TokenKeys(); err != nil {
		return Server{}, err
	}
	if _, err := server.UserKubeconfig("admin", "system:masters"); err != nil {
		return Server{}, err
	}
	content, err := json.Marshal(server)
	if err != nil {
		return Server{}, fmt.Errorf("record the API server %s: %w", server.Name, err)
	}
	return server, s.Write(content, "servers", server.Name, "server.json")
}

// place decides where a new server listens.
func place(s *site.Site, spec Spec) (Server, error) {
	server := Server{Name: spec.Name, Address: s.Address(), site: s}
	if spec.Services != "" {
		services, err := netip.ParsePrefix(spec.Services)
		if err != nil {
			return Server{}, fmt.Errorf("read the range of the Services of %s: %w", spec.Name, err)
		}
		server.Address, server.Port = services.Addr().Next().String(), 443
		return server, nil
	}
	var err error
	server.Port, err = site.FreePortAt(server.Address)
	return server, err
}

// kubeletClient is who a server is to the kubelets of its cluster.
const kubeletClient = "kubelet-client"

// Stop ends a server and removes everything it left, its data in etcd too.
func (s Server) Stop(ctx context.Context) error {
	for _, name := range []string{s.controllers(), s.process()} {
		if err := s.site.Processes().Stop(ctx, name); err != nil {
			return err
		}
	}
	if err := etcd.Erase(ctx, s.site, s.prefix()+"/"); err != nil {
		return err
	}
	if err := os.RemoveAll(s.path()); err != nil {
		return fmt.Errorf("remove the API server %s: %w", s.Name, err)
	}
	return nil
}

// Interrupt kills the server, as a crash or a cut connection does. Its data stays, and resume brings it back at the same address.
func (s Server) Interrupt(ctx context.Context) (resume func(context.Context) error, err error) {
	record, found, err := s.site.Processes().Lookup(s.process())
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("the API server %s does not run", s.Name)
	}
	if err := s.site.Processes().Kill(ctx, s.process()); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		again, err := s.ensure(s.process(), func() (process.Spec, error) { return record.Spec, nil })
		if err != nil {
			return err
		}
		return again.Await(ctx, 2*time.Minute, s.Ready)
	}, nil
}

// Ready says whether the server answers that it is ready.
func (s Server) Ready(ctx context.Context) error {
	config, err := s.RESTConfig()
	if err != nil {
		return err
	}
	config.Timeout = 5 * time.Second
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the API server %s: %w", s.Name, err)
	}
	_, err = client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	return err
}

// ensure starts a process that does not run yet.
func (s Server) ensure(name string, spec func() (process.Spec, error)) (process.Record, error) {
	record, found, err := s.site.Processes().Lookup(name)
	if err != nil {
		return process.Record{}, err
	}
	if found && record.Alive() {
		return record, nil
	}
	wanted, err := spec()
	if err != nil {
		return process.Record{}, err
	}
	return s.site.Start(wanted)
}

//go:embed audit-policy.yaml
var auditPolicy []byte

func (s Server) spec(wanted Spec) (process.Spec, error) {
	if err := s.site.Write(auditPolicy, "servers", s.Name, "audit-policy.yaml"); err != nil {
		return process.Spec{}, err
	}
	args := append(etcd.ClientFlags(s.site),
		"--etcd-prefix="+s.prefix(),
		fmt.Sprintf("--secure-port=%d", s.Port), "--bind-address="+s.Address, "--advertise-address="+s.Address,
		"--endpoint-reconciler-type=none", // loopback is no address the kubernetes Service may have
		"--tls-cert-file="+s.path("pki", "server.crt"), "--tls-private-key-file="+s.path("pki", "server.key"),
		"--client-ca-file="+s.path("pki", "ca.crt"), "--cert-dir="+s.path("pki"),
		"--service-account-key-file="+s.path("pki", "token.pub"),
		"--service-account-signing-key-file="+s.path("pki", "token.key"),
		"--service-account-issuer=https://"+s.Name+".landscape.invalid",
		"--service-account-extend-token-expiration=false",
		"--authorization-mode=Node,RBAC", "--service-cluster-ip-range="+cmp.Or(wanted.Services, "10.0.0.0/16"), "--allow-privileged=true",
		"--audit-policy-file="+s.path("audit-policy.yaml"), "--audit-log-path="+s.AuditLog(),
		"--audit-log-mode=blocking", "--audit-log-maxsize=1024", "--profiling=false",
	)
	if wanted.Services != "" {
		args = append(args, "--kubelet-preferred-address-types=InternalIP",
			"--kubelet-client-certificate="+s.path("pki", "client-"+kubeletClient+".crt"),
			"--kubelet-client-key="+s.path("pki", "client-"+kubeletClient+".key"))
	}
	return process.Spec{
		Name: s.process(), Program: "kube-apiserver", Args: append(args, wanted.Flags...),
		Stage: site.StageServer, Kill: true, // it takes up to a minute over SIGTERM, and its data is thrown away
	}, nil
}

func (s Server) controllerSpec(controllers []string) (process.Spec, error) {
	kubeconfig, err := s.UserKubeconfig("kube-controller-manager", "system:masters")
	if err != nil {
		return process.Spec{}, err
	}
	port, err := site.FreePort()
	if err != nil {
		return process.Spec{}, err
	}
	args := []string{
		"--kubeconfig=" + kubeconfig, "--leader-elect=false",
		fmt.Sprintf("--secure-port=%d", port), "--bind-address=127.0.0.1", "--cert-dir=" + s.path("pki", "controllers"),
		"--service-account-private-key-file=" + s.path("pki", "token.key"), "--root-ca-file=" + s.path("pki", "ca.crt"),
	}
	if len(controllers) > 0 {
		args = append(args, "--controllers="+strings.Join(controllers, ","))
	}
	return process.Spec{
		Name: s.controllers(), Program: "kube-controller-manager", Args: args, Stage: site.StageController,
	}, nil
}

func (s Server) process() string     { return "kube-apiserver-" + s.Name }
func (s Server) controllers() string { return "kube-controller-manager-" + s.Name }
func (s Server) prefix() string      { return "/" + s.Name }

func (s Server) path(elements ...string) string {
	return s.site.Path(append([]string{"servers", s.Name}, elements...)...)
}
