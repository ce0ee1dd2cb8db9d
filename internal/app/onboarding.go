package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/openmcp-project/controller-utils/pkg/clusters"
	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	"github.com/openmcp-project/openmcp-operator/lib/clusteraccess"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// accessPoll is how often the start looks whether access to the onboarding cluster is granted; nothing runs yet that could watch it.
const accessPoll = time.Second

// onboarding is the access to the onboarding cluster.
type onboarding struct {
	cluster *clusters.Cluster
	// secret holds the kubeconfig, which the ClusterProvider renews in place.
	secret types.NamespacedName
}

// requestOnboarding gets access to the onboarding cluster with exactly the given rights: the library returns as soon as any generation of the
// request was granted, which after an upgrade may be the one with the rights of before.
func requestOnboarding(ctx context.Context, platform client.Client, name string, timeout time.Duration, scheme *runtime.Scheme, rights []clustersv1alpha1.PermissionsRequest) (*onboarding, error) {
	manager := clusteraccess.NewClusterAccessManager(platform, plan.ProviderName, podNamespace()).WithTimeout(timeout).WithInterval(accessPoll)
	if _, err := manager.CreateAndWaitForCluster(ctx, name, clustersv1alpha1.PURPOSE_ONBOARDING, scheme, rights); err != nil {
		return nil, fmt.Errorf("get access to the onboarding cluster: %w", err)
	}
	var request *clustersv1alpha1.AccessRequest
	err := wait.PollUntilContextTimeout(ctx, accessPoll, timeout, true, func(ctx context.Context) (bool, error) {
		var err error
		request, err = manager.AccessRequest(ctx, name)
		return err == nil && request.Status.IsGranted() && request.Status.ObservedGeneration == request.Generation && request.Status.SecretRef != nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("get the current rights on the onboarding cluster: %w", err)
	}
	cluster, err := manager.Access(ctx, name, scheme)
	if err != nil {
		return nil, fmt.Errorf("connect to the onboarding cluster: %w", err)
	}
	return &onboarding{cluster: cluster, secret: types.NamespacedName{Namespace: request.Namespace, Name: request.Status.SecretRef.Name}}, nil
}

// errOtherAccess: access to the onboarding cluster changed in a way that the running clients cannot take over.
var errOtherAccess = errors.New("the access to the onboarding cluster has another server, certificate authority or kind of credentials now; it is taken over with a restart")

// renewedToken authenticates every request with the newest token, so that a process outlives the token that it started with. What else a
// kubeconfig says is taken over by another process only.
type renewedToken struct {
	current atomic.Pointer[string]
	started connection
}

// connection is what a client is built from for good.
type connection struct {
	host, path         string
	tls                rest.TLSClientConfig
	username, password string
	token              bool
}

func connectionOf(config *rest.Config) connection {
	return connection{
		host: config.Host, path: config.APIPath, tls: config.TLSClientConfig,
		username: config.Username, password: config.Password, token: config.BearerToken != "",
	}
}

// usable says whether there is anything to authenticate with.
func (c connection) usable() bool { return c.token || c.username != "" || len(c.tls.CertData) > 0 }

// use takes the token out of a configuration and has its requests carry the newest one instead.
func (t *renewedToken) use(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	t.started = connectionOf(config)
	if !t.started.token {
		return config
	}
	t.current.Store(new(config.BearerToken))
	config.BearerToken = ""
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			request = request.Clone(request.Context())
			request.Header.Set("Authorization", "Bearer "+*t.current.Load())
			return next.RoundTrip(request)
		})
	})
	return config
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return f(request) }

// follow reads the token again whenever the Secret of the access changes, on every replica, and stops the process that cannot use what it reads.
func (t *renewedToken) follow(mgr ctrl.Manager, secret types.NamespacedName, stop context.CancelCauseFunc) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("onboarding-token").
		WithOptions(controller.Options{NeedLeaderElection: new(false)}).
		WatchesRawSource(secretSource(mgr.GetCache(), secret)).
		Complete(reconcile.Func(func(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
			err := t.read(ctx, mgr.GetAPIReader(), secret)
			if errors.Is(err, errOtherAccess) {
				stop(err)
				return ctrl.Result{}, nil
			}
			return ctrl.Result{}, err
		}))
}

func (t *renewedToken) read(ctx context.Context, reader client.Reader, key types.NamespacedName) error {
	var secret corev1.Secret
	err := reader.Get(ctx, key, &secret)
	if apierrors.IsNotFound(err) {
		// It comes again, or the provider has no onboarding cluster any more.
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the access to the onboarding cluster: %w", err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[clustersv1alpha1.SecretKeyKubeconfig])
	if err != nil || !connectionOf(config).usable() {
		return errors.New("use the renewed access to the onboarding cluster: the kubeconfig cannot be parsed or has no credentials")
	}
	if !reflect.DeepEqual(connectionOf(config), t.started) {
		return errOtherAccess
	}
	t.current.Store(&config.BearerToken)
	return nil
}
