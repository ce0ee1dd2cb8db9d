// Package node runs real nodes of a cluster on this machine, without Docker: a containerd and a kubelet, in namespaces of
// their own. Whatever they start, mount or set up in their network ends with the one process that the landscape records.
package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/openmcp-project/service-provider-velero/test/landscape/process"
	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

// Spec is a node to run.
type Spec struct {
	// Name of the node, and Index, which decides on its addresses.
	Name  string
	Index int
	// Kubeconfig is the access of its kubelet, and CA the authority of those who may call it.
	Kubeconfig, CA string
	// Registry is the address of the one registry it pulls from, over plain HTTP, and Pause the image of its sandboxes.
	Registry, Pause string
	// Command is the path of command landscape, which becomes the first process of the node.
	Command string
}

// Possible says why this machine cannot run real nodes; nil when it can.
func Possible() error {
	if os.Geteuid() != 0 {
		return errors.New("real nodes need root")
	}
	for _, program := range []string{"ip", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("real nodes need the command %s: %w", program, err)
		}
	}
	// runc is built here, with C code of its own.
	if err := exec.Command("pkg-config", "--exists", "libseccomp").Run(); err != nil {
		return fmt.Errorf("real nodes need pkg-config and libseccomp-dev: %w", err)
	}
	if err := process.CanIsolate(); err != nil {
		return fmt.Errorf("real nodes need namespaces: %w", err)
	}
	return nil
}

// Start runs a node and connects it to the network. It is Ready some seconds later.
func Start(ctx context.Context, s *site.Site, spec Spec) (process.Record, error) {
	inside := inside{
		Spec: spec, Dir: s.Path("nodes", spec.Name), Logs: s.Path("logs"),
		Address: s.Network.Node(spec.Index), Gateway: s.Network.Host(),
		CgroupRoot: "/" + Identity(s.Dir) + "/" + spec.Name,
		Kubelet:    s.Programs["kubelet"], Containerd: s.Programs["containerd"],
	}
	if err := createCgroups(inside.CgroupRoot); err != nil {
		return process.Record{}, err
	}
	if err := configure(s, inside); err != nil {
		return process.Record{}, err
	}
	record, err := s.Start(process.Spec{
		Name: "node-" + spec.Name, Program: spec.Command, Args: []string{"node", filepath.Join(inside.Dir, "node.json")},
		// Pods need no farewell: nothing of them outlives the landscape.
		Stage: site.StageController, Isolated: true, Kill: true,
	})
	if err != nil {
		return process.Record{}, err
	}
	return record, connect(ctx, s, spec.Index, record.PID)
}

// configure writes all files that the programs of a node read.
func configure(s *site.Site, inside inside) error {
	own, err := json.Marshal(inside)
	if err != nil {
		return fmt.Errorf("configure node %s: %w", inside.Name, err)
	}
	kubelet, err := kubeletConfig(inside)
	if err != nil {
		return err
	}
	network, err := networkConfig(s.Network.Pods(inside.Index))
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"node.json":                own,
		"kubelet.yaml":             kubelet,
		"containerd.toml":          containerdConfig(s, inside),
		"network/10-pods.conflist": network,
		filepath.Join("registries", inside.Registry, "hosts.toml"): registryConfig(inside.Registry),
	} {
		if err := s.Write(content, "nodes", inside.Name, name); err != nil {
			return err
		}
	}
	return nil
}

// concealed are the directories of the machine that a node replaces by its own, because its programs write to fixed places there.
var concealed = [...]string{"/run", "/var/lib", "/var/log"}

// hidden says whether a directory is not visible inside a node.
func hidden(dir string) error {
	for _, parent := range concealed {
		if strings.HasPrefix(dir, parent+"/") {
			return fmt.Errorf("real nodes cannot have their state below %s: choose another directory", parent)
		}
	}
	return nil
}
