package landscape

import (
	"context"
	"fmt"
	"os"

	"github.com/openmcp-project/service-provider-velero/test/landscape/process"
	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

// ObjectStore is an S3 server.
type ObjectStore struct {
	// URL is where it answers, for pods as well.
	URL string
	// Bucket is the one it has.
	Bucket, Region string
	// AccessKey and SecretKey let one in.
	AccessKey, SecretKey string
	// Dir holds each object of the bucket as a file.
	Dir string
}

const objectStore = "object-store"

// ObjectStore is the S3 server of a landscape with real nodes.
func (l *Landscape) ObjectStore() ObjectStore {
	const bucket = "backups"
	return ObjectStore{
		URL: fmt.Sprintf("http://%s:%d", l.site.Address(), l.site.S3Port), Bucket: bucket, Region: "us-east-1",
		AccessKey: "landscape", SecretKey: "landscape-secret", Dir: l.site.Path(objectStore, bucket),
	}
}

// startObjectStore runs the S3 server. A bucket of it is a directory.
func (l *Landscape) startObjectStore(ctx context.Context) error {
	if !l.RealNodes() {
		return nil
	}
	store := l.ObjectStore()
	if err := os.MkdirAll(store.Dir, 0o700); err != nil {
		return fmt.Errorf("create the bucket: %w", err)
	}
	return l.run(ctx, process.Spec{
		Name: objectStore, Program: "versitygw", Stage: site.StageServer,
		Args: []string{
			"--port", fmt.Sprintf("%s:%d", l.site.Address(), l.site.S3Port), "--region", store.Region, "--health", "/healthz",
			"posix", l.site.Path(objectStore),
		},
		Env: []string{"ROOT_ACCESS_KEY=" + store.AccessKey, "ROOT_SECRET_KEY=" + store.SecretKey},
	}, store.URL+"/healthz")
}
