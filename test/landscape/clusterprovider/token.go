package clusterprovider

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/openmcp-project/controller-utils/pkg/clusteraccess"
	ctrlutils "github.com/openmcp-project/controller-utils/pkg/controller"
	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
)

const (
	// DefaultTokenLifetime is what providers for real clouds use.
	DefaultTokenLifetime = 30 * 24 * time.Hour
	// renewalRatio is the part of its life after which a token is renewed.
	renewalRatio = 0.8
)

// ensureSecret keeps the kubeconfig of a request valid, in place: what others put on the Secret stays. It returns the
// name of the Secret and when the token in it must be renewed.
func (r *access) ensureSecret(ctx context.Context, request *clustersv1alpha1.AccessRequest, t target, account *corev1.ServiceAccount) (string, time.Time, error) {
	secret := secretKey(request)
	err := r.platform.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if client.IgnoreNotFound(err) != nil {
		return "", time.Time{}, fmt.Errorf("read the kubeconfig Secret: %w", err)
	}
	granted := request.Status.Phase == clustersv1alpha1.REQUEST_GRANTED
	if renewal, valid := renewalOf(secret, account); granted && valid && r.now().Before(renewal) {
		return secret.Name, renewal, nil
	}
	token, err := clusteraccess.CreateTokenForServiceAccount(ctx, t.client, account, &r.lifetime)
	if err != nil {
		return "", time.Time{}, err
	}
	data, err := secretData(t, account.Name, token)
	if err != nil {
		return "", time.Time{}, err
	}
	if err := r.writeSecret(ctx, request, secret, data); err != nil {
		return "", time.Time{}, fmt.Errorf("write the kubeconfig Secret: %w", err)
	}
	return secret.Name, clusteraccess.ComputeTokenRenewalTimeWithRatio(token.CreationTimestamp, token.ExpirationTimestamp, renewalRatio), nil
}

func (r *access) writeSecret(ctx context.Context, request *clustersv1alpha1.AccessRequest, found *corev1.Secret, data map[string][]byte) error {
	secret := found.DeepCopy()
	secret.Data = data
	if err := controllerutil.SetControllerReference(request, secret, r.platform.Scheme()); err != nil {
		return err
	}
	if found.UID == "" {
		secret.Type = corev1.SecretTypeOpaque
		err := r.platform.Create(ctx, secret)
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		return fmt.Errorf("the cache is behind: %w", err)
	}
	return r.platform.Patch(ctx, secret, client.MergeFrom(found))
}

func secretData(t target, user string, token *clusteraccess.ServiceAccountToken) (map[string][]byte, error) {
	ca, err := t.server.CA()
	if err != nil {
		return nil, err
	}
	kubeconfig, err := clusteraccess.CreateTokenKubeconfig(user, t.server.URL(), ca, token.Token)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		clustersv1alpha1.SecretKeyKubeconfig:          kubeconfig,
		clustersv1alpha1.SecretKeyCreationTimestamp:   unix(token.CreationTimestamp),
		clustersv1alpha1.SecretKeyExpirationTimestamp: unix(token.ExpirationTimestamp),
	}, nil
}

// renewalOf says when the token in a Secret must be renewed, and whether it can be valid at all: it is not without a
// kubeconfig, or when its ServiceAccount was created anew since.
func renewalOf(secret *corev1.Secret, account *corev1.ServiceAccount) (renewal time.Time, valid bool) {
	created, expires := timestamp(secret, clustersv1alpha1.SecretKeyCreationTimestamp), timestamp(secret, clustersv1alpha1.SecretKeyExpirationTimestamp)
	if len(secret.Data[clustersv1alpha1.SecretKeyKubeconfig]) == 0 || created.IsZero() || expires.IsZero() {
		return time.Time{}, false
	}
	if account.CreationTimestamp.After(created) {
		return time.Time{}, false
	}
	return clusteraccess.ComputeTokenRenewalTimeWithRatio(created, expires, renewalRatio), true
}

func timestamp(secret *corev1.Secret, key string) time.Time {
	seconds, err := strconv.ParseInt(string(secret.Data[key]), 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

func unix(t time.Time) []byte { return []byte(strconv.FormatInt(t.Unix(), 10)) }

// secretName is the name of the Secret for an AccessRequest.
func secretName(request string) string {
	const suffix = ".kubeconfig"
	return ctrlutils.ShortenToXCharactersUnsafe(request, ctrlutils.K8sMaxNameLength-len(suffix)) + suffix
}
