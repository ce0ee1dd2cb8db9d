package node

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
)

// inside is what the first process of a node knows.
type inside struct {
	Spec
	// Dir holds the files of the node, Logs the logs of its programs.
	Dir, Logs string
	// Address is its own, Gateway the machine's.
	Address, Gateway string
	// CgroupRoot is the cgroup all of its pods are in.
	CgroupRoot string
	// Kubelet and Containerd are the paths of its programs.
	Kubelet, Containerd string
}

// uplink is the network interface of a node.
const uplink = "eth0"

// Run is the first process of a node. It ends when containerd or the kubelet does, and with it all there is in the node.
func Run(ctx context.Context, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the node: %w", err)
	}
	var node inside
	if err := json.Unmarshal(content, &node); err != nil {
		return fmt.Errorf("read the node: %w", err)
	}
	if err := node.setUp(ctx); err != nil {
		return err
	}
	return node.run()
}
