package app

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
)

// witness is a server that remembers who called it.
type witness struct {
	*httptest.Server
	mutex sync.Mutex
	seen  []string
}

func newWitness(t *testing.T) *witness {
	w := &witness{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.seen = append(w.seen, strings.Join(request.Header.Values("Authorization"), ","))
	}))
	t.Cleanup(w.Close)
	return w
}

func (w *witness) last() string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.seen[len(w.seen)-1]
}

// secretReader is where the token is read from: it stands in for an API server that answers, or does not.
type secretReader struct {
	client.Reader
	kubeconfig string
	err        error
}

func (r secretReader) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	object.(*corev1.Secret).Data = map[string][]byte{clustersv1alpha1.SecretKeyKubeconfig: []byte(r.kubeconfig)}
	return r.err
}

func kubeconfigWith(token string) string {
	return "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
		"clusters: [{name: c, cluster: {server: 'https://onboarding.example'}}]\nusers: [{name: u, user: {token: '" + token + "'}}]\n"
}

var tokenSecret = types.NamespacedName{Namespace: "openmcp-system", Name: "onboarding.kubeconfig"}

// call sends one request with the configuration, through a connection that is kept.
func call(t *testing.T, connected *http.Client, url string) {
	t.Helper()
	response, err := connected.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
}

func TestEachRequestHasTheNewestToken(t *testing.T) {
	server, token := newWitness(t), &renewedToken{}
	given := &rest.Config{Host: server.URL, BearerToken: "first"}
	connected, err := rest.HTTPClientFor(token.use(given))
	if err != nil {
		t.Fatal(err)
	}
	call(t, connected, server.URL)
	if got := server.last(); got != "Bearer first" {
		t.Errorf("before the renewal: %q", got)
	}
	for _, renewed := range []string{"second", "third"} {
		if err := token.read(t.Context(), secretReader{kubeconfig: kubeconfigWith(renewed)}, tokenSecret); err != nil {
			t.Fatal(err)
		}
		call(t, connected, server.URL)
		if got := server.last(); got != "Bearer "+renewed {
			t.Errorf("after the renewal to %s: %q", renewed, got)
		}
	}
	if given.BearerToken != "first" || given.WrapTransport != nil {
		t.Error("the configuration that was given is changed")
	}
}

func TestTokenSurvivesWhatCannotBeRead(t *testing.T) {
	tests := map[string]struct {
		reader secretReader
		fails  bool
	}{
		"SecretIsGone":    {secretReader{err: apierrors.NewNotFound(corev1.Resource("secrets"), tokenSecret.Name)}, false},
		"ServerIsDown":    {secretReader{err: errors.New("connection refused")}, true},
		"NoKubeconfig":    {secretReader{kubeconfig: "s3cr3t: ["}, true},
		"EmptyKubeconfig": {secretReader{}, true},
		"NoToken":         {secretReader{kubeconfig: kubeconfigWith("")}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server, token := newWitness(t), &renewedToken{}
			connected, err := rest.HTTPClientFor(token.use(&rest.Config{Host: server.URL, BearerToken: "works"}))
			if err != nil {
				t.Fatal(err)
			}
			err = token.read(t.Context(), test.reader, tokenSecret)
			if (err != nil) != test.fails {
				t.Errorf("error %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the error quotes the kubeconfig: %v", err)
			}
			call(t, connected, server.URL)
			if got := server.last(); got != "Bearer works" {
				t.Errorf("the token that worked became %q", got)
			}
		})
	}
}

func TestTokenIsRenewedUnderLoad(t *testing.T) {
	server, token := newWitness(t), &renewedToken{}
	connected, err := rest.HTTPClientFor(token.use(&rest.Config{Host: server.URL, BearerToken: "token"}))
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				if response, err := connected.Get(server.URL); err == nil {
					_ = response.Body.Close()
				}
				_ = token.read(context.Background(), secretReader{kubeconfig: kubeconfigWith("token")}, tokenSecret)
			}
		})
	}
	group.Wait()
	for _, seen := range server.seen {
		if seen != "Bearer token" {
			t.Fatalf("a request went out as %q", seen)
		}
	}
}
