package velero

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

const backupName = "all"

// backupAndRestore is what a Velero is there for. Each part goes on from where the one before it ended.
func backupAndRestore(who tenant) features.Feature {
	var before map[string]any
	return features.New("backup and restore").
		Setup(func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			before = inventory(t, who.controlPlane(t))
			return ctx
		}).
		Assess("a storage location becomes Available", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			who.openBucket(t)
			return ctx
		}).
		Assess("a backup is Completed without an error", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			who.backUp(t)
			return ctx
		}).
		Assess("the object store has all that is the tenant's and nothing of Velero's", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			assertComplete(t, contentOf(t, who.controlPlane(t), backupName))
			return ctx
		}).
		Assess("a restore brings everything back as it was", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			who.assertRestores(t, before)
			return ctx
		}).
		Feature()
}

// upgrade is a tenant with backups who goes on to a newer Velero.
func upgrade(who tenant, version string) features.Feature {
	var before map[string]any
	return features.New("upgrade to "+version).
		Setup(func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			before = inventory(t, who.controlPlane(t))
			who.openBucket(t)
			who.backUp(t)
			return ctx
		}).
		Assess("the Velero becomes Ready again", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			velero := &v1alpha1.Velero{}
			eventually(t, done, "the version is changed", func(ctx context.Context) error {
				if err := onboarding.Get(ctx, who.NamespacedName, velero); err != nil {
					return err
				}
				velero.Spec.Version = version
				return onboarding.Update(ctx, velero)
			})
			who.awaitReady(t)
			who.assertServerRuns(t, version)
			return ctx
		}).
		Assess("what the old version backed up is restored by the new one", func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
			assertComplete(t, contentOf(t, who.controlPlane(t), backupName))
			who.assertRestores(t, before)
			return ctx
		}).
		Feature()
}

func (w tenant) backUp(t *testing.T) {
	t.Helper()
	// Without being asked, Velero takes objects without a namespace along only when no namespace is left out, and its own is.
	backup := resource("Backup", backupName, map[string]any{"includeClusterResources": true})
	order(t, w.controlPlane(t), backup, "Completed")
	without(t, backup, "errors", "warnings")
}

// assertRestores deletes all that the tenant has and brings it back.
func (w tenant) assertRestores(t *testing.T, before map[string]any) {
	t.Helper()
	c := w.controlPlane(t)
	moveOut(t, c)
	restore := resource("Restore", "all", map[string]any{"backupName": backupName})
	order(t, c, restore, "Completed")
	without(t, restore, "errors")
	if diff := cmp.Diff(before, inventory(t, c)); diff != "" {
		t.Errorf("the restored objects differ (-before +after):\n%s", diff)
	}
}

// assertComplete looks for all that the tenant has among the files of a backup, and for what has no place there.
func assertComplete(t *testing.T, files []string) {
	t.Helper()
	var wanted []string
	for i := range customResources {
		wanted = append(wanted, fmt.Sprintf("resources/cooks.kitchen.example/namespaces/%s/cook-%02d.json", teams[i%len(teams)], i))
	}
	for _, namespace := range teams {
		for _, kind := range []string{"configmaps", "secrets", "serviceaccounts", "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io"} {
			wanted = append(wanted, fmt.Sprintf("resources/%s/namespaces/%s/menu.json", kind, namespace))
		}
		wanted = append(wanted, fmt.Sprintf("resources/namespaces/cluster/%s.json", namespace))
	}
	wanted = append(wanted, "resources/customresourcedefinitions.apiextensions.k8s.io/cluster/cooks.kitchen.example.json",
		"resources/clusterroles.rbac.authorization.k8s.io/cluster/cook-watcher.json",
		"resources/clusterrolebindings.rbac.authorization.k8s.io/cluster/cook-watchers.json")
	for _, file := range wanted {
		if !slices.Contains(files, file) {
			t.Errorf("the backup lacks %s", file)
		}
	}
	for _, file := range files {
		if strings.Contains(file, "/namespaces/velero/") || strings.HasSuffix(file, "resources/namespaces/cluster/velero.json") {
			t.Errorf("the backup holds %s", file)
		}
	}
}
