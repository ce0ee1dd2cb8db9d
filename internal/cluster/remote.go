package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// remoteTimeout bounds every call to another cluster, so that an unreachable one cannot hold a worker.
const remoteTimeout = 15 * time.Second

var remoteScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(appsv1.AddToScheme(scheme))
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	return scheme
}()

// Remote connects to another cluster with the credentials of a grant. It is only used while a
// Velero is deleted, while a change of its server is about to be made, and while its server does not become ready.
func (p *Platform) Remote(ctx context.Context, names plan.Names, grant plan.Grant) (client.Client, error) {
	var secret corev1.Secret
	if err := p.reader.Get(ctx, key(names, grant.Secret), &secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read credentials: %w", ErrCredentials)
		}
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	return connect(secret.Data[grant.Key])
}

// connect prepares a client, which calls nothing yet. So whatever goes wrong is the kubeconfig's fault.
func connect(kubeconfig []byte) (client.Client, error) {
	config, err := restConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	connected, err := client.New(config, client.Options{Scheme: remoteScheme})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCredentials, err)
	}
	return connected, nil
}

// RemoteError is what went wrong on another cluster, or on the way to it. It says nothing about the platform cluster.
type RemoteError struct{ cause error }

// Error implements error.
func (e *RemoteError) Error() string { return "another cluster: " + e.cause.Error() }

// Unwrap has errors.As find the cause.
func (e *RemoteError) Unwrap() error { return e.cause }

// Unseen says whether an error only means that another cluster could not be looked at.
func Unseen(err error) bool {
	var remote *RemoteError
	return errors.As(err, &remote) || errors.Is(err, ErrCredentials)
}

func remoteError(err error) error {
	if err == nil {
		return nil
	}
	return &RemoteError{cause: err}
}

// restConfig accepts only kubeconfigs that are data: Flux's CVE-2022-24817 was a kubeconfig whose exec plugin ran in the controller, and
// file references would be read from this process's file system.
func restConfig(kubeconfig []byte) (*rest.Config, error) {
	loaded, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, errors.New("the kubeconfig cannot be parsed")
	}
	if err := plain(loaded); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewDefaultClientConfig(*loaded, nil).ClientConfig()
	if err != nil || !plainServer(config.Host) || config.BearerToken == "" && len(config.CertData) == 0 {
		return nil, errors.New("the kubeconfig names no usable context, https server or credentials")
	}
	config.Timeout = remoteTimeout
	config.UserAgent = plan.UserAgent
	return config, nil
}

// plainServer accepts no credentials in the address: errors quote it.
func plainServer(host string) bool {
	server, err := url.Parse(host)
	return err == nil && server.Scheme == "https" && server.Host != "" && server.User == nil
}

func plain(config *clientcmdapi.Config) error {
	for _, user := range config.AuthInfos {
		if !plainUser(user) {
			return errors.New("the kubeconfig runs programs, impersonates or refers to files")
		}
	}
	for _, cluster := range config.Clusters {
		if cluster.InsecureSkipTLSVerify || cluster.CertificateAuthority != "" {
			return errors.New("the kubeconfig skips the verification of certificates or refers to files")
		}
	}
	return nil
}

func plainUser(user *clientcmdapi.AuthInfo) bool {
	return user.Exec == nil && user.AuthProvider == nil && user.TokenFile == "" && user.ClientCertificate == "" && user.ClientKey == "" &&
		user.Impersonate == "" && user.ImpersonateUID == "" && len(user.ImpersonateGroups) == 0 && len(user.ImpersonateUserExtra) == 0
}
