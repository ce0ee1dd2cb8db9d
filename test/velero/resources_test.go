package velero

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// resource is an object of Velero's API.
func resource(kind, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetAPIVersion("velero.io/v1")
	object.SetKind(kind)
	object.SetNamespace(veleroNamespace)
	object.SetName(name)
	return object
}

// order creates an object of Velero's API and waits until Velero has set its phase.
func order(t *testing.T, c client.Client, object *unstructured.Unstructured, phase string) {
	t.Helper()
	must(t, c.Create(t.Context(), object))
	eventually(t, done, fmt.Sprintf("%s %s is %s", object.GetKind(), object.GetName(), phase), func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedString(object.Object, "status", "phase"); got != phase {
			return fmt.Errorf("status %v", object.Object["status"])
		}
		return nil
	})
}

// without fails the test when Velero counted errors or warnings.
func without(t *testing.T, object *unstructured.Unstructured, counts ...string) {
	t.Helper()
	for _, name := range counts {
		if count, _, _ := unstructured.NestedInt64(object.Object, "status", name); count != 0 {
			t.Errorf("%s %s has %d %s: %v", object.GetKind(), object.GetName(), count, name, object.Object["status"])
		}
	}
}

// openBucket is what a tenant does to have backups in the object store.
func (w tenant) openBucket(t *testing.T) {
	t.Helper()
	c := w.controlPlane(t)
	store := world.ObjectStore()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: veleroNamespace, Name: "bucket"}}
	secret.StringData = map[string]string{
		"cloud": fmt.Sprintf("[default]\naws_access_key_id=%s\naws_secret_access_key=%s\n", store.AccessKey, store.SecretKey),
	}
	must(t, c.Create(t.Context(), secret))
	order(t, c, resource("BackupStorageLocation", "default", map[string]any{
		"provider": "aws", "default": true,
		"objectStorage": map[string]any{"bucket": store.Bucket, "prefix": w.Name},
		"credential":    map[string]any{"name": secret.Name, "key": "cloud"},
		"config": map[string]any{
			"region": store.Region, "s3ForcePathStyle": "true", "s3Url": store.URL, "checksumAlgorithm": "",
		},
	}), "Available")
}

// contentOf downloads a backup from the object store, the way Velero's command does, and lists the files in it.
func contentOf(t *testing.T, c client.Client, backup string) []string {
	t.Helper()
	request := resource("DownloadRequest", "content-of-"+backup, map[string]any{
		"target": map[string]any{"kind": "BackupContents", "name": backup},
	})
	order(t, c, request, "Processed")
	url, _, err := unstructured.NestedString(request.Object, "status", "downloadURL")
	must(t, err)
	if !strings.HasPrefix(url, world.ObjectStore().URL) {
		t.Fatalf("the backup is not in the object store but at %q", url)
	}
	get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	response, err := http.DefaultClient.Do(get)
	must(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the object store answers %s", response.Status)
	}
	files, err := listArchive(response.Body)
	must(t, err)
	return files
}

func listArchive(archive io.Reader) ([]string, error) {
	unzipped, err := gzip.NewReader(archive)
	if err != nil {
		return nil, err
	}
	var names []string
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		names = append(names, header.Name)
	}
}
