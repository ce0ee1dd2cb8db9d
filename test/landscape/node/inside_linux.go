package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// patience is how long parts of a node may take on a busy machine.
const patience = time.Minute

// setUp makes a node of the namespaces that this process was started in.
func (n inside) setUp(ctx context.Context) error {
	if os.Getpid() != 1 {
		return fmt.Errorf("a node must be the first process of its namespaces, this is %d", os.Getpid())
	}
	if err := syscall.Sethostname([]byte(n.Name)); err != nil {
		return fmt.Errorf("name the node: %w", err)
	}
	if err := n.mountAll(); err != nil {
		return err
	}
	return n.network(ctx)
}

type mount struct {
	source, target, kind string
	flags                uintptr
}

// mountAll hides the places of the machine that containerd and the kubelet write to, and keeps the rest of it from them.
func (n inside) mountAll() error {
	for _, m := range []mount{
		{target: "/", flags: syscall.MS_REC | syscall.MS_PRIVATE},
		{source: "proc", target: "/proc", kind: "proc"},
		{source: "node", target: concealed[0], kind: "tmpfs"},
		{source: "node", target: concealed[1], kind: "tmpfs"},
		{source: "node", target: concealed[2], kind: "tmpfs"},
		// These grow, and a person wants to look into the logs: they are on the disk.
		{source: filepath.Join(n.Dir, "kubelet"), target: "/var/lib/kubelet", flags: syscall.MS_BIND},
		{source: filepath.Join(n.Dir, "containerd"), target: "/var/lib/containerd", flags: syscall.MS_BIND},
		{source: filepath.Join(n.Dir, "pods"), target: "/var/log/pods", flags: syscall.MS_BIND},
	} {
		if err := m.apply(); err != nil {
			return err
		}
	}
	return n.pretendSettings()
}

// kernelSettings are those that a kubelet sets to these values. They are the whole machine's, which is not to be changed.
var kernelSettings = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

// pretendSettings makes the kubelet find what it would set.
func (n inside) pretendSettings() error {
	for name, value := range kernelSettings {
		file := filepath.Join(n.Dir, "sys", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return fmt.Errorf("prepare the kernel settings of the node: %w", err)
		}
		if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
			return fmt.Errorf("prepare the kernel settings of the node: %w", err)
		}
		if err := syscall.Mount(file, filepath.Join("/proc/sys", name), "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("cover the kernel setting %s in the node: %w", name, err)
		}
	}
	return nil
}

func (m mount) apply() error {
	if m.flags == syscall.MS_BIND {
		for _, dir := range []string{m.source, m.target} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return fmt.Errorf("prepare a mount of the node: %w", err)
			}
		}
	}
	if err := syscall.Mount(m.source, m.target, m.kind, m.flags, ""); err != nil {
		return fmt.Errorf("mount %s in the node: %w", m.target, err)
	}
	return nil
}

// network waits for the cable that the landscape plugs in.
func (n inside) network(ctx context.Context) error {
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		_, err := net.InterfaceByName(uplink)
		if err == nil {
			break
		}
		if time.Since(begin) > patience {
			return fmt.Errorf("the node is not connected: %w", err)
		}
	}
	for _, command := range [][]string{
		{"link", "set", "lo", "up"},
		{"addr", "add", n.Address + "/24", "dev", uplink},
		{"link", "set", uplink, "up"},
		{"route", "add", "default", "via", n.Gateway},
	} {
		if _, err := ip(ctx, command...); err != nil {
			return err
		}
	}
	// Of this network namespace only.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600); err != nil {
		return fmt.Errorf("let the node forward what its pods send: %w", err)
	}
	return nil
}

// run starts the programs and reaps what they leave behind, as the first process must.
func (n inside) run() error {
	containerd, err := n.start("containerd", n.Containerd, "--config="+filepath.Join(n.Dir, "containerd.toml"))
	if err != nil {
		return err
	}
	if err := awaitSocket(criSocket); err != nil {
		return err
	}
	kubelet, err := n.start("kubelet", n.Kubelet,
		"--config="+filepath.Join(n.Dir, "kubelet.yaml"), "--kubeconfig="+n.Kubeconfig,
		"--node-ip="+n.Address, "--hostname-override="+n.Name)
	if err != nil {
		return err
	}
	names := map[int]string{containerd: "containerd", kubelet: "the kubelet"}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("watch the node: %w", err)
		}
		if name, known := names[pid]; known {
			return fmt.Errorf("%s of node %s has ended, status %d", name, n.Name, status.ExitStatus())
		}
	}
}

// start runs a program without waiting for it: run does, for all.
func (n inside) start(name, program string, args ...string) (int, error) {
	log, err := os.OpenFile(filepath.Join(n.Logs, name+"-"+n.Name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("open the log of %s: %w", name, err)
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", name, err)
	}
	return cmd.Process.Pid, nil
}

func awaitSocket(path string) error {
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		connection, err := net.Dial("unix", path)
		if err == nil {
			return connection.Close()
		}
		if time.Since(begin) > patience {
			return fmt.Errorf("containerd does not answer: %w", err)
		}
	}
}
