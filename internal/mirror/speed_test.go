package mirror_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"
)

// images is how many images of three architectures are copied, imageSize is how large each of their two layers is.
const images, imageSize = 20, 1 << 20

// BenchmarkCopy copies the same images with crane, one after the other, and with this package, between registries on loopback. x-crane is how
// many times faster this package is; it looks for signatures in addition.
func BenchmarkCopy(b *testing.B) {
	from := start(b, true, registry.WithBlobHandler(registry.NewDiskBlobHandler(b.TempDir())))
	filled(b, from)
	versions := make([]string, 0, images)
	for i := range images {
		versions = append(versions, fmt.Sprintf("v%d", i))
		from.push(b, "velero/velero:"+versions[i], multiArch(b, imageSize))
	}
	config := offerOf(from, versions...)
	var ours, cranes time.Duration
	for b.Loop() {
		cranes += timed(b, func(to *fakeRegistry) {
			for _, version := range versions {
				must(b, crane.Copy(from.host+"/velero/velero:"+version, to.host+"/mirror/velero/velero:"+version))
			}
		})
		ours += timed(b, func(to *fakeRegistry) {
			copying := copyOf(b, config, from, to)
			copying.Parallel = 4
			results, err := copying.Run(b.Context())
			must(b, err)
			if len(results) != images+2 {
				b.Fatalf("%d results", len(results))
			}
		})
	}
	const bytes = images * 3 * 2 * imageSize
	b.ReportMetric(float64(cranes)/float64(ours), "x-crane")
	b.ReportMetric(float64(bytes*b.N)/ours.Seconds()/(1<<20), "MiB/s")
}

func timed(b *testing.B, act func(to *fakeRegistry)) time.Duration {
	to := start(b, true, registry.WithBlobHandler(registry.NewDiskBlobHandler(b.TempDir())))
	started := time.Now()
	act(to)
	return time.Since(started)
}
