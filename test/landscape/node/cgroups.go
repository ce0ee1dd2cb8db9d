package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const cgroups = "/sys/fs/cgroup"

// hierarchies are the directories that each hold a tree of cgroups: one with version 2, one for each controller with version 1.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroups, "cgroup.controllers")); err == nil {
		return []string{cgroups}, nil
	}
	entries, err := os.ReadDir(cgroups)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list the cgroup controllers: %w", err)
	}
	var found []string
	for _, entry := range entries {
		if entry.IsDir() { // the others are links to these
			found = append(found, filepath.Join(cgroups, entry.Name()))
		}
	}
	return found, nil
}

// createCgroups makes the cgroup in which a kubelet puts those of its pods: it demands that it is there.
func createCgroups(root string) error {
	trees, err := hierarchies()
	if err != nil {
		return err
	}
	for _, tree := range trees {
		if err := os.MkdirAll(filepath.Join(tree, root), 0o755); err != nil {
			return fmt.Errorf("create the cgroup of a node: %w", err)
		}
		for dir := tree; dir != filepath.Join(tree, root); {
			delegate(dir)
			rest, _ := filepath.Rel(dir, filepath.Join(tree, root))
			dir = filepath.Join(dir, strings.SplitN(rest, "/", 2)[0])
		}
		delegate(filepath.Join(tree, root))
	}
	return nil
}

// delegate lets the cgroups below dir have all controllers that dir has. Version 1 knows nothing of this. Those that cannot be
// had are no error here: the kubelet says which ones it misses.
func delegate(dir string) {
	controllers, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return
	}
	for _, controller := range strings.Fields(string(controllers)) {
		_ = os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+controller), 0o600)
	}
}

// removeCgroups removes all cgroups of a landscape. Its processes have ended, but the kernel may take a moment to notice.
func removeCgroups(root string) error {
	trees, err := hierarchies()
	if err != nil {
		return err
	}
	for _, tree := range trees {
		for attempt := 0; ; attempt++ {
			err := removeTree(filepath.Join(tree, root))
			if err == nil {
				break
			}
			if !errors.Is(err, syscall.EBUSY) || attempt == 100 {
				return fmt.Errorf("remove the cgroups of the nodes: %w", err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	return nil
}

// removeTree removes a directory and those in it. The files in a cgroup come and go with it and cannot be removed.
func removeTree(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeTree(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return &os.PathError{Op: "rmdir", Path: dir, Err: err}
	}
	return nil
}
