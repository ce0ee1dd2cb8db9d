package mirror_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/mirror"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// offerOf is a ProviderConfig whose charts and images are in a registry.
func offerOf(source *fakeRegistry, versions ...string) *v1alpha1.ProviderConfigSpec {
	return &v1alpha1.ProviderConfigSpec{
		Charts:          &v1alpha1.Charts{Repository: "oci://" + source.host + "/charts", Version: "0.1.0+build"},
		AvailableImages: []v1alpha1.AvailableImage{{Name: "velero", Versions: versions, Image: source.host + "/velero/velero"}},
	}
}

// filled is a source with the charts.
func filled(t testing.TB, source *fakeRegistry) {
	t.Helper()
	for _, chart := range []string{"velero-control-plane", "velero-server"} {
		source.push(t, "charts/"+chart+":0.1.0_build", image(t, 128))
	}
}

func layout(t testing.TB, to *fakeRegistry) mirror.Layout {
	t.Helper()
	made, err := mirror.NewLayout(to.host+"/mirror", false)
	must(t, err)
	return made
}

func copyOf(t testing.TB, config *v1alpha1.ProviderConfigSpec, from, to *fakeRegistry) mirror.Copy {
	t.Helper()
	return mirror.Copy{
		Artifacts: plan.Artifacts(config), From: from.access(t), To: to.access(t), ToLayout: layout(t, to), Parallel: 2,
	}
}

func cosignTag(digest, suffix string) string { return strings.Replace(digest, ":", "-", 1) + suffix }

// TestEverythingIsCopied: indexes with all their platforms, signatures of both kinds on the whole and on each image, and what refers to those;
// through TLS with a CA of its own and with passwords, between registries that know of referrers and such that do not.
func TestEverythingIsCopied(t *testing.T) {
	for name, support := range map[string][2]bool{"Both": {true, true}, "OnlySource": {true, false}, "OnlyTarget": {false, true}, "Neither": {false, false}} {
		t.Run(name, func(t *testing.T) {
			from := start(t, false, registry.WithReferrersSupport(support[0]))
			to := start(t, false, registry.WithReferrersSupport(support[1]))
			filled(t, from)
			index := multiArch(t, 256)
			whole := from.push(t, "velero/velero:v1", index)
			manifest, err := index.IndexManifest()
			must(t, err)
			child := manifest.Manifests[1].Digest.String()
			pinned, untagged := from.push(t, "velero/velero:v2", image(t, 64)), from.push(t, "velero/velero:gone", image(t, 64))
			for _, subject := range []string{whole, child} {
				from.push(t, "velero/velero:"+cosignTag(subject, ".sig"), image(t, 32))
				from.push(t, "velero/velero:"+cosignTag(subject, ".att"), image(t, 32))
			}
			signatures := []string{from.referrer(t, "velero/velero", whole), from.referrer(t, "velero/velero", whole)}
			ofChild := from.referrer(t, "velero/velero", child)
			ofSignature := from.referrer(t, "velero/velero", signatures[0])

			results, err := copyOf(t, offerOf(from, "v1", "v2@"+pinned, untagged), from, to).Run(t.Context())
			must(t, err)
			if len(results) != 5 || results[2].Attached != 8 || results[2].Added != 8 {
				t.Errorf("results: %+v", results)
			}
			const there = "mirror/velero/velero"
			want := map[string]string{":v1": whole, ":v2": pinned, "@" + untagged: untagged, "@" + child: child}
			for _, tag := range []string{cosignTag(whole, ".sig"), cosignTag(child, ".att")} {
				want[":"+tag] = from.digest(t, "velero/velero:"+tag)
			}
			for reference, digest := range want {
				if got := to.digest(t, there+reference); got != digest {
					t.Errorf("%s is %q, want %q", reference, got, digest)
				}
			}
			for subject, referrers := range map[string][]string{whole: signatures, child: {ofChild}, signatures[0]: {ofSignature}} {
				got := to.referrers(t, there, subject)
				slices.Sort(got)
				slices.Sort(referrers)
				if diff := cmp.Diff(referrers, got); diff != "" {
					t.Errorf("referrers of %s (-want +got):\n%s", subject, diff)
				}
			}
			if to.digest(t, "mirror/charts/velero-server:0.1.0_build") != from.digest(t, "charts/velero-server:0.1.0_build") {
				t.Error("the chart is not there")
			}
			complete(t, to, there+":v1")
		})
	}
}

// complete reads everything of an index.
func complete(t *testing.T, from *fakeRegistry, reference string) {
	t.Helper()
	index, err := remote.Index(from.ref(t, reference), from.options()...)
	must(t, err)
	manifest, err := index.IndexManifest()
	must(t, err)
	if len(manifest.Manifests) != len(architectures) {
		t.Errorf("%d platforms", len(manifest.Manifests))
	}
	for _, child := range manifest.Manifests {
		found, err := index.Image(child.Digest)
		must(t, err)
		layers, err := found.Layers()
		must(t, err)
		for _, layer := range layers {
			reader, err := layer.Compressed()
			must(t, err)
			must(t, reader.Close())
		}
	}
}

// TestSecondCopyWritesNothing: and reads no blob.
func TestSecondCopyWritesNothing(t *testing.T) {
	from, to := start(t, true), start(t, true)
	filled(t, from)
	from.referrer(t, "velero/velero", from.push(t, "velero/velero:v1", multiArch(t, 256)))
	copying := copyOf(t, offerOf(from, "v1"), from, to)
	_, err := copying.Run(t.Context())
	must(t, err)
	written, read := to.count("PUT", "POST", "PATCH"), from.count("GET /v2/velero/velero/blobs")
	results, err := copying.Run(t.Context())
	must(t, err)
	for _, result := range results {
		if !result.Present || result.Added > 0 {
			t.Errorf("not present: %+v", result)
		}
	}
	if got := to.count("PUT", "POST", "PATCH"); got != written {
		t.Errorf("%d writes", got-written)
	}
	if got := from.count("GET /v2/velero/velero/blobs"); got != read {
		t.Errorf("%d blobs read", got-read)
	}
}

// TestLateSignatureIsCopied: an image is signed after it was mirrored.
func TestLateSignatureIsCopied(t *testing.T) {
	from, to := start(t, true), start(t, true)
	filled(t, from)
	digest := from.push(t, "velero/velero:v1", image(t, 64))
	copying := copyOf(t, offerOf(from, "v1"), from, to)
	_, err := copying.Run(t.Context())
	must(t, err)
	from.push(t, "velero/velero:"+cosignTag(digest, ".sig"), image(t, 32))
	results, err := copying.Run(t.Context())
	must(t, err)
	if last := results[2]; !last.Present || last.Attached != 1 || last.Added != 1 {
		t.Errorf("%+v", last)
	}
}

// TestStoppedInTheMiddle: a copy that is stopped leaves no manifest without its blobs, and the next one brings only what is missing.
func TestStoppedInTheMiddle(t *testing.T) {
	from, to := start(t, true), start(t, true)
	filled(t, from)
	whole := from.push(t, "velero/velero:v1", multiArch(t, 4096))
	copying := copyOf(t, offerOf(from, "v1"), from, to)
	copying.Parallel = 1
	ctx, stop := context.WithCancel(t.Context())
	var blobs atomic.Int32
	to.intercept(func(_ http.ResponseWriter, request *http.Request) bool {
		if request.Method == http.MethodPut && strings.Contains(request.URL.Path, "/velero/velero/blobs/") && blobs.Add(1) == 3 {
			stop()
		}
		return false
	})
	if _, err := copying.Run(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "start it again") {
		t.Fatalf("error %v", err)
	}
	to.intercept(nil)
	if got := to.digest(t, "mirror/velero/velero:v1"); got != "" {
		t.Fatalf("the stopped copy left the index %s", got)
	}
	before := to.count("PUT /v2/mirror/velero/velero/blobs")
	_, err := copying.Run(t.Context())
	must(t, err)
	if got := to.digest(t, "mirror/velero/velero:v1"); got != whole {
		t.Errorf("the index is %q", got)
	}
	complete(t, to, "mirror/velero/velero:v1")
	// Three images of two layers and a configuration each. The request that was cut off may or may not have been done.
	const all = 9
	if again := to.count("PUT /v2/mirror/velero/velero/blobs") - before; before < 3 || again > all-before+1 {
		t.Errorf("%d blobs were there, %d were written again", before, again)
	}
}

// TestTamperedBlobIsRefused: neither what was changed gets into the mirror nor anything that needs it, and the rest does.
func TestTamperedBlobIsRefused(t *testing.T) {
	from, to := start(t, true), start(t, true)
	filled(t, from)
	bad := image(t, 4096)
	from.push(t, "velero/velero:v1", bad)
	good := from.push(t, "velero/velero:v2", image(t, 64))
	layers, err := bad.Layers()
	must(t, err)
	digest, err := layers[0].Digest()
	must(t, err)
	size, err := layers[0].Size()
	must(t, err)
	from.intercept(func(response http.ResponseWriter, request *http.Request) bool {
		if request.Method != http.MethodGet || !strings.HasSuffix(request.URL.Path, digest.String()) {
			return false
		}
		_, _ = response.Write(make([]byte, size))
		return true
	})
	results, err := copyOf(t, offerOf(from, "v1", "v2"), from, to).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "velero/velero:v1") || !strings.Contains(err.Error(), "verif") {
		t.Errorf("error %v", err)
	}
	if len(results) != 3 {
		t.Errorf("copied: %+v", results)
	}
	if got := to.digest(t, "mirror/velero/velero:v1"); got != "" {
		t.Errorf("the mirror has the image: %s", got)
	}
	if to.count("HEAD /v2/mirror/velero/velero/blobs/"+digest.String()) == 0 {
		t.Error("the blob was not even tried")
	}
	if _, err := remote.Layer(to.ref(t, "mirror/velero/velero@"+digest.String()).Context().Digest(digest.String())); err == nil {
		if response, err := http.Get(to.URL + "/v2/mirror/velero/velero/blobs/" + digest.String()); err == nil && response.StatusCode == http.StatusOK {
			t.Error("the mirror has the tampered blob")
		}
	}
	if got := to.digest(t, "mirror/velero/velero:v2"); got != good {
		t.Errorf("v2 is %q", got)
	}
}

// TestTamperedManifestIsRefused: what is pinned to a digest is that or nothing.
func TestTamperedManifestIsRefused(t *testing.T) {
	from, to := start(t, true), start(t, true)
	filled(t, from)
	pinned := from.push(t, "velero/velero:v1", image(t, 64))
	other, err := image(t, 64).RawManifest()
	must(t, err)
	from.intercept(func(response http.ResponseWriter, request *http.Request) bool {
		if request.Method != http.MethodGet || !strings.HasSuffix(request.URL.Path, pinned) || strings.Contains(request.URL.Path, "referrers") {
			return false
		}
		response.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
		_, _ = response.Write(other)
		return true
	})
	if _, err := copyOf(t, offerOf(from, "v1@"+pinned), from, to).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "digest") {
		t.Errorf("error %v", err)
	}
	if got := to.digest(t, "mirror/velero/velero:v1"); got != "" {
		t.Errorf("the mirror has %s", got)
	}
}

func TestPlatforms(t *testing.T) {
	from, to := start(t, true), start(t, true)
	filled(t, from)
	whole := from.push(t, "velero/velero:v1", multiArch(t, 64))
	from.push(t, "velero/velero:"+cosignTag(whole, ".sig"), image(t, 32))
	copying := copyOf(t, offerOf(from, "v1"), from, to)
	copying.Platforms = []v1.Platform{{OS: "linux", Architecture: "arm64"}, {OS: "linux", Architecture: "s390x"}}
	results, err := copying.Run(t.Context())
	must(t, err)
	index, err := remote.Index(to.ref(t, "mirror/velero/velero:v1"))
	must(t, err)
	manifest, err := index.IndexManifest()
	must(t, err)
	var got []string
	for _, child := range manifest.Manifests {
		got = append(got, child.Platform.Architecture)
	}
	if diff := cmp.Diff(architectures[1:], got); diff != "" {
		t.Errorf("architectures (-want +got):\n%s", diff)
	}
	if results[2].Attached != 0 {
		t.Error("the signature of the whole was copied")
	}
	results, err = copying.Run(t.Context())
	must(t, err)
	if !results[2].Present {
		t.Error("a second copy does not find it")
	}
	copying.Platforms = []v1.Platform{{OS: "windows", Architecture: "amd64"}}
	if _, err := copying.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "linux/amd64, linux/arm64, linux/s390x") {
		t.Errorf("error %v", err)
	}
	copying.Artifacts = plan.Artifacts(offerOf(from, "v1@"+whole))
	if _, err := copying.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "pinned") {
		t.Errorf("error %v", err)
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	from, to := start(t, true), start(t, true)
	filled(t, from)
	from.referrer(t, "velero/velero", from.push(t, "velero/velero:v1", image(t, 64)))
	copying := copyOf(t, offerOf(from, "v1"), from, to)
	copying.DryRun = true
	results, err := copying.Run(t.Context())
	must(t, err)
	if last := results[2]; last.Present || last.Attached != 1 || last.Added != 1 {
		t.Errorf("%+v", last)
	}
	if count := to.count("PUT", "POST", "PATCH"); count > 0 {
		t.Errorf("%d writes", count)
	}
}

// TestFromAnotherMirror: in two hops.
func TestFromAnotherMirror(t *testing.T) {
	from, between, to := start(t, true), start(t, false), start(t, true)
	filled(t, from)
	digest := from.push(t, "velero/velero:v1", image(t, 64))
	config := offerOf(from, "v1")
	_, err := copyOf(t, config, from, between).Run(t.Context())
	must(t, err)
	from.Close()
	copying := copyOf(t, config, between, to)
	hop := layout(t, between)
	copying.FromLayout = &hop
	_, err = copying.Run(t.Context())
	must(t, err)
	if got := to.digest(t, "mirror/velero/velero:v1"); got != digest {
		t.Errorf("it is %q", got)
	}
}

// TestRegistriesAreRefused: an unknown CA, no or wrong credentials, and plain HTTP that nobody asked for.
func TestRegistriesAreRefused(t *testing.T) {
	secure, plain := start(t, false), start(t, true)
	wrong, err := mirror.NewKeychain([]byte(`{"auths": {"` + secure.host + `": {"username": "mirror", "password": "wr0ng"}}}`))
	must(t, err)
	tests := map[string]struct {
		registry *fakeRegistry
		change   func(*mirror.Access)
		names    string
	}{
		"UnknownCA":        {secure, func(access *mirror.Access) { access.Authorities = nil }, "certificate"},
		"NoCertificate":    {secure, func(access *mirror.Access) { access.Authorities = [][]byte{[]byte("none")} }, "no certificate"},
		"NoCredentials":    {secure, func(access *mirror.Access) { access.Keychain = authn.NewMultiKeychain() }, "UNAUTHORIZED"},
		"WrongCredentials": {secure, func(access *mirror.Access) { access.Keychain = wrong }, "UNAUTHORIZED"},
		"PlainHTTP":        {plain, func(access *mirror.Access) { access.PlainHTTP = false }, "plain HTTP is not allowed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			copying := copyOf(t, offerOf(test.registry, "v1"), test.registry, start(t, true))
			test.change(&copying.From)
			_, err := copying.Run(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.names) {
				t.Errorf("error %v", err)
			}
			if err != nil && (strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "wr0ng")) {
				t.Errorf("the error tells a password: %v", err)
			}
		})
	}
}
