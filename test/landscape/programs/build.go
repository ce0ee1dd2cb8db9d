package programs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// key names the directory of a program: its tools module plus a hash over everything that decides what the binary is.
func (s Shelf) key(ctx context.Context, p program) (string, error) {
	flags, err := ldflags(s.Checkout, p)
	if err != nil {
		return "", err
	}
	version, err := s.output(ctx, p.tool, "env", "GOVERSION", "GOOS", "GOARCH")
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s\n%s\n", strings.Join(strings.Fields(version), " "), flags)
	if p.tags != "" {
		fmt.Fprintln(sum, p.tags)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(s.module(p.tool), name))
		if err != nil {
			return "", fmt.Errorf("read the tools module %s: %w", p.tool, err)
		}
		sum.Write(content)
	}
	return p.tool + "-" + hex.EncodeToString(sum.Sum(nil))[:12], nil
}

// build puts a program at target. Of two builders the second waits and finds the work done.
func (s Shelf) build(ctx context.Context, p program, target string) error {
	unlock, err := s.lock(target)
	if err != nil {
		return err
	}
	defer unlock()
	if executable(target) {
		return nil
	}
	flags, err := ldflags(s.Checkout, p)
	if err != nil {
		return err
	}
	// Built beside the target, then renamed: a build that is interrupted leaves nothing that looks finished.
	partial := target + ".partial"
	if _, err := s.goCommand(ctx, p.tool, p.needs != "", "build", "-tags", p.tags, "-ldflags", flags, "-o", partial, p.path); err != nil {
		if p.needs != "" {
			return fmt.Errorf("build %s, which needs %s: %w", p.name, p.needs, err)
		}
		return fmt.Errorf("build %s: %w", p.name, err)
	}
	return os.Rename(partial, target)
}

// lock takes the build lock that lies beside target.
func (s Shelf) lock(target string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return nil, fmt.Errorf("create the program cache: %w", err)
	}
	file, err := os.OpenFile(target+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the program cache: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		s.report("waiting for another process that builds %s ...", filepath.Base(target))
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
			file.Close()
			return nil, fmt.Errorf("lock the program cache: %w", err)
		}
	}
	return func() { file.Close() }, nil
}

// FluxCRDs returns the files with the CustomResourceDefinitions of the Flux controllers in the tools module. They lie in
// the root modules of the controllers only, not in the API modules.
func (s Shelf) FluxCRDs(ctx context.Context) ([]string, error) {
	var files []string
	for _, module := range []string{"github.com/fluxcd/source-controller", "github.com/fluxcd/helm-controller"} {
		if _, err := s.output(ctx, flux, "mod", "download", module); err != nil {
			return nil, fmt.Errorf("fetch the CRDs of %s: %w", module, err)
		}
		dir, err := s.output(ctx, flux, "list", "-m", "-f", "{{.Dir}}", module)
		if err != nil {
			return nil, fmt.Errorf("find the CRDs of %s: %w", module, err)
		}
		found, err := filepath.Glob(filepath.Join(strings.TrimSpace(dir), "config", "crd", "bases", "*.yaml"))
		if err != nil || len(found) == 0 {
			return nil, fmt.Errorf("module %s holds no CRDs", module)
		}
		files = append(files, found...)
	}
	return files, nil
}

func (s Shelf) module(tool string) string {
	return filepath.Join(s.Checkout, "test", "tools", tool)
}

// output runs go in a tools module and returns what it prints.
func (s Shelf) output(ctx context.Context, tool string, args ...string) (string, error) {
	return s.goCommand(ctx, tool, false, args...)
}

func (s Shelf) goCommand(ctx context.Context, tool string, cgo bool, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = s.module(tool)
	// A user's workspace or flags must not decide what is built: the key would not know.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if cgo {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
	}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Start()
	if err == nil {
		// The compilers that it starts inherit this, so that a long build leaves the machine usable.
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, cmd.Process.Pid, background)
		err = cmd.Wait()
	}
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", args[0], err, tail(stderr.String(), 2000))
	}
	return stdout.String(), nil
}

// background is how nice builds are to everything else on the machine.
const background = 10

func tail(text string, limit int) string {
	text = strings.TrimSpace(text)
	if len(text) > limit {
		return "... " + text[len(text)-limit:]
	}
	return text
}
