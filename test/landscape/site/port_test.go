package site

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

func TestFreePortsAreNeverGivenTwice(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	const askers, each = 8, 50
	var mutex sync.Mutex
	var wait sync.WaitGroup
	given := map[int]bool{}
	for range askers {
		wait.Go(func() {
			for range each {
				port, err := FreePort()
				mutex.Lock()
				if err != nil || given[port] || port < firstPort || port > lastPort {
					t.Errorf("port %d, given before: %t, error %v", port, given[port], err)
				}
				given[port] = true
				mutex.Unlock()
			}
		})
	}
	wait.Wait()
}

func TestReservationsEnd(t *testing.T) {
	file := filepath.Join(t.TempDir(), "20000")
	for _, want := range []bool{false, true} {
		if taken, err := reserve(file); err != nil || taken != want {
			t.Fatalf("taken is %t, want %t; %v", taken, want, err)
		}
	}
	old := time.Now().Add(-2 * reserved)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	if taken, err := reserve(file); err != nil || taken {
		t.Fatalf("an old reservation is taken: %t; %v", taken, err)
	}
}
