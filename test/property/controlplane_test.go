package property

import (
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
)

// away: the control planes do not answer.
var away atomic.Bool

// theControlPlane is all control planes: one without Velero's kinds, so that nothing is in progress there.
var theControlPlane = sync.OnceValue(func() *httptest.Server {
	return httptest.NewTLSServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		if away.Load() {
			answer.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		answer.WriteHeader(http.StatusNotFound)
	}))
})

// goAway has no control plane answer until the end of the test.
func goAway(t *testing.T) {
	t.Helper()
	away.Store(true)
	t.Cleanup(func() { away.Store(false) })
}

// authority is what the control plane's certificate is signed by, as a kubeconfig has it.
func authority() string {
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: theControlPlane().Certificate().Raw})
	return base64.StdEncoding.EncodeToString(certificate)
}
