package fluxgen_test

import (
	"time"

	"github.com/openmcp-project/service-provider-velero/fluxgen"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func target() fluxgen.Target {
	target, err := fluxgen.NewTarget("tenant-kubeconfig", "kubeconfig", "app--1")
	if err != nil {
		panic(err)
	}
	return target
}

// minimal is the least that can be rendered.
func minimal() fluxgen.Release {
	return fluxgen.Release{
		Name:      "app",
		Namespace: "mcp--1",
		Chart:     fluxgen.Chart{Repository: "oci://registry.example/charts", Name: "app", Version: "1.2.3"},
		Target:    target(),
		Interval:  10 * time.Minute,
		Timeout:   5 * time.Minute,
	}
}

// everything has every field set.
func everything() fluxgen.Release {
	release := minimal()
	release.Labels = map[string]string{"app.kubernetes.io/managed-by": "provider.example", "provider.example/instance": "1"}
	release.Shard = "shard1"
	release.Chart = fluxgen.Chart{
		Repository: "oci://registry.example:5000/team/charts", Name: "app", Version: "1.2.3-rc.1+build.5", Digest: digest, Insecure: true,
		PullSecret: "pull", CertSecret: "ca", ProxySecret: "proxy", CosignSecret: "cosign", Credentials: "4711",
	}
	release.Values = map[string]any{"replicas": int64(1), "image": "registry.example/app:v1 <&>", "nested": map[string]any{"list": []any{"b", "a"}}}
	release.ValuesSecrets = []string{"values-1", "values-2"}
	release.Interval = 90 * time.Second
	release.Policy = fluxgen.Policy{CreateNamespace: true, Adopt: true, Wait: true}
	return release
}

func with(change func(*fluxgen.Release)) fluxgen.Release {
	release := everything()
	change(&release)
	return release
}

// cases have a golden file each.
func cases() map[string]fluxgen.Release {
	return map[string]fluxgen.Release{
		"minimal":    minimal(),
		"everything": everything(),
		"tag-with-build-metadata": with(func(release *fluxgen.Release) {
			release.Chart.Digest = ""
		}),
		"shared-target": with(func(release *fluxgen.Release) {
			release.Policy = fluxgen.Policy{Wait: true}
		}),
		"own-target": with(func(release *fluxgen.Release) {
			release.Policy = fluxgen.Policy{CreateNamespace: true, Adopt: true}
		}),
	}
}
