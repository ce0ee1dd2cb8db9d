package mirror_test

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/openmcp-project/service-provider-velero/internal/mirror"
)

const user, password = "mirror", "p4ssw0rd"

// fakeRegistry is a real registry in this process, with TLS of its own CA and with a password unless it is plain.
type fakeRegistry struct {
	*httptest.Server
	host  string
	plain bool

	mutex sync.Mutex
	calls []string
	// before is asked first; true: it has answered.
	before func(http.ResponseWriter, *http.Request) bool
}

func start(t testing.TB, plain bool, options ...registry.Option) *fakeRegistry {
	t.Helper()
	options = append([]registry.Option{registry.Logger(log.New(io.Discard, "", 0))}, options...)
	fake := &fakeRegistry{plain: plain}
	inner := registry.New(options...)
	handler := http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		name, secret, _ := request.BasicAuth()
		if !plain && (name != user || secret != password) {
			response.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			http.Error(response, `{"errors":[{"code":"UNAUTHORIZED"}]}`, http.StatusUnauthorized)
			return
		}
		fake.mutex.Lock()
		fake.calls = append(fake.calls, request.Method+" "+request.URL.RequestURI())
		before := fake.before
		fake.mutex.Unlock()
		if before == nil || !before(response, request) {
			inner.ServeHTTP(response, request)
		}
	})
	fake.Server = httptest.NewUnstartedServer(handler)
	fake.Config.ErrorLog = log.New(io.Discard, "", 0)
	if plain {
		fake.Start()
	} else {
		fake.StartTLS()
	}
	t.Cleanup(fake.Close)
	_, fake.host, _ = strings.Cut(fake.URL, "://")
	return fake
}

// intercept has a function asked before every further request.
func (f *fakeRegistry) intercept(before func(http.ResponseWriter, *http.Request) bool) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.before = before
}

// count of the calls so far that begin with one of the prefixes.
func (f *fakeRegistry) count(prefixes ...string) int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	count := 0
	for _, call := range f.calls {
		for _, prefix := range prefixes {
			if strings.HasPrefix(call, prefix) {
				count++
			}
		}
	}
	return count
}

func (f *fakeRegistry) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.Certificate().Raw})
}

func (f *fakeRegistry) access(t testing.TB) mirror.Access {
	t.Helper()
	if f.plain {
		return mirror.Access{Keychain: authn.NewMultiKeychain(), PlainHTTP: true}
	}
	credentials, err := mirror.NewKeychain([]byte(`{"auths": {"https://` + f.host + `/v2/": {"username": "` + user + `", "password": "` + password + `"}}}`))
	must(t, err)
	return mirror.Access{Keychain: credentials, Authorities: [][]byte{f.ca()}}
}

func (f *fakeRegistry) options() []remote.Option {
	if f.plain {
		return nil
	}
	return []remote.Option{remote.WithTransport(f.Client().Transport), remote.WithAuth(&authn.Basic{Username: user, Password: password})}
}

func (f *fakeRegistry) ref(t testing.TB, text string) name.Reference {
	t.Helper()
	reference, err := name.ParseReference(f.host + "/" + text)
	must(t, err)
	return reference
}

// digest of what a reference leads to; empty when there is nothing.
func (f *fakeRegistry) digest(t testing.TB, text string) string {
	t.Helper()
	found, err := remote.Head(f.ref(t, text), f.options()...)
	if err != nil {
		return ""
	}
	return found.Digest.String()
}

func (f *fakeRegistry) push(t testing.TB, text string, content remote.Taggable) string {
	t.Helper()
	must(t, remote.Push(f.ref(t, text), content, f.options()...))
	return f.digest(t, text)
}

var architectures = []string{"amd64", "arm64", "s390x"}

// multiArch is an image for three architectures.
func multiArch(t testing.TB, size int64) v1.ImageIndex {
	t.Helper()
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range architectures {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image(t, size), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
		})
	}
	return index
}

func image(t testing.TB, size int64) v1.Image {
	t.Helper()
	made, err := random.Image(size, 2)
	must(t, err)
	return mutate.MediaType(made, types.OCIManifestSchema1)
}

// referrer is something that refers to a subject.
func (f *fakeRegistry) referrer(t testing.TB, repository, subject string) string {
	t.Helper()
	about, err := remote.Head(f.ref(t, repository+"@"+subject), f.options()...)
	must(t, err)
	artifact := mutate.ConfigMediaType(image(t, 64), "application/vnd.example.signature")
	content := mutate.Subject(artifact, *about)
	digest, err := content.(v1.Image).Digest()
	must(t, err)
	return f.push(t, repository+"@"+digest.String(), content.(v1.Image))
}

// referrers of a subject.
func (f *fakeRegistry) referrers(t testing.TB, repository, subject string) []string {
	t.Helper()
	index, err := remote.Referrers(f.ref(t, repository+"@"+subject).(name.Digest), f.options()...)
	must(t, err)
	manifest, err := index.IndexManifest()
	must(t, err)
	var digests []string
	for _, found := range manifest.Manifests {
		digests = append(digests, found.Digest.String())
	}
	return digests
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
