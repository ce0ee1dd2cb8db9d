package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/openmcp-project/service-provider-velero/test/landscape/process"
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

// run starts the programs and keeps them running, until containerd ends or the kubelet does so all the time.
func (n inside) run() error {
	containerd, err := n.start("containerd", n.Containerd, "--config="+filepath.Join(n.Dir, "containerd.toml"))
	if err != nil {
		return err
	}
	if err := n.awaitContainerd(containerd); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		kubelet, err := n.startKubelet()
		if err != nil {
			return err
		}
		ended, status, err := reap(containerd, kubelet)
		if err != nil {
			return err
		}
		if ended == containerd {
			return n.endOfContainerd(status)
		}
		// A kubelet gives up when the machine is so busy that containerd does not answer in time. On other nodes systemd restarts it.
		failure := fmt.Errorf("the kubelet has ended with status %d; %s", status, process.LogTail(n.log("kubelet")))
		if attempt == kubeletAttempts {
			return failure
		}
		fmt.Fprintln(os.Stderr, failure)
		time.Sleep(time.Second)
	}
}

// kubeletAttempts is how often a kubelet may start.
const kubeletAttempts = 5

// reap waits for one of the processes, and on the way takes note of all that others leave behind, as the first process must.
func reap(processes ...int) (ended, status int, err error) {
	for {
		var state syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &state, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return 0, 0, fmt.Errorf("watch the node: %w", err)
		}
		if slices.Contains(processes, pid) {
			return pid, state.ExitStatus(), nil
		}
	}
}

func (n inside) startKubelet() (int, error) {
	return n.start("kubelet", n.Kubelet,
		"--config="+filepath.Join(n.Dir, "kubelet.yaml"), "--kubeconfig="+n.Kubeconfig,
		"--node-ip="+n.Address, "--hostname-override="+n.Name)
}

func (n inside) log(program string) string { return filepath.Join(n.Logs, program+"-"+n.Name+".log") }

// start runs a program without waiting for it: run does, for all.
func (n inside) start(name, program string, args ...string) (int, error) {
	log, err := os.OpenFile(n.log(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
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

func (n inside) awaitContainerd(pid int) error {
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		connection, err := net.Dial("unix", criSocket)
		if err == nil {
			return connection.Close()
		}
		var state syscall.WaitStatus
		if ended, _ := syscall.Wait4(pid, &state, syscall.WNOHANG, nil); ended == pid {
			return n.endOfContainerd(state.ExitStatus())
		}
		if time.Since(begin) > patience {
			return fmt.Errorf("containerd does not answer: %w", err)
		}
	}
}

func (n inside) endOfContainerd(status int) error {
	return fmt.Errorf("containerd has ended with status %d; %s", status, process.LogTail(n.log("containerd")))
}
