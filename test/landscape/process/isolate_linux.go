package process

import (
	"fmt"
	"os/exec"
	"syscall"
)

func isolate(attributes *syscall.SysProcAttr) {
	attributes.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS
}

// CanIsolate says why this machine cannot run isolated processes; nil when it can.
func CanIsolate() error {
	cmd := exec.Command("true")
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	isolate(cmd.SysProcAttr)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("no namespaces can be made here: %w", err)
	}
	return nil
}
