package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProcessIsRecordedAndStopped(t *testing.T) {
	table := Table{Dir: t.TempDir()}
	record := start(t, table, Spec{Name: "sleeper", Program: "sleep", Args: []string{"60"}})
	found, ok, err := table.Lookup("sleeper")
	if err != nil || !ok {
		t.Fatalf("Lookup: found %v, %v", ok, err)
	}
	if !found.Alive() || found.PID != record.PID {
		t.Errorf("the record does not name the process: %+v", found)
	}
	if _, err := table.Start(found.Spec); err == nil || !strings.Contains(err.Error(), "already runs") {
		t.Errorf("a second start gave %v", err)
	}
	if err := table.Stop(t.Context(), "sleeper"); err != nil {
		t.Fatal(err)
	}
	if record.Alive() {
		t.Error("the process still runs")
	}
	if err := table.Stop(t.Context(), "sleeper"); err != nil {
		t.Errorf("stopping what is not there: %v", err)
	}
}

func TestProcessThatIgnoresTermIsKilled(t *testing.T) {
	table := Table{Dir: t.TempDir()}
	record := start(t, table, Spec{Name: "deaf", Program: "sh", Args: []string{"-c", "trap '' TERM; sleep 60 & wait; sleep 60"}})
	time.Sleep(100 * time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := table.Stop(ctx, "deaf"); err != nil {
		t.Fatal(err)
	}
	if record.Alive() {
		t.Error("the process survived")
	}
}

func TestRecycledPidIsNotTouched(t *testing.T) {
	table := Table{Dir: t.TempDir()}
	stranger := exec.Command("sleep", "60")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stranger.Process.Kill(); _ = stranger.Wait() })
	record := Record{Spec: Spec{Name: "old"}, PID: stranger.Process.Pid, Born: "1"}
	if err := table.write(record); err != nil {
		t.Fatal(err)
	}
	if record.Alive() {
		t.Error("a process with another start time counts as ours")
	}
	if err := table.StopAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := stranger.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the stranger was ended: %v", err)
	}
}

func TestStagesEndFromTheHighestDown(t *testing.T) {
	table := Table{Dir: t.TempDir()}
	for _, record := range []Record{{Spec: Spec{Name: "etcd", Stage: 1}}, {Spec: Spec{Name: "operator", Stage: 9}}, {Spec: Spec{Name: "apiserver", Stage: 2}}} {
		if err := table.write(record); err != nil {
			t.Fatal(err)
		}
	}
	records, err := table.Records()
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, 0, len(records))
	for _, record := range records {
		names = append(names, record.Name)
	}
	if diff := cmp.Diff([]string{"operator", "apiserver", "etcd"}, names); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestProcessThatCannotStartSaysWhy(t *testing.T) {
	table := Table{Dir: t.TempDir()}
	_, err := table.Start(Spec{Name: "absent", Program: "/does/not/exist", Log: filepath.Join(t.TempDir(), "log")})
	if err == nil || !strings.Contains(err.Error(), "start absent") {
		t.Errorf("got %v", err)
	}
}

func TestAwaitTellsWhyAProcessIsNotReady(t *testing.T) {
	table := Table{Dir: t.TempDir()}
	notYet := func(context.Context) error { return errors.New("not yet") }
	dying := start(t, table, Spec{Name: "dying", Program: "sh", Args: []string{"-c", "sleep 0.2; echo no such flag"}})
	err := dying.Await(t.Context(), time.Minute, notYet)
	if err == nil || !strings.Contains(err.Error(), "dying has ended") || !strings.Contains(err.Error(), "no such flag") {
		t.Errorf("a process that ended gives %v", err)
	}
	slow := start(t, table, Spec{Name: "slow", Program: "sleep", Args: []string{"60"}})
	err = slow.Await(t.Context(), 200*time.Millisecond, notYet)
	if err == nil || !strings.Contains(err.Error(), "not ready after 200ms: not yet") {
		t.Errorf("a process that is slow gives %v", err)
	}
	if err := slow.Await(t.Context(), time.Minute, func(context.Context) error { return nil }); err != nil {
		t.Errorf("a process that is ready gives %v", err)
	}
}

func TestLogTailNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "some.log")
	if err := os.WriteFile(path, []byte(strings.Repeat("x", 5000)+"\nthe end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := LogTail(path)
	if !strings.Contains(got, path) || !strings.HasSuffix(got, "the end") || len(got) > 4000 {
		t.Errorf("got %d characters: %s", len(got), got)
	}
}

func start(t *testing.T, table Table, spec Spec) Record {
	t.Helper()
	spec.Log = filepath.Join(t.TempDir(), spec.Name+".log")
	record, err := table.Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = table.Kill(context.Background(), spec.Name) })
	return record
}
