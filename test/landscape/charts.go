package landscape

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// ChartRepository is where PublishCharts puts charts, as a ProviderConfig names it.
func (l *Landscape) ChartRepository() string { return l.RepositoryAt("charts") }

// RepositoryAt is the path in the landscape's registry, as a ProviderConfig names it.
func (l *Landscape) RepositoryAt(path string) string { return "oci://" + l.Registry + "/" + path }

// PublishCharts packages the charts in the given directories of the checkout and pushes them to the registry.
func (l *Landscape) PublishCharts(ctx context.Context, dirs ...string) error {
	for _, dir := range dirs {
		if err := l.PublishChart(ctx, dir, ""); err != nil {
			return err
		}
	}
	return nil
}

// PublishChart publishes one chart, under another version than its own unless that is empty.
func (l *Landscape) PublishChart(ctx context.Context, dir, version string) error {
	return l.push(ctx, dir, version, l.ChartRepository(), "--plain-http")
}

// PublishChartAt publishes one chart at another path of the registry.
func (l *Landscape) PublishChartAt(ctx context.Context, dir, version, path string) error {
	return l.push(ctx, dir, version, l.RepositoryAt(path), "--plain-http")
}

// push packages a chart and pushes it to a repository, with the flags that its registry needs.
func (l *Landscape) push(ctx context.Context, dir, version, repository string, flags ...string) error {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(l.site.Checkout, dir)
	}
	packages, err := os.MkdirTemp(l.site.Dir, "chart-")
	if err != nil {
		return fmt.Errorf("publish chart %s: %w", dir, err)
	}
	defer os.RemoveAll(packages)
	args := []string{"package", dir, "--destination", packages}
	if version != "" {
		args = append(args, "--version", version)
	}
	if err := l.helm(ctx, args...); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(packages, "*.tgz"))
	if err != nil || len(files) != 1 {
		return errors.Join(fmt.Errorf("helm made no package of %s", dir), err)
	}
	if err := l.helm(ctx, append([]string{"push", files[0], repository}, flags...)...); err != nil {
		return err
	}
	l.Report("published %s to %s", filepath.Base(files[0]), repository)
	return nil
}

// helm runs the Helm command with a home of its own, so that a user's configuration decides nothing.
func (l *Landscape) helm(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, l.site.Programs["helm"], args...)
	cmd.Env = os.Environ()
	for _, kind := range []string{"CACHE", "CONFIG", "DATA"} {
		cmd.Env = append(cmd.Env, "HELM_"+kind+"_HOME="+l.site.Path("helm", kind))
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("helm %s: %w: %s", args[0], err, out)
	}
	return nil
}
