//go:build !linux

package node

import (
	"context"
	"errors"
)

var errLinux = errors.New("real nodes need Linux")

func (inside) setUp(context.Context) error { return errLinux }

func (inside) run() error { return errLinux }
