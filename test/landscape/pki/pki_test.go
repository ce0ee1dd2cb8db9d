package pki

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestServerAndClientOfOneAuthorityTrustEachOther(t *testing.T) {
	authority, err := Create(t.TempDir(), "one")
	if err != nil {
		t.Fatal(err)
	}
	reopened, err := Open(authority.dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := call(t, authority, reopened)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("alice [system:masters]", got); diff != "" {
		t.Errorf("the server sees the user (-want +got):\n%s", diff)
	}
}

func TestClientOfAnotherAuthorityIsRefused(t *testing.T) {
	one, err := Create(t.TempDir(), "one")
	if err != nil {
		t.Fatal(err)
	}
	other, err := Create(t.TempDir(), "other")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := call(t, one, other); err == nil {
		t.Errorf("a server accepted a client of another authority as %q", got)
	}
}

func TestKeysAreReadableByTheOwnerOnly(t *testing.T) {
	authority, err := Create(t.TempDir(), "one")
	if err != nil {
		t.Fatal(err)
	}
	public, private, err := authority.TokenKeys()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{authority.CA(), public, private} {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", file, info.Mode())
		}
	}
}

// call lets a client of one authority call a server of another and returns who the server thinks it is.
func call(t *testing.T, server, client *Authority) (string, error) {
	t.Helper()
	pair, err := server.Server("server")
	if err != nil {
		t.Fatal(err)
	}
	user, err := client.Client("alice", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		_, _ = io.WriteString(w, subject.CommonName+" ["+subject.Organization[0]+"]")
	}))
	srv.TLS = &tls.Config{
		Certificates: []tls.Certificate{load(t, pair)}, ClientCAs: pool(t, server), ClientAuth: tls.RequireAndVerifyClientCert,
	}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: pool(t, server), Certificates: []tls.Certificate{load(t, user)},
	}}
	t.Cleanup(transport.CloseIdleConnections)
	response, err := (&http.Client{Transport: transport}).Get(srv.URL)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

func load(t *testing.T, pair Pair) tls.Certificate {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func pool(t *testing.T, authority *Authority) *x509.CertPool {
	t.Helper()
	content, err := os.ReadFile(authority.CA())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(content)
	return pool
}
