// Package site knows where the parts of one landscape are: its directory, the programs it runs and its etcd.
package site

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/openmcp-project/service-provider-velero/test/landscape/process"
)

// The stages in which a landscape ends, highest first. A cluster provider must end before the servers it starts, and an
// API server before the etcd it writes to.
const (
	StageEtcd = iota
	StageServer
	StageController
	StageProvider
	StageOperator
)

// Site is one landscape on this machine. It is stored in its own directory, so that every process can open it.
type Site struct {
	// Dir holds everything that belongs to the landscape; it is removed with it.
	Dir string
	// Checkout is the root of the project's sources.
	Checkout string
	// Programs maps the name of a program to its path.
	Programs map[string]string
	// KubernetesVersion is what the API servers report.
	KubernetesVersion string
	// EtcdPort, RegistryPort, S3Port: where etcd (on loopback), the OCI registry and the object store listen.
	EtcdPort, RegistryPort, S3Port int
	// Network is where a landscape with real nodes lives; nil when its nodes are simulated.
	Network *Network
	// TokenLifetime is how long a token the cluster provider grants is valid.
	TokenLifetime time.Duration
	// Complete is set once everything came up.
	Complete bool
}

const file = "landscape.json"

// Open reads the site in dir.
func Open(dir string) (*Site, error) {
	content, err := os.ReadFile(filepath.Join(dir, file))
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("no landscape in %s: %w", dir, os.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("open the landscape: %w", err)
	}
	site := &Site{}
	if err := json.Unmarshal(content, site); err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Join(dir, file), err)
	}
	return site, nil
}

// Save stores the site in its directory.
func (s *Site) Save() error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("store the landscape: %w", err)
	}
	return s.Write(content, file)
}

// Path joins elements to a path inside the site.
func (s *Site) Path(elements ...string) string {
	return filepath.Join(append([]string{s.Dir}, elements...)...)
}

// Write puts a file that only its owner can read at a path inside the site. Readers see the old content or the new.
func (s *Site) Write(content []byte, elements ...string) error {
	path := s.Path(elements...)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("create the directory of %s: %w", path, err)
	}
	if err := os.WriteFile(path+".partial", content, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(path+".partial", path)
}

// Address is where servers listen that pods have to reach: loopback, unless pods are real.
func (s *Site) Address() string {
	if s.Network == nil {
		return Loopback
	}
	return s.Network.Host()
}

// Log is the log of a process.
func (s *Site) Log(name string) string { return s.Path("logs", name+".log") }

// Processes is the table of everything that runs.
func (s *Site) Processes() process.Table { return process.Table{Dir: s.Path("processes")} }

// Start runs one of the site's programs, or the one at the path given.
func (s *Site) Start(spec process.Spec) (process.Record, error) {
	if path, known := s.Programs[spec.Program]; known {
		spec.Program = path
	}
	spec.Log = s.Log(spec.Name)
	return s.Processes().Start(spec)
}

// Loopback is the address of everything that nobody outside this machine's own network namespace has to reach.
const Loopback = "127.0.0.1"
