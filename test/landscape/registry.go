package landscape

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/openmcp-project/service-provider-velero/test/landscape/pki"
	"github.com/openmcp-project/service-provider-velero/test/landscape/process"
	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

// SecureRegistry is a registry as companies run them: with a certificate of an authority that nobody knows, and a password.
type SecureRegistry struct {
	// Address is host:port.
	Address string
	// CA is the certificate of its authority, in PEM form.
	CA []byte
	// User and Password are the only ones it lets in.
	User, Password string

	landscape *Landscape
	ca        string
}

const (
	secureRegistry   = "secure-registry"
	registryUser     = "landscape"
	registryPassword = "landscape"
	// registryUsers has the bcrypt hash of the password.
	registryUsers = registryUser + ":$2a$04$hxx9nsjgrsNcWF93Fwk9ReHkdyphJrorckTySDe3//lbMFayxnt.q\n"
)

const secureRegistryConfig = `version: 0.1
log: {level: warn}
storage:
  filesystem: {rootdirectory: %q}
http:
  addr: %q
  tls: {certificate: %q, key: %q}
auth:
  htpasswd: {realm: landscape, path: %q}
`

// StartSecureRegistry starts a second registry; it ends with the landscape.
func (l *Landscape) StartSecureRegistry(ctx context.Context) (*SecureRegistry, error) {
	authority, err := pki.Create(l.site.Path(secureRegistry, "pki"), secureRegistry)
	if err != nil {
		return nil, err
	}
	pair, err := authority.Server(secureRegistry)
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(authority.CA())
	if err != nil {
		return nil, fmt.Errorf("read the registry's authority: %w", err)
	}
	ports, err := freePorts(1)
	if err != nil {
		return nil, err
	}
	registry := &SecureRegistry{
		Address: loopback(ports[0]), CA: ca, User: registryUser, Password: registryPassword, landscape: l, ca: authority.CA(),
	}
	if err := registry.start(ctx, pair); err != nil {
		return nil, err
	}
	return registry, nil
}

func (r *SecureRegistry) start(ctx context.Context, pair pki.Pair) error {
	at, directory := r.landscape.site, secureRegistry
	if err := at.Write([]byte(registryUsers), directory, "htpasswd"); err != nil {
		return err
	}
	config := fmt.Sprintf(secureRegistryConfig, at.Path(directory, "storage"), r.Address, pair.Cert, pair.Key, at.Path(directory, "htpasswd"))
	if err := at.Write([]byte(config), directory, "config.yaml"); err != nil {
		return err
	}
	record, err := at.Start(r.spec(at.Path(directory, "config.yaml")))
	if err != nil {
		return err
	}
	return record.Await(ctx, readyLimit, func(ctx context.Context) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.Address)
		if err != nil {
			return err
		}
		return connection.Close()
	})
}

func (r *SecureRegistry) spec(config string) process.Spec {
	return process.Spec{Name: secureRegistry, Program: "registry", Args: []string{"serve", config}, Stage: site.StageServer}
}

// Repository is where PublishCharts puts charts, as a ProviderConfig names it.
func (r *SecureRegistry) Repository() string { return "oci://" + r.Address + "/charts" }

// PublishCharts packages the charts in the given directories of the checkout and pushes them to this registry.
func (r *SecureRegistry) PublishCharts(ctx context.Context, dirs ...string) error {
	for _, dir := range dirs {
		err := r.landscape.push(ctx, dir, "", r.Repository(), "--ca-file", r.ca, "--username", r.User, "--password", r.Password)
		if err != nil {
			return err
		}
	}
	return nil
}
