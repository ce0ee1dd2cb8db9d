//go:build !linux

package process

import (
	"errors"
	"syscall"
)

func isolate(*syscall.SysProcAttr) {}

// CanIsolate says why this machine cannot run isolated processes; nil when it can.
func CanIsolate() error { return errors.New("only Linux has namespaces") }
