package node

import (
	"net/netip"
	"testing"

	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

func TestNamesOfInterfacesFit(t *testing.T) {
	const limit = 15 // of the kernel
	dir := "/a/very/long/path/to/the/state/of/a/landscape"
	for index := range Count {
		if name := link(dir, index); len(name) > limit {
			t.Errorf("%s has %d characters", name, len(name))
		}
	}
	if Identity(dir) == Identity(dir+"2") {
		t.Error("two landscapes have the same name")
	}
}

func TestStateThatNodesWouldNotSeeIsRefused(t *testing.T) {
	for dir, refused := range map[string]bool{
		"/var/lib/jenkins/state": true, "/run/state": true, "/var/log/x": true,
		"/srv/state": false, "/var/library": false, "/running": false,
	} {
		if err := hidden(dir); (err != nil) != refused {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestRangesOfANetworkAreApart(t *testing.T) {
	network := site.Network{Number: first}
	ranges := []string{network.Host() + "/24"}
	for index := range Count {
		ranges = append(ranges, network.Pods(index), network.Services(index))
		if address := netip.MustParseAddr(network.Node(index)); !netip.MustParsePrefix(ranges[0]).Contains(address) {
			t.Errorf("node %d is not beside the machine: %s", index, address)
		}
		if address := netip.MustParseAddr(network.KubernetesService(index)); !netip.MustParsePrefix(network.Services(index)).Contains(address) {
			t.Errorf("the API server of cluster %d is outside of its Services: %s", index, address)
		}
	}
	for i, one := range ranges {
		if !netip.MustParsePrefix(network.Range()).Contains(netip.MustParsePrefix(one).Addr()) {
			t.Errorf("%s is outside of the network", one)
		}
		for _, other := range ranges[i+1:] {
			if netip.MustParsePrefix(one).Overlaps(netip.MustParsePrefix(other)) {
				t.Errorf("%s and %s overlap", one, other)
			}
		}
	}
}
