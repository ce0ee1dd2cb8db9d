package property

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// object is one as an API server answers.
type object = map[string]any

// kinds are those of the control planes and the workload cluster that matter here, by group version and resource.
var kinds = map[string]map[string]string{
	"/apis/velero.io/v1": {"backups": "Backup", "restores": "Restore"},
	"/api/v1":            {"pods": "Pod"},
}

// remote is all control planes and the workload cluster. Unless a test puts something there, it does not even have the kinds.
type remote struct {
	mutex sync.Mutex
	away  bool
	items map[string][]object
	calls int
}

var (
	theRemote = &remote{}
	server    = sync.OnceValue(func() *httptest.Server { return httptest.NewTLSServer(theRemote) })
)

// goAway has nobody answer until the end of the test.
func goAway(t *testing.T) {
	t.Helper()
	theRemote.set(true, nil)
	t.Cleanup(func() { theRemote.set(false, nil) })
}

// there puts objects there, by their resource, until the end of the test.
func there(t *testing.T, items map[string][]object) {
	t.Helper()
	theRemote.set(false, items)
	t.Cleanup(func() { theRemote.set(false, nil) })
}

func (r *remote) set(away bool, items map[string][]object) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.away, r.items, r.calls = away, items, 0
}

// called is how often something was asked since the test put something there.
func (r *remote) called() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.calls
}

// ServeHTTP implements http.Handler.
func (r *remote) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.calls++
	found := r.answer(request.URL.Path)
	answer.Header().Set("Content-Type", "application/json")
	switch {
	case r.away:
		answer.WriteHeader(http.StatusServiceUnavailable)
	case found == nil:
		answer.WriteHeader(http.StatusNotFound)
	default:
		_ = json.NewEncoder(answer).Encode(found)
	}
}

func (r *remote) answer(path string) object {
	if r.items == nil {
		return nil
	}
	switch path {
	case "/api":
		return object{"kind": "APIVersions", "versions": []string{"v1"}}
	case "/apis":
		version := object{"groupVersion": "velero.io/v1", "version": "v1"}
		return object{"kind": "APIGroupList", "groups": []object{{"name": "velero.io", "versions": []object{version}, "preferredVersion": version}}}
	}
	if resources := kinds[path]; resources != nil {
		listed := []object{}
		for name, kind := range resources {
			listed = append(listed, object{"name": name, "kind": kind, "namespaced": true, "verbs": []string{"list"}})
		}
		return object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": groupVersion(path), "resources": listed}
	}
	for prefix, resources := range kinds {
		resource := path[strings.LastIndex(path, "/")+1:]
		if kind := resources[resource]; kind != "" && strings.HasPrefix(path, prefix+"/namespaces/velero") {
			items := append([]object{}, r.items[resource]...)
			return object{"kind": kind + "List", "apiVersion": groupVersion(prefix), "items": items}
		}
	}
	return nil
}

func groupVersion(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/")
}

// authority is what the certificate is signed by, as a kubeconfig has it.
func authority() string {
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server().Certificate().Raw}))
}
