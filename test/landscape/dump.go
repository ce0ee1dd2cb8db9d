package landscape

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/openmcp-project/service-provider-velero/test/landscape/apiserver"
)

// Dump writes all objects of all clusters, without the values of Secrets, and all logs into a directory. It goes as far as it
// can: the landscape it is called for is one in which something failed.
func (l *Landscape) Dump(ctx context.Context, dir string) error {
	names, err := apiserver.List(l.site)
	failures := append(make([]error, 0, len(names)+2), err, os.CopyFS(filepath.Join(dir, "logs"), os.DirFS(l.site.Path("logs"))))
	for _, name := range names {
		server, found, err := apiserver.Open(l.site, name)
		if err == nil && found {
			err = dumpServer(ctx, server, filepath.Join(dir, name+".yaml"))
		}
		failures = append(failures, err)
	}
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("dump the landscape: %w", err)
	}
	return nil
}

func dumpServer(ctx context.Context, server apiserver.Server, file string) error {
	config, err := server.RESTConfig()
	if err != nil {
		return err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	// A group that does not answer must not hide the others.
	lists, failure := kinds.ServerPreferredResources()
	var out bytes.Buffer
	for _, list := range lists {
		for _, kind := range list.APIResources {
			if !slices.Contains(kind.Verbs, "list") {
				continue
			}
			failure = errors.Join(failure, dumpKind(ctx, objects, list.GroupVersion, kind, &out))
		}
	}
	return errors.Join(failure, os.WriteFile(file, out.Bytes(), 0o600))
}

func dumpKind(ctx context.Context, objects dynamic.Interface, groupVersion string, kind metav1.APIResource, out *bytes.Buffer) error {
	gv, err := schema.ParseGroupVersion(groupVersion)
	if err != nil {
		return err
	}
	list, err := objects.Resource(gv.WithResource(kind.Name)).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list %s: %w", kind.Name, err)
	}
	for _, object := range list.Items {
		object.SetManagedFields(nil)
		withhold(&object)
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			return err
		}
		out.WriteString("---\n")
		out.Write(content)
	}
	return nil
}

// withhold replaces the values of a Secret by their lengths.
func withhold(object *unstructured.Unstructured) {
	data, found, err := unstructured.NestedMap(object.Object, "data")
	if object.GetKind() != "Secret" || !found || err != nil {
		return
	}
	for key, value := range data {
		data[key] = fmt.Sprintf("(%d characters)", len(fmt.Sprint(value)))
	}
	object.Object["data"] = data
}
