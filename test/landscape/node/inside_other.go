//go:build !linux

package node

import "errors"

var errLinux = errors.New("real nodes need Linux")

func (inside) setUp() error { return errLinux }

func (inside) run() error { return errLinux }
