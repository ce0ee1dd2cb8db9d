package node

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

const (
	criSocket   = "/run/containerd/containerd.sock"
	kubeletPort = 10250
)

// kubeletConfig is a KubeletConfiguration. A small machine that is full must not make pods go, and nothing may be reserved.
func kubeletConfig(inside inside) ([]byte, error) {
	content, err := yaml.Marshal(map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"address": inside.Address, "port": kubeletPort, "healthzPort": 0,
		"authentication":           map[string]any{"anonymous": map[string]any{"enabled": false}, "x509": map[string]any{"clientCAFile": inside.CA}},
		"authorization":            map[string]any{"mode": "Webhook"},
		"containerRuntimeEndpoint": "unix://" + criSocket,
		"cgroupDriver":             "cgroupfs", "cgroupRoot": inside.CgroupRoot, "failCgroupV1": false, "failSwapOn": false,
		"enforceNodeAllocatable":      []string{},
		"evictionHard":                map[string]string{"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%"},
		"imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99, "serializeImagePulls": false,
		"resolvConf": "", // there is no DNS, and that of the machine is none of the pods' business
		// Changed Secrets reach pods within seconds instead of a minute or more.
		"syncFrequency": "5s",
	})
	if err != nil {
		return nil, fmt.Errorf("configure the kubelet of %s: %w", inside.Name, err)
	}
	return content, nil
}

func containerdConfig(s *site.Site, inside inside) []byte {
	return fmt.Appendf(nil, containerdTemplate, criSocket, inside.Pause, filepath.Join(inside.Dir, "registries"),
		filepath.Dir(s.Programs["bridge"]), filepath.Dir(s.Programs["host-local"]), filepath.Join(inside.Dir, "network"),
		s.Programs["containerd-shim-runc-v2"], s.Programs["runc"])
}

// Where the plugin for the kubelet cannot be loaded containerd is to end and say why, instead of working without it. Without
// restrict_oom_score_adj no container starts where root lacks CAP_SYS_RESOURCE.
const containerdTemplate = `version = 3
imports = []
required_plugins = ['io.containerd.grpc.v1.cri', 'io.containerd.cri.v1.runtime', 'io.containerd.cri.v1.images']
[grpc]
  address = %q
[plugins.'io.containerd.internal.v1.opt']
  path = '/var/lib/containerd/opt'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = %q
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = %q
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  disable_apparmor = true
  tolerate_missing_hugetlb_controller = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = [%q, %q]
  conf_dir = %q
  use_internal_loopback = true
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
  runtime_path = %q
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  BinaryName = %q
`

// networkConfig gives each pod an address behind a bridge in the node.
func networkConfig(pods string) ([]byte, error) {
	content, err := json.Marshal(map[string]any{
		"cniVersion": "1.0.0", "name": "pods",
		"plugins": []any{map[string]any{
			"type": "bridge", "bridge": "pods", "isGateway": true,
			"ipam": map[string]any{
				"type": "host-local", "ranges": []any{[]any{map[string]string{"subnet": pods}}}, "routes": []any{map[string]string{"dst": "0.0.0.0/0"}},
			},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("configure the network of pods: %w", err)
	}
	return content, nil
}

func registryConfig(address string) []byte {
	return fmt.Appendf(nil, "server = \"http://%[1]s\"\n[host.\"http://%[1]s\"]\n  capabilities = [\"pull\", \"resolve\"]\n", address)
}
