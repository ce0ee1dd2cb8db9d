package programs

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// program is one binary of the landscape and where it is built from.
type program struct {
	name string // of the file
	tool string // the module below test/tools
	path string // the main package
}

// catalog lists every program the landscape and its tests run, in the order in which they are built.
var catalog = []program{
	{"etcd", "etcd", "go.etcd.io/etcd/server/v3"},
	{"kube-apiserver", kubernetes, "k8s.io/kubernetes/cmd/kube-apiserver"},
	{"kube-controller-manager", kubernetes, "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{"kube-scheduler", kubernetes, "k8s.io/kubernetes/cmd/kube-scheduler"},
	{"kubectl", kubernetes, "k8s.io/kubernetes/cmd/kubectl"},
	{"source-controller", flux, "github.com/fluxcd/source-controller"},
	{"helm-controller", flux, "github.com/fluxcd/helm-controller"},
	{"openmcp-operator", "openmcp", "github.com/openmcp-project/openmcp-operator/cmd/openmcp-operator"},
	{"registry", "registry", "github.com/distribution/distribution/v3/cmd/registry"},
	{"helm", "helm", "helm.sh/helm/v4/cmd/helm"},
	{"crane", "crane", "github.com/google/go-containerregistry/cmd/crane"},
	{"kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok"},
}

const (
	kubernetes = "kubernetes"
	flux       = "flux"
)

// Names lists every program there is.
func Names() []string {
	names := make([]string, 0, len(catalog))
	for _, p := range catalog {
		names = append(names, p.name)
	}
	return names
}

func lookup(name string) (program, error) {
	for _, p := range catalog {
		if p.name == name {
			return p, nil
		}
	}
	return program{}, fmt.Errorf("no program %q: known are %s", name, strings.Join(Names(), ", "))
}

// KubernetesVersion is the version of Kubernetes the checkout's tools module names, for example v1.36.3.
func KubernetesVersion(checkout string) (string, error) {
	return requiredVersion(filepath.Join(checkout, "test", "tools", kubernetes, "go.mod"), "k8s.io/kubernetes")
}

// requiredVersion reads the version of a module out of a go.mod file.
func requiredVersion(gomod, module string) (string, error) {
	file, err := os.Open(gomod)
	if err != nil {
		return "", fmt.Errorf("read the version of %s: %w", module, err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "require "))
		if len(fields) >= 2 && fields[0] == module && strings.HasPrefix(fields[1], "v") {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("%s does not require %s", gomod, module)
}

// ldflags are the linker flags of one program.
func ldflags(checkout string, p program) (string, error) {
	const strip = "-s -w"
	if p.tool != kubernetes {
		return strip, nil
	}
	version, err := KubernetesVersion(checkout)
	if err != nil {
		return "", err
	}
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 3 {
		return "", fmt.Errorf("kubernetes version %q is not of the form v1.2.3", version)
	}
	// Without these the server reports v0.0.0 and charts with a kubeVersion are refused.
	const pkg = "-X k8s.io/component-base/version."
	return fmt.Sprintf("%s %sgitVersion=%s %sgitMajor=%s %sgitMinor=%s", strip, pkg, version, pkg, parts[0], pkg, parts[1]), nil
}
