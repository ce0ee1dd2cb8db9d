// Command report runs each of its arguments as a shell command, all at the same time. It reads their output, which is that of `go test -json`,
// prints it as `go test` does, and says at the end which tests the machine did not allow to run, and why. It fails when one of them does.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

func main() {
	run := newRun(os.Stdout)
	err := run.commands(context.Background(), os.Args[1:])
	run.summarize()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// commands runs them side by side. One that fails does not stop the others: what they find is worth knowing.
func (r *run) commands(ctx context.Context, commands []string) error {
	ended := make(chan error, len(commands))
	for _, command := range commands {
		go func() { ended <- r.command(ctx, command) }()
	}
	failed := make([]error, 0, len(commands))
	for range commands {
		failed = append(failed, <-ended)
	}
	return errors.Join(failed...)
}

func (r *run) command(ctx context.Context, command string) error {
	shell := exec.CommandContext(ctx, "sh", "-c", command)
	shell.Stderr = os.Stderr
	output, err := shell.StdoutPipe()
	if err != nil {
		return fmt.Errorf("run %q: %w", command, err)
	}
	if err := shell.Start(); err != nil {
		return fmt.Errorf("run %q: %w", command, err)
	}
	if err := errors.Join(r.read(output), shell.Wait()); err != nil {
		return fmt.Errorf("run %q: %w", command, err)
	}
	return nil
}
