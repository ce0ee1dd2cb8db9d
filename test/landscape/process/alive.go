package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// grace is how long a process may take over SIGTERM before it is killed.
const grace = 10 * time.Second

// Alive says whether this very process still runs.
func (r Record) Alive() bool {
	now, err := born(r.PID)
	return err == nil && now == r.Born
}

// Signal sends a signal to this very process.
func (r Record) Signal(signal syscall.Signal) error {
	if !r.Alive() {
		return fmt.Errorf("%s (pid %d) does not run", r.Name, r.PID)
	}
	return syscall.Kill(r.PID, signal)
}

func (r Record) end(ctx context.Context) error {
	if !r.Kill {
		r.signal(syscall.SIGTERM)
		if err := r.gone(ctx, grace); err == nil {
			return nil
		}
	}
	r.signal(syscall.SIGKILL)
	// Not even a caller who has run out of time may leave before the process did: its data is removed next.
	if err := r.gone(context.WithoutCancel(ctx), grace); err != nil {
		return fmt.Errorf("%s (pid %d) does not end: %w", r.Name, r.PID, err)
	}
	return nil
}

// signal reaches the whole session: the process was made its leader.
func (r Record) signal(signal syscall.Signal) {
	if r.Alive() {
		_ = syscall.Kill(-r.PID, signal)
	}
}

func (r Record) gone(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for r.Alive() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// born reads the start time of a process, field 22 of its stat file. A zombie counts as gone.
func born(pid int) (string, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", fmt.Errorf("no process %d: %w", pid, err)
	}
	// The name in field 2 may hold blanks and brackets, so count from behind its closing one.
	line := string(content)
	fields := strings.Fields(line[strings.LastIndexByte(line, ')')+1:])
	const state, start = 0, 19
	if len(fields) <= start || fields[state] == "Z" || fields[state] == "X" {
		return "", errors.New("the process has ended")
	}
	return fields[start], nil
}

// LogTail returns the last lines of a log, and where the rest of it is.
func LogTail(path string) string {
	const limit = 3000
	content, err := os.ReadFile(path)
	if err != nil {
		return "no log: " + err.Error()
	}
	if len(content) > limit {
		content = content[len(content)-limit:]
	}
	return fmt.Sprintf("last lines of %s:\n%s", path, strings.TrimSpace(string(content)))
}
