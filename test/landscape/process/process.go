// Package process starts programs that outlive the one that started them, and ends exactly those again.
//
// What runs is recorded as one file per process, so that several processes (the command, the cluster provider, a test)
// can add to and read the same table. A process is known by its pid and its start time: a pid the system has given to
// somebody else since is never touched.
package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Spec is a program to run.
type Spec struct {
	// Name identifies the process in its table; it also names the log.
	Name string
	// Stage orders the end: the processes of a higher stage are stopped before those of a lower one.
	Stage int
	// Kill ends the process with SIGKILL at once, for those that take long over a farewell nobody needs.
	Kill bool
	// Isolated gives the process namespaces of its own, as a container has: when it ends, everything that it started, mounted
	// and set up in its network is gone with it. Only root on Linux can do that.
	Isolated bool
	// Program and Args are what to run.
	Program string
	Args    []string
	// Env is added to the environment.
	Env []string
	// Log is the file that receives what the process prints.
	Log string
}

// Record is a process that was started.
type Record struct {
	Spec
	PID int
	// Born is the start time of the process in the kernel's own unit.
	Born    string
	Started time.Time
}

// Table is a directory with one file per process.
type Table struct{ Dir string }

// Start runs a program in a session of its own, so that it goes on when the caller ends, and records it.
func (t Table) Start(spec Spec) (Record, error) {
	if old, found, err := t.Lookup(spec.Name); err != nil {
		return Record{}, err
	} else if found && old.Alive() {
		return Record{}, fmt.Errorf("%s already runs as pid %d", spec.Name, old.PID)
	}
	cmd, err := launch(spec)
	if err != nil {
		return Record{}, err
	}
	// Reaping matters while the caller lives: a zombie would look like a process that does not end.
	go func() { _ = cmd.Wait() }()
	record := Record{Spec: spec, PID: cmd.Process.Pid, Started: time.Now()}
	record.Born, err = born(record.PID)
	if err != nil {
		return Record{}, fmt.Errorf("%s ended at once: %s", spec.Name, LogTail(spec.Log))
	}
	if err := t.write(record); err != nil {
		_ = cmd.Process.Kill()
		return Record{}, err
	}
	return record, nil
}

func launch(spec Spec) (*exec.Cmd, error) {
	if err := os.MkdirAll(filepath.Dir(spec.Log), 0o700); err != nil {
		return nil, fmt.Errorf("create the log directory of %s: %w", spec.Name, err)
	}
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", spec.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(spec.Program, spec.Args...)
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if spec.Isolated {
		isolate(cmd.SysProcAttr)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	return cmd, nil
}

func (t Table) write(record Record) error {
	if err := os.MkdirAll(t.Dir, 0o700); err != nil {
		return fmt.Errorf("create the process table: %w", err)
	}
	content, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return fmt.Errorf("record %s: %w", record.Name, err)
	}
	partial := t.path(record.Name) + ".partial"
	if err := os.WriteFile(partial, content, 0o600); err != nil {
		return fmt.Errorf("record %s: %w", record.Name, err)
	}
	return os.Rename(partial, t.path(record.Name))
}

// Lookup reads the record of one process.
func (t Table) Lookup(name string) (record Record, found bool, err error) {
	content, err := os.ReadFile(t.path(name))
	if errors.Is(err, os.ErrNotExist) {
		return Record{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &record)
	}
	if err != nil {
		return Record{}, false, fmt.Errorf("read the record of %s: %w", name, err)
	}
	return record, true, nil
}

// Records lists what was started and not stopped, in the order in which it is to be stopped.
func (t Table) Records() ([]Record, error) {
	files, err := filepath.Glob(filepath.Join(t.Dir, "*"+extension))
	if err != nil {
		return nil, fmt.Errorf("list the process table: %w", err)
	}
	records := make([]Record, 0, len(files))
	for _, file := range files {
		record, found, err := t.Lookup(strings.TrimSuffix(filepath.Base(file), extension))
		if err != nil {
			return nil, err
		}
		if found {
			records = append(records, record)
		}
	}
	slices.SortStableFunc(records, func(a, b Record) int { return b.Stage - a.Stage })
	return records, nil
}

// Stop ends one process and forgets it. One that is not there is no error.
func (t Table) Stop(ctx context.Context, name string) error {
	record, found, err := t.Lookup(name)
	if err != nil || !found {
		return err
	}
	if err := record.end(ctx); err != nil {
		return err
	}
	return t.forget(name)
}

// Kill ends one process with SIGKILL and forgets it, as a crash would.
func (t Table) Kill(ctx context.Context, name string) error {
	record, found, err := t.Lookup(name)
	if err != nil || !found {
		return err
	}
	record.Kill = true
	if err := record.end(ctx); err != nil {
		return err
	}
	return t.forget(name)
}

// StopAll ends everything, stage by stage. The table is read anew for every stage: a process that is being stopped may
// have started another one in the meantime.
func (t Table) StopAll(ctx context.Context) error {
	for {
		records, err := t.Records()
		if err != nil || len(records) == 0 {
			return err
		}
		results := make(chan error)
		stage := 0
		for _, record := range records {
			if record.Stage == records[0].Stage {
				stage++
				go func() { results <- t.Stop(ctx, record.Name) }()
			}
		}
		var failures []error
		for range stage {
			failures = append(failures, <-results)
		}
		if err := errors.Join(failures...); err != nil {
			return err
		}
	}
}

func (t Table) forget(name string) error {
	if err := os.Remove(t.path(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forget %s: %w", name, err)
	}
	return nil
}

const extension = ".json"

func (t Table) path(name string) string { return filepath.Join(t.Dir, name+extension) }
