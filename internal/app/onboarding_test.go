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
	"k8s.io/client-go/tools/clientcmd"
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

const onboardingServer = "https://onboarding.example"

func kubeconfigWith(token string) string {
	return kubeconfigOf("server: '"+onboardingServer+"'", "token: '"+token+"'")
}

// kubeconfigOf has the given keys of a cluster and of a user.
func kubeconfigOf(cluster, user string) string {
	return "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: u}}]\n" +
		"clusters: [{name: c, cluster: {" + cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n"
}

// tokenOf is a renewedToken of a process that started with the configuration, whose requests go to the server.
func tokenOf(t *testing.T, server *witness, kubeconfig string) (*renewedToken, *http.Client) {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	token := &renewedToken{}
	used := token.use(tuned(config))
	used.Host, used.TLSClientConfig = server.URL, rest.TLSClientConfig{}
	connected, err := rest.HTTPClientFor(used)
	if err != nil {
		t.Fatal(err)
	}
	return token, connected
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
	server := newWitness(t)
	token, connected := tokenOf(t, server, kubeconfigWith("first"))
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
}

func TestTheGivenConfigurationIsNotChanged(t *testing.T) {
	given := &rest.Config{Host: onboardingServer, BearerToken: "first"}
	new(renewedToken).use(given)
	if given.BearerToken != "first" || given.WrapTransport != nil {
		t.Error("the configuration that was given is changed")
	}
}

// TestOtherAccess: what a running process cannot take over ends it, and says why without quoting anything.
func TestOtherAccess(t *testing.T) {
	const server, token = "server: '" + onboardingServer + "'", "token: s3cr3t"
	withCA := server + ", certificate-authority-data: 'b25l'"
	tests := map[string]struct {
		before, after string
		ends          bool
	}{
		"Same":              {kubeconfigOf(withCA, token), kubeconfigOf(withCA, token), false},
		"AnotherToken":      {kubeconfigOf(withCA, token), kubeconfigOf(withCA, "token: s3cr3t-2"), false},
		"AnotherNames":      {kubeconfigOf(withCA, token), strings.ReplaceAll(kubeconfigOf(withCA, token), "name: c", "name: c,  namespace: other"), false},
		"AnotherServer":     {kubeconfigOf(withCA, token), kubeconfigOf(strings.ReplaceAll(withCA, "onboarding.", "s3cr3t."), token), true},
		"AnotherCA":         {kubeconfigOf(withCA, token), kubeconfigOf(server+", certificate-authority-data: 'dHdv'", token), true},
		"NoCA":              {kubeconfigOf(withCA, token), kubeconfigOf(server, token), true},
		"Unverified":        {kubeconfigOf(server, token), kubeconfigOf(server+", insecure-skip-tls-verify: true", token), true},
		"AnotherServerName": {kubeconfigOf(server, token), kubeconfigOf(server+", tls-server-name: s3cr3t.example", token), true},
		"CertificateNow":    {kubeconfigOf(withCA, token), kubeconfigOf(withCA, "client-certificate-data: 'b25l', client-key-data: 'b25l'"), true},
		"TokenNow":          {kubeconfigOf(withCA, "client-certificate-data: 'b25l', client-key-data: 'b25l'"), kubeconfigOf(withCA, token), true},
		"AnotherCertificate": {
			kubeconfigOf(withCA, "client-certificate-data: 'b25l', client-key-data: 'b25l'"),
			kubeconfigOf(withCA, "client-certificate-data: 'dHdv', client-key-data: 'dHdv'"), true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			subject, _ := tokenOf(t, newWitness(t), test.before)
			err := subject.read(t.Context(), secretReader{kubeconfig: test.after}, tokenSecret)
			if errors.Is(err, errOtherAccess) != test.ends || err != nil && !test.ends {
				t.Fatalf("error %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the error quotes the kubeconfig: %v", err)
			}
		})
	}
}

// TestCertificatesGoAsTheyAre: without a token there is none to send.
func TestCertificatesGoAsTheyAre(t *testing.T) {
	config := new(renewedToken).use(&rest.Config{Host: onboardingServer, TLSClientConfig: rest.TLSClientConfig{CertData: []byte("one")}})
	if config.WrapTransport != nil {
		t.Error("a token is added")
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
			server := newWitness(t)
			token, connected := tokenOf(t, server, kubeconfigWith("works"))
			err := token.read(t.Context(), test.reader, tokenSecret)
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
	server := newWitness(t)
	token, connected := tokenOf(t, server, kubeconfigWith("token"))
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
