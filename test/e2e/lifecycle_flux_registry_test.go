package e2e

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
)

const keyOfKubeconfig = clustersv1alpha1.SecretKeyKubeconfig

// tokenIn returns the kubeconfig of an access, and its token.
func tokenIn(t *testing.T, secret *corev1.Secret) (config []byte, token string) {
	t.Helper()
	config = secret.Data[keyOfKubeconfig]
	loaded, err := clientcmd.RESTConfigFromKubeConfig(config)
	must(t, err)
	return config, loaded.BearerToken
}

func notDeleted(source *sourcev1.OCIRepository) bool { return source.DeletionTimestamp.IsZero() }

// retag gives a chart in the registry a second version, without a change of the chart.
func retag(t *testing.T, chart, version, another string) {
	t.Helper()
	const manifest = "application/vnd.oci.image.manifest.v1+json"
	path := strings.TrimPrefix(world.ChartRepository(), "oci://"+world.Registry)
	url := "http://" + world.Registry + "/v2" + path + "/" + chart + "/manifests/"
	call := func(method, version string, body io.Reader, status int) []byte {
		request, err := http.NewRequestWithContext(t.Context(), method, url+version, body)
		must(t, err)
		request.Header.Set("Accept", manifest)
		request.Header.Set("Content-Type", manifest)
		response, err := http.DefaultClient.Do(request)
		must(t, err)
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		must(t, err)
		if response.StatusCode != status {
			t.Fatalf("the registry answers %s to %s: %s", response.Status, method, content)
		}
		return content
	}
	call(http.MethodPut, another, strings.NewReader(string(call(http.MethodGet, version, nil, http.StatusOK))), http.StatusCreated)
}

// silence listens and never says a word until the test is over.
func silence(t *testing.T) (address string, calls *atomic.Int32) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	var all sync.Mutex
	var open []net.Conn
	calls = &atomic.Int32{}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			all.Lock()
			open = append(open, connection)
			all.Unlock()
			calls.Add(1)
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		all.Lock()
		defer all.Unlock()
		for _, connection := range open {
			_ = connection.Close()
		}
	})
	return listener.Addr().String(), calls
}
