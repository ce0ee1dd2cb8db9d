// Package programs provides the real programs the landscape consists of: each is built once from a Go module below
// test/tools and kept outside the checkout, or taken from a directory the user names.
package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Environment variables that name the place of the cache, and a directory with programs to use instead of building them.
const (
	CacheVariable    = "VELERO_LANDSCAPE_CACHE"
	ProvidedVariable = "VELERO_LANDSCAPE_PROGRAMS"
)

// Shelf is where programs are looked up.
type Shelf struct {
	// Checkout is the root of this project's sources.
	Checkout string
	// Cache holds what was built, outside the checkout.
	Cache string
	// Provided, when set, is a directory that holds all programs; nothing is built then.
	Provided string
	// Progress is told what is going on, one line a call; nil is silent.
	Progress func(line string)
}

// Default is the shelf of the checkout the working directory lies in, as the environment configures it.
func Default() (Shelf, error) {
	checkout, err := Checkout()
	if err != nil {
		return Shelf{}, err
	}
	cache, err := CacheDir()
	if err != nil {
		return Shelf{}, err
	}
	return Shelf{Checkout: checkout, Cache: cache, Provided: os.Getenv(ProvidedVariable)}, nil
}

// CacheDir is the directory in which the project keeps what should outlive a checkout.
func CacheDir() (string, error) {
	if dir := os.Getenv(CacheVariable); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory, set %s: %w", CacheVariable, err)
	}
	return filepath.Join(dir, "service-provider-velero"), nil
}

// Checkout finds the root of the project's sources from the working directory upwards.
func Checkout() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "test", "tools", kubernetes, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not inside a checkout of service-provider-velero")
		}
		dir = parent
	}
}

// Find returns the path of one program of the default shelf, building it if it is not there yet.
func Find(ctx context.Context, name string) (string, error) {
	shelf, err := Default()
	if err != nil {
		return "", err
	}
	return shelf.Find(ctx, name)
}

// Find returns the path of one program, building it if it is not there yet.
func (s Shelf) Find(ctx context.Context, name string) (string, error) {
	paths, err := s.All(ctx, name)
	return paths[name], err
}

// All returns the paths of the named programs, building those that are not there yet one after the other.
func (s Shelf) All(ctx context.Context, names ...string) (map[string]string, error) {
	if s.Provided != "" {
		return s.provided(names)
	}
	paths, missing, err := s.cached(ctx, names)
	if err != nil {
		return nil, err
	}
	for i, p := range missing {
		started := time.Now()
		s.report("building %s (%d/%d) ...", p.name, i+1, len(missing))
		if err := s.build(ctx, p, paths[p.name]); err != nil {
			return nil, err
		}
		s.report("built %s in %s", p.name, time.Since(started).Round(time.Second))
	}
	return paths, nil
}

func (s Shelf) provided(names []string) (map[string]string, error) {
	paths := map[string]string{}
	var absent []string
	for _, name := range names {
		path := filepath.Join(s.Provided, name)
		if !executable(path) {
			absent = append(absent, name)
		}
		paths[name] = path
	}
	if len(absent) > 0 {
		return nil, fmt.Errorf("%s lacks %s", s.Provided, strings.Join(absent, ", "))
	}
	return paths, nil
}

func (s Shelf) cached(ctx context.Context, names []string) (map[string]string, []program, error) {
	paths := map[string]string{}
	var missing []program
	for _, name := range names {
		p, err := lookup(name)
		if err != nil {
			return nil, nil, err
		}
		key, err := s.key(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		paths[name] = filepath.Join(s.Cache, "programs", key, name)
		if !executable(paths[name]) {
			missing = append(missing, p)
		}
	}
	return paths, missing, nil
}

func (s Shelf) report(format string, args ...any) {
	if s.Progress != nil {
		s.Progress(fmt.Sprintf(format, args...))
	}
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
