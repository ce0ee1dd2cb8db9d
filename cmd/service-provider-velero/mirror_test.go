package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// counted is a registry that counts what is written to it, and calls written after each blob.
type counted struct {
	*httptest.Server
	mutex   sync.Mutex
	blobs   int
	written func(count int)
}

func startRegistry(t *testing.T) *counted {
	t.Helper()
	quiet := log.New(io.Discard, "", 0)
	inner := registry.New(registry.Logger(quiet), registry.WithBlobHandler(registry.NewDiskBlobHandler(t.TempDir())))
	started := &counted{written: func(int) {}}
	started.Server = httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		inner.ServeHTTP(response, request)
		if request.Method == http.MethodPut && strings.Contains(request.URL.Path, "/blobs/uploads/") {
			started.mutex.Lock()
			started.blobs++
			count, written := started.blobs, started.written
			started.mutex.Unlock()
			written(count)
		}
	}))
	t.Cleanup(started.Close)
	return started
}

func (c *counted) host() string { return strings.TrimPrefix(c.URL, "http://") }

func (c *counted) count() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.blobs
}

// layers of each artifact; with the configuration, it has one blob more.
const layers, artifacts = 8, 3

// offered fills a registry with large images and returns the ProviderConfig that needs them.
func offered(t *testing.T, source *counted) string {
	t.Helper()
	for _, text := range []string{"/charts/velero-control-plane:0.1.0", "/charts/velero-server:0.1.0", "/velero/velero:v1"} {
		reference, err := name.ParseReference(source.host() + text)
		if err != nil {
			t.Fatal(err)
		}
		if err := remote.Write(reference, imageOf(t, text, 1<<20, layers)); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "providerconfig.yaml")
	content := "apiVersion: velero.services.openmcp.cloud/v1alpha1\nkind: ProviderConfig\nmetadata: {name: default}\nspec:\n" +
		"  charts: {version: 0.1.0, repository: 'oci://" + source.host() + "/charts'}\n" +
		"  availableImages: [{name: velero, versions: [v1], image: '" + source.host() + "/velero/velero'}]\n"
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// imageOf has layers that are its own, and quicker made than random ones.
func imageOf(t *testing.T, seed string, size, count int) v1.Image {
	t.Helper()
	image := empty.Image
	for number := range count {
		content := bytes.Repeat(fmt.Appendf(nil, "%s %d ", seed, number), size/(len(seed)+3))
		var err error
		if image, err = mutate.AppendLayers(image, static.NewLayer(content, types.DockerLayer)); err != nil {
			t.Fatal(err)
		}
	}
	return image
}

func program(t *testing.T, args ...string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	started := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], args...)
	started.Env = append(os.Environ(), asProgram+"=1", "DOCKER_CONFIG="+t.TempDir())
	printed := &strings.Builder{}
	started.Stdout, started.Stderr = printed, printed
	return started, printed
}

// TestMirrorCopyIsKilledInTheMiddle: with no chance to clean up. The next copy brings what is missing and no more.
func TestMirrorCopyIsKilledInTheMiddle(t *testing.T) {
	source, target := startRegistry(t), startRegistry(t)
	config := offered(t, source)
	args := []string{"mirror", "copy", "-c", config, "--to", target.host() + "/m", "--plain-http", "from,to", "--parallel", "1"}
	killed, printed := program(t, args...)
	half := make(chan struct{})
	target.written = func(count int) {
		if count == artifacts*(layers+1)/2 {
			close(half)
		}
	}
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-half:
		_ = killed.Process.Kill()
	case <-time.After(time.Minute):
	}
	err := killed.Wait()
	if status, _ := killed.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() {
		t.Fatalf("it was not killed but ended with %v:\n%s", err, printed)
	}
	// What was sent before the end may still arrive.
	time.Sleep(200 * time.Millisecond)
	before := target.count()
	resumed, printed := program(t, args...)
	if err := resumed.Run(); err != nil {
		t.Fatalf("%v:\n%s", err, printed)
	}
	const all = artifacts * (layers + 1)
	if again := target.count() - before; before < all/2 || again != all-before {
		t.Errorf("%d of %d blobs were there, and %d were written", before, all, again)
	}
	if !strings.Contains(printed.String(), "present") || !strings.Contains(printed.String(), "copied") {
		t.Errorf("it says:\n%s", printed)
	}
}

// TestMirrorCopyNeedsLittleMemory copies several blobs at once, each larger than what may be added to what the program needs without them.
func TestMirrorCopyNeedsLittleMemory(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("this system does not tell how much memory a process needs")
	}
	const blob, blobs = 32 << 20, 4
	source, target := startRegistry(t), startRegistry(t)
	config := offered(t, source)
	args := []string{"mirror", "copy", "-c", config, "--to", target.host() + "/m", "--plain-http", "from,to"}
	small := peakOf(t, args...)
	reference, err := name.ParseReference(source.host() + "/velero/velero:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference, imageOf(t, "large", blob, blobs)); err != nil {
		t.Fatal(err)
	}
	before := target.count()
	needed := peakOf(t, args...)
	if target.count() != before+blobs+1 {
		t.Fatalf("%d blobs were written", target.count()-before)
	}
	t.Logf("at most %d MiB of memory for blobs of %d MiB, %d MiB for small ones", needed>>20, blob*blobs>>20, small>>20)
	if needed > small+blob {
		t.Errorf("it needs %d MiB more for large blobs than for small ones", (needed-small)>>20)
	}
}

// peakOf is the most memory that the program held at a time. The kernel's account at a process's end is of no use: it begins with the parent's.
func peakOf(t *testing.T, args ...string) (peak int) {
	t.Helper()
	running, printed := program(t, args...)
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- running.Wait() }()
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v:\n%s", err, printed)
			}
			return peak
		case <-time.After(5 * time.Millisecond):
			peak = max(peak, highWater(running.Process.Pid))
		}
	}
}

func highWater(pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kilobytes := 0
	_, _ = fmt.Sscan(rest, &kilobytes)
	return kilobytes << 10
}

// TestMirrorFromListToConfig is what an operator does.
func TestMirrorFromListToConfig(t *testing.T) {
	source, target := startRegistry(t), startRegistry(t)
	config := offered(t, source)
	to := []string{"-c", config, "--to", target.host() + "/m"}
	steps := []struct {
		args  []string
		fails bool
		names []string
	}{
		{args: append([]string{"mirror", "list", "-o", "plain"}, to...), names: []string{source.host() + "/velero/velero:v1 " + target.host() + "/m/velero/velero:v1\n"}},
		{args: append([]string{"mirror", "list", "-o", "json"}, to...), names: []string{`"kind": "chart"`, `"source": "` + source.host() + `/charts/velero-server:0.1.0"`}},
		{args: append([]string{"mirror", "config", "--plain-http=to"}, to...), fails: true, names: []string{"tag v1 is not there"}},
		{args: append([]string{"mirror", "copy", "--plain-http=to"}, to...), fails: true, names: []string{"plain HTTP is not allowed"}},
		{args: append([]string{"mirror", "copy", "--plain-http=both"}, to...), fails: true, names: []string{"both", "from", "to"}},
		{args: append([]string{"mirror", "copy", "--platform=arm"}, to...), fails: true, names: []string{"arm", "OS/ARCHITECTURE"}},
		{args: append([]string{"mirror", "copy", "--plain-http=from,to", "--dry-run"}, to...), names: []string{"missing", "sha256:"}},
		{args: append([]string{"mirror", "copy", "--plain-http=from,to"}, to...), names: []string{"copied", target.host() + "/m/velero/velero:v1"}},
		{args: append([]string{"mirror", "config", "--plain-http=to", "--set-pull-secret=cred", "--set-ca-bundle=ca/ca.crt"}, to...), names: []string{
			"image: " + target.host() + "/m/velero/velero", "- v1@sha256:", "velero-server: sha256:", "repository: oci://" + target.host() + "/m/charts", "insecure: true", "name: cred", "key: ca.crt",
		}},
	}
	for _, step := range steps {
		t.Run(strings.Join(step.args[1:4], " "), func(t *testing.T) {
			running, printed := program(t, step.args...)
			if err := running.Run(); (err != nil) != step.fails {
				t.Fatalf("it ends with %v:\n%s", err, printed)
			}
			for _, name := range step.names {
				if !strings.Contains(printed.String(), name) {
					t.Errorf("%q is missing in:\n%s", name, printed)
				}
			}
		})
	}
}
