package mirror

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// Access says how registries on one side of a copy are talked to.
type Access struct {
	// Keychain has the credentials.
	Keychain authn.Keychain
	// Authorities are PEM certificates that are trusted beside the usual ones.
	Authorities [][]byte
	// PlainHTTP allows it, where there is no HTTPS.
	PlainHTTP bool
}

// side are the registries on one side.
type side struct {
	options   []remote.Option
	plainHTTP bool
	puller    *remote.Puller
}

func (a Access) connect(ctx context.Context) (*side, error) {
	carrier, err := a.transport()
	if err != nil {
		return nil, err
	}
	options := []remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(a.Keychain), remote.WithTransport(carrier), remote.WithUserAgent(plan.UserAgent),
	}
	puller, err := remote.NewPuller(options...)
	if err != nil {
		return nil, err
	}
	return &side{options: options, plainHTTP: a.PlainHTTP, puller: puller}, nil
}

func (a Access) transport() (http.RoundTripper, error) {
	usual := remote.DefaultTransport.(*http.Transport).Clone()
	if len(a.Authorities) > 0 {
		trusted, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("read the trusted certificates of this machine: %w", err)
		}
		for _, authority := range a.Authorities {
			if !trusted.AppendCertsFromPEM(authority) {
				return nil, errors.New("a CA file has no certificate in PEM form")
			}
		}
		usual.TLSClientConfig = &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}
	}
	if a.PlainHTTP {
		return usual, nil
	}
	return secured{usual}, nil
}

// secured refuses plain HTTP. The library falls back to it for addresses that look local, which in a data center is where registries are.
type secured struct {
	next http.RoundTripper
}

var errPlainHTTP = errors.New("plain HTTP is not allowed; --plain-http allows it")

// RoundTrip implements http.RoundTripper.
func (s secured) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" {
		return nil, errPlainHTTP
	}
	return s.next.RoundTrip(request)
}

func (s *side) reference(text string) (name.Reference, error) {
	reference, err := name.ParseReference(text, s.nameOptions()...)
	if err != nil {
		return nil, fmt.Errorf("%q is not a reference: %w", text, err)
	}
	return reference, nil
}

func (s *side) nameOptions() []name.Option {
	if s.plainHTTP {
		return []name.Option{name.Insecure}
	}
	return nil
}

// head is what a reference leads to; nil when there is nothing.
func (s *side) head(ctx context.Context, reference name.Reference) (*v1.Descriptor, error) {
	found, err := s.puller.Head(ctx, reference)
	if absent(err) {
		return nil, nil
	}
	return found, err
}

// referrers are the manifests that refer to one, as far as the registry knows.
func (s *side) referrers(ctx context.Context, subject name.Digest) ([]v1.Descriptor, error) {
	index, err := remote.Referrers(subject, append([]remote.Option{remote.Reuse(s.puller)}, append(s.options, remote.WithContext(ctx))...)...)
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the referrers of %s: %w", subject, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("list the referrers of %s: %w", subject, err)
	}
	return manifest.Manifests, nil
}

// absent says whether a registry knows nothing. Some refuse access to what does not exist.
func absent(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && (answer.StatusCode == http.StatusNotFound || answer.StatusCode == http.StatusForbidden)
}
