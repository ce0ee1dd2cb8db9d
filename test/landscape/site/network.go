package site

import "fmt"

// Network is the part of the private address space in which a landscape with real nodes lives: 10.<Number>.0.0/16. The
// machine has an address in it, and so do the nodes, the pods on them and the Services of their clusters.
type Network struct{ Number uint8 }

// Range is all of it.
func (n Network) Range() string { return fmt.Sprintf("10.%d.0.0/16", n.Number) }

// Host is the address of the machine: what listens on it can be reached by pods.
func (n Network) Host() string { return fmt.Sprintf("10.%d.0.1", n.Number) }

// Node is the address of a node, by its index.
func (n Network) Node(index int) string { return fmt.Sprintf("10.%d.0.%d", n.Number, 2+index) }

// Pods is the range of the pods on a node.
func (n Network) Pods(index int) string { return fmt.Sprintf("10.%d.%d.0/24", n.Number, 16+index) }

// Services is the range of the Services of a node's cluster.
func (n Network) Services(index int) string { return fmt.Sprintf("10.%d.%d.0/24", n.Number, 32+index) }

// KubernetesService is the address under which pods expect the API server of their cluster: the first of the range.
func (n Network) KubernetesService(index int) string {
	return fmt.Sprintf("10.%d.%d.1", n.Number, 32+index)
}
