package programs

import (
	"bufio"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// program is one binary of the landscape and where it is built from.
type program struct {
	name string // of the file
	tool string // the module below test/tools
	path string // the main package
	// tags and needs are for what C code is part of: the build tags, and the packages the machine must have for it.
	tags, needs string
}

// catalog lists every program that each landscape runs, in the order in which they are built.
var catalog = []program{
	{name: "etcd", tool: "etcd", path: "go.etcd.io/etcd/server/v3"},
	{name: "kube-apiserver", tool: kubernetes, path: "k8s.io/kubernetes/cmd/kube-apiserver"},
	{name: "kube-controller-manager", tool: kubernetes, path: "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{name: "kube-scheduler", tool: kubernetes, path: "k8s.io/kubernetes/cmd/kube-scheduler"},
	{name: "kubectl", tool: kubernetes, path: "k8s.io/kubernetes/cmd/kubectl"},
	{name: "source-controller", tool: flux, path: "github.com/fluxcd/source-controller"},
	{name: "helm-controller", tool: flux, path: "github.com/fluxcd/helm-controller"},
	{name: "openmcp-operator", tool: "openmcp", path: "github.com/openmcp-project/openmcp-operator/cmd/openmcp-operator"},
	{name: "registry", tool: "registry", path: "github.com/distribution/distribution/v3/cmd/registry"},
	{name: "helm", tool: "helm", path: "helm.sh/helm/v4/cmd/helm"},
	{name: "crane", tool: "crane", path: "github.com/google/go-containerregistry/cmd/crane"},
	{name: "kwok", tool: "kwok", path: "sigs.k8s.io/kwok/cmd/kwok"},
}

// nodeCatalog lists what a landscape with real nodes has besides: the nodes, and an object store for what runs on them.
var nodeCatalog = []program{
	{name: "kubelet", tool: kubernetes, path: "k8s.io/kubernetes/cmd/kubelet"},
	{name: "containerd", tool: containerd, path: "github.com/containerd/containerd/v2/cmd/containerd"},
	{name: "containerd-shim-runc-v2", tool: containerd, path: "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"},
	{name: "runc", tool: "runc", path: "github.com/opencontainers/runc", tags: "seccomp", needs: "gcc, pkg-config and libseccomp-dev"},
	{name: "bridge", tool: "cni", path: "github.com/containernetworking/plugins/plugins/main/bridge"},
	{name: "host-local", tool: "cni", path: "github.com/containernetworking/plugins/plugins/ipam/host-local"},
	{name: "versitygw", tool: "versitygw", path: "github.com/versity/versitygw/cmd/versitygw"},
}

// veleroCatalog lists what the images hold that a Velero on a real node runs.
var veleroCatalog = []program{
	{name: "velero", tool: "velero", path: veleroPackage},
	{name: "velero-1.14", tool: "velero-1.14", path: veleroPackage},
	{name: "velero-plugin-for-aws", tool: awsPlugin, path: awsModule + "/velero-plugin-for-aws"},
	{name: "cp-plugin", tool: awsPlugin, path: awsModule + "/hack/cp-plugin"},
}

const (
	kubernetes = "kubernetes"
	flux       = "flux"
	containerd = "containerd"
	awsPlugin  = "velero-plugin-for-aws"

	veleroModule  = "github.com/vmware-tanzu/velero"
	veleroPackage = veleroModule + "/cmd/velero"
	awsModule     = "github.com/vmware-tanzu/velero-plugin-for-aws"
)

// Names lists the programs of every landscape.
func Names() []string { return namesOf(catalog) }

// NodeNames lists the programs that a landscape with real nodes has besides.
func NodeNames() []string { return namesOf(nodeCatalog) }

// VeleroNames lists the programs that the images of Velero and its plugins hold.
func VeleroNames() []string { return namesOf(veleroCatalog) }

func namesOf(list []program) []string {
	names := make([]string, 0, len(list))
	for _, p := range list {
		names = append(names, p.name)
	}
	return names
}

func lookup(name string) (program, error) {
	all := slices.Concat(catalog, nodeCatalog, veleroCatalog)
	for _, p := range all {
		if p.name == name {
			return p, nil
		}
	}
	return program{}, fmt.Errorf("no program %q: known are %s", name, strings.Join(namesOf(all), ", "))
}

// Version is the version of the module that a program is built from, for example v1.18.3.
func Version(checkout, name string) (string, error) {
	p, err := lookup(name)
	if err != nil {
		return "", err
	}
	for module := p.path; module != "."; module = path.Dir(module) {
		if version, err := requiredVersion(filepath.Join(checkout, "test", "tools", p.tool, "go.mod"), module); err == nil {
			return version, nil
		}
	}
	return "", fmt.Errorf("test/tools/%s does not require the module of %s", p.tool, name)
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
	switch {
	case p.path == veleroPackage:
		version, err := Version(checkout, p.name)
		return strip + " -X " + veleroModule + "/pkg/buildinfo.Version=" + version, err
	case p.tool != kubernetes:
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
