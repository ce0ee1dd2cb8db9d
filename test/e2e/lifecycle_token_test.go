package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	"github.com/openmcp-project/openmcp-operator/lib/clusteraccess"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// onboardingToken: the operator works on when the token that it started with is worth nothing any more.
func onboardingToken(t *testing.T) {
	// Without a control plane a reconcile ends after one write to the onboarding cluster, and that is all it takes here.
	tenant := newTenant(t, "token", "renewed")
	before := onboardingAccess(t)
	t.Run("onboarding token: renewed, and the old one is refused | the operator works on, without a restart", func(t *testing.T) {
		revokeToken(t, before)
		renewAccess(t, before.secret, before.config.BearerToken)
		since := time.Now()
		tenant.orderVelero(t, oldVersion)
		tenant.awaitCondition(t, v1alpha1.ConditionAccessGranted, metav1.ConditionFalse, v1alpha1.ReasonControlPlaneNotFound)
		must(t, operator.Running())
		refused, err := refusedWrites(since)
		must(t, err)
		if len(refused) > 0 {
			t.Errorf("the operator still wrote with the old token: %v", refused)
		}
	})
	t.Run("onboarding token: its Secret is deleted and made anew | the operator works on, without a restart", func(t *testing.T) {
		before := onboardingAccess(t)
		must(t, platform.Delete(t.Context(), before.secret.DeepCopy()))
		eventually(t, installed, "a new Secret comes", func(ctx context.Context) error {
			secret := &corev1.Secret{}
			if err := platform.Get(ctx, client.ObjectKeyFromObject(before.secret), secret); err != nil {
				return err
			}
			if secret.UID == before.secret.UID {
				return errors.New("the old one is still there")
			}
			return nil
		})
		revokeToken(t, before)
		renewAccess(t, onboardingAccess(t).secret, "")
		tenant.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = newVersion })
		tenant.awaitCondition(t, v1alpha1.ConditionAccessGranted, metav1.ConditionFalse, v1alpha1.ReasonControlPlaneNotFound)
		must(t, operator.Running())
	})
	t.Run("onboarding access: it has another server | the operator ends and says why, and works on when it is started again", func(t *testing.T) {
		moveAccess(t, "https://127.0.0.1:", "https://localhost:")
		eventually(t, soon, "the operator has ended and says why", func(context.Context) error {
			ended := operator.Running()
			if ended == nil || !strings.Contains(ended.Error(), "the access to the onboarding cluster has another server") {
				return fmt.Errorf("it says: %w", ended)
			}
			return nil
		})
		moveAccess(t, "https://localhost:", "https://127.0.0.1:")
		restart(t)
		tenant.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = oldVersion })
		tenant.awaitCondition(t, v1alpha1.ConditionAccessGranted, metav1.ConditionFalse, v1alpha1.ReasonControlPlaneNotFound)
	})
	tenant.leave(t)
}

// moveAccess edits the server in the operator's access, as a move of the onboarding cluster would.
func moveAccess(t *testing.T, from, to string) {
	t.Helper()
	before := onboardingAccess(t).secret
	moved := before.DeepCopy()
	kubeconfig := strings.ReplaceAll(string(before.Data[clustersv1alpha1.SecretKeyKubeconfig]), from, to)
	moved.Data[clustersv1alpha1.SecretKeyKubeconfig] = []byte(kubeconfig)
	must(t, platform.Patch(t.Context(), moved, client.MergeFrom(before)))
}

// accessToOnboarding is the operator's.
type accessToOnboarding struct {
	secret *corev1.Secret
	config *rest.Config
}

func onboardingAccess(t *testing.T) accessToOnboarding {
	t.Helper()
	request := &clustersv1alpha1.AccessRequest{}
	name := clusteraccess.StableRequestNameFromLocalName(plan.ProviderName, "onboarding-run")
	must(t, platform.Get(t.Context(), types.NamespacedName{Namespace: operatorNamespace, Name: name}, request))
	secret := &corev1.Secret{}
	must(t, platform.Get(t.Context(), types.NamespacedName{Namespace: operatorNamespace, Name: request.Status.SecretRef.Name}, secret))
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data[clustersv1alpha1.SecretKeyKubeconfig])
	must(t, err)
	return accessToOnboarding{secret, config}
}

// revokeToken deletes the ServiceAccount of a token: from then on the API server refuses the token, as it does after its expiry.
func revokeToken(t *testing.T, access accessToOnboarding) {
	t.Helper()
	must(t, client.IgnoreNotFound(onboarding.Delete(t.Context(), serviceAccountOf(t, access.config.BearerToken))))
	old, err := client.New(access.config, client.Options{Scheme: onboarding.Scheme()})
	must(t, err)
	// The API server remembers for ten seconds that a token was good.
	eventually(t, 30*time.Second, "the old token is refused", func(ctx context.Context) error {
		err := old.List(ctx, &v1alpha1.VeleroList{})
		if apierrors.IsUnauthorized(err) {
			return nil
		}
		return fmt.Errorf("listing Veleros with the old token: want Unauthorized, got %w", err)
	})
}

// serviceAccountOf finds out whom a token is for.
func serviceAccountOf(t *testing.T, token string) *corev1.ServiceAccount {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatal("the token is no JSON web token")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	must(t, err)
	var claims struct {
		Subject string `json:"sub"`
	}
	must(t, json.Unmarshal(payload, &claims))
	subject := strings.Split(claims.Subject, ":")
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: subject[2], Name: subject[3]}}
}

// renewAccess has the ClusterProvider renew the token in a Secret, as it does by itself when 80 % of its life are over.
func renewAccess(t *testing.T, secret *corev1.Secret, oldToken string) {
	t.Helper()
	due := secret.DeepCopy()
	due.Data[clustersv1alpha1.SecretKeyCreationTimestamp] = []byte("1")
	due.Data[clustersv1alpha1.SecretKeyExpirationTimestamp] = []byte("2")
	must(t, platform.Patch(t.Context(), due, client.MergeFrom(secret)))
	eventually(t, soon, "the token is renewed", func(ctx context.Context) error {
		renewed := &corev1.Secret{}
		if err := platform.Get(ctx, client.ObjectKeyFromObject(secret), renewed); err != nil {
			return err
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(renewed.Data[clustersv1alpha1.SecretKeyKubeconfig])
		if err != nil {
			return err
		}
		if config.BearerToken == oldToken || string(renewed.Data[clustersv1alpha1.SecretKeyExpirationTimestamp]) == "2" {
			return errors.New("it is still the old one")
		}
		return nil
	})
}

// refusedWrites are requests of the operator that the onboarding cluster did not authenticate.
func refusedWrites(since time.Time) ([]string, error) {
	events, err := world.Onboarding.AuditEvents(since, byOperator)
	var refused []string
	for _, event := range events {
		if event.Writes() && event.Response.Code == 401 {
			refused = append(refused, event.Verb+" "+event.URI)
		}
	}
	return refused, err
}
