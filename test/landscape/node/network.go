package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"

	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

// Count is how many nodes a landscape can have.
const Count = 2

// Identity names what a landscape has outside of its directory. It depends on the directory only, so that it is found after a crash.
func Identity(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return "vel" + hex.EncodeToString(sum[:4])
}

// link is the machine's end of a node's cable.
func link(dir string, index int) string { return fmt.Sprintf("%s-%d", Identity(dir), index) }

// first and last are the numbers a network may have: few people use these parts of 10.0.0.0/8.
const first, last = 130, 229

// Plug makes the network of a landscape: a bridge with the machine's address, and those of the API servers of the nodes' clusters.
func Plug(ctx context.Context, s *site.Site) error {
	if err := hidden(s.Dir); err != nil {
		return err
	}
	network, err := free(ctx, s.Dir)
	if err != nil {
		return err
	}
	bridge := Identity(s.Dir)
	commands := [][]string{
		{"link", "add", bridge, "type", "bridge"},
		{"addr", "add", network.Host() + "/24", "dev", bridge},
		{"link", "set", bridge, "up"},
	}
	for index := range Count {
		commands = append(commands, []string{"addr", "add", network.KubernetesService(index) + "/32", "dev", bridge})
	}
	for index := range Count {
		commands = append(commands, []string{"route", "add", network.Pods(index), "via", network.Node(index), "dev", bridge})
	}
	for _, command := range commands {
		if _, err := ip(ctx, command...); err != nil {
			return errors.Join(err, unplug(ctx, s.Dir))
		}
	}
	s.Network = &network
	return nil
}

// free finds a network that nothing on this machine has a route to. It starts at a place that depends on the landscape, so
// that two that come up at the same time hardly meet.
func free(ctx context.Context, dir string) (site.Network, error) {
	const count = last - first + 1
	sum := sha256.Sum256([]byte(dir))
	for i := range count {
		network := site.Network{Number: uint8(first + (int(sum[0])+i)%count)}
		routes, err := ip(ctx, "-4", "route", "show", "root", network.Range())
		if err != nil {
			return network, err
		}
		if strings.TrimSpace(routes) == "" {
			return network, nil
		}
	}
	return site.Network{}, fmt.Errorf("no network between 10.%d.0.0 and 10.%d.0.0 is free", first, last)
}

// connect lays the cable between the network of the machine and that of a node's first process.
func connect(ctx context.Context, s *site.Site, index, pid int) error {
	name := link(s.Dir, index)
	for _, command := range [][]string{
		{"link", "add", name, "type", "veth", "peer", "name", uplink, "netns", strconv.Itoa(pid)},
		{"link", "set", name, "master", Identity(s.Dir)},
		{"link", "set", name, "up"},
	} {
		if _, err := ip(ctx, command...); err != nil {
			return err
		}
	}
	return nil
}

// unplug removes what Plug and connect made.
func unplug(ctx context.Context, dir string) error {
	names := make([]string, 0, Count+1)
	names = append(names, Identity(dir))
	for index := range Count {
		names = append(names, link(dir, index))
	}
	for _, name := range names {
		if _, err := net.InterfaceByName(name); err != nil {
			continue // most landscapes have none, and the cables of nodes that have ended go by themselves
		}
		if _, err := ip(ctx, "link", "delete", name); err != nil {
			if _, gone := net.InterfaceByName(name); gone == nil {
				return err
			}
		}
	}
	return nil
}

func ip(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}
