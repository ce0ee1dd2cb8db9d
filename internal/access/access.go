// Package access gets credentials for the control plane and the workload cluster of a Velero, and gives them back.
//
// It treats AccessRequests as data: Ensure says what is granted, or what is waited for, from the informer caches; it never opens a
// connection to another cluster.
package access

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clustersv1alpha1 "github.com/openmcp-project/openmcp-operator/api/clusters/v1alpha1"
	commonapi "github.com/openmcp-project/openmcp-operator/api/common"
	"github.com/openmcp-project/openmcp-operator/lib/clusteraccess/advanced"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// The ids of the three AccessRequests of a Velero; they are part of the requests' names.
const (
	// ControlPlane is what Flux installs the CRDs with.
	ControlPlane = "mcp"
	// Server is the Velero server's own identity on the control plane.
	Server = "server"
	// Workload is what Flux installs the server with.
	Workload = "workload"
)

var ids = []string{ControlPlane, Server, Workload}

// Permissions are the rights to request.
type Permissions struct {
	// ControlPlane are the rights of ControlPlane.
	ControlPlane []clustersv1alpha1.PermissionsRequest
	// ServerRoles are the existing roles of Server.
	ServerRoles []commonapi.RoleRef
	// Workload are the rights of Workload, given the namespace that the server runs in.
	Workload func(namespace string) []clustersv1alpha1.PermissionsRequest
}

// Access requests and releases credentials. It is safe for concurrent use.
type Access struct {
	client   client.Client
	reader   client.Reader
	requests map[string]advanced.ClusterRegistration
}

// New takes a client that reads from caches, and a reader that does not, both of the platform cluster.
func New(platform client.Client, uncached client.Reader, permissions Permissions) *Access {
	return &Access{client: platform, reader: uncached, requests: registrations(permissions)}
}

// Outcome is what Ensure found: all Grants when Waiting is nil, else those that are good nevertheless.
type Outcome struct {
	Grants  plan.Grants
	Waiting *Waiting
}

// Waiting says, for the user, what is not there yet. Failed: nothing will change before a person acts.
type Waiting struct {
	Reason, Message string
	Failed          bool
	// Unwatched: nothing will tell when it comes, so one has to look again.
	Unwatched bool
}

// Ensure makes sure that access is requested, and says what is granted. Without a control plane nothing is requested, since the requests
// would create, and leak, the control plane's namespace.
func (a *Access) Ensure(ctx context.Context, velero types.NamespacedName) (Outcome, error) {
	return a.outcome(ctx, velero, a.request)
}

// Look says what was granted before, and requests nothing.
func (a *Access) Look(ctx context.Context, velero types.NamespacedName) (Outcome, error) {
	return a.outcome(ctx, velero, a.grant)
}

func (a *Access) outcome(ctx context.Context, velero types.NamespacedName, look func(context.Context, types.NamespacedName, plan.Names, string) (plan.Grant, *Waiting, error)) (Outcome, error) {
	names, err := plan.NamesOf(velero)
	if err != nil {
		return Outcome{}, err
	}
	if waiting, err := a.controlPlane(ctx, velero, names); waiting != nil || err != nil {
		return Outcome{Waiting: waiting}, err
	}
	var outcome Outcome
	grants := map[string]*plan.Grant{ControlPlane: &outcome.Grants.ControlPlane, Server: &outcome.Grants.Server, Workload: &outcome.Grants.Workload}
	for _, id := range ids {
		grant, waiting, err := look(ctx, velero, names, id)
		if err != nil {
			return Outcome{}, err
		}
		if waiting != nil && (outcome.Waiting == nil || waiting.Failed) {
			outcome.Waiting = waiting
		}
		*grants[id] = grant
	}
	return outcome, nil
}

// controlPlane says why there is no control plane to install on, or nil.
func (a *Access) controlPlane(ctx context.Context, velero types.NamespacedName, names plan.Names) (*Waiting, error) {
	request := &clustersv1alpha1.ClusterRequest{}
	err := a.client.Get(ctx, types.NamespacedName{Namespace: names.TenantNamespace, Name: velero.Name}, request)
	if apierrors.IsNotFound(err) {
		return &Waiting{Reason: v1alpha1.ReasonControlPlaneNotFound, Message: fmt.Sprintf(
			"there is no control plane %q in namespace %q; a Velero is installed on the control plane that has its own name and namespace", velero.Name, velero.Namespace)}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for the control plane: %w", err)
	}
	if !request.DeletionTimestamp.IsZero() {
		return &Waiting{Reason: v1alpha1.ReasonControlPlaneDeleting, Message: fmt.Sprintf(
			"the control plane %q is being deleted", velero.Name)}, nil
	}
	return nil, nil
}

// request ensures one AccessRequest and says what it grants. A request of our name that is not ours is reported, never adopted; one that was
// relabelled is as it should be the next time.
func (a *Access) request(ctx context.Context, velero types.NamespacedName, names plan.Names, id string) (plan.Grant, *Waiting, error) {
	written, err := a.write(ctx, velero, id)
	if err != nil {
		foreign, failed := a.relabel(ctx, velero, names, id)
		if foreign {
			return plan.Grant{}, conflict(id), nil
		}
		return plan.Grant{}, nil, fmt.Errorf("request access %q: %w", id, errors.Join(err, failed))
	}
	if written != nil {
		// What the cache has may still be the request of before, with its grant.
		if waiting := judge(written, id); waiting != nil {
			return plan.Grant{}, waiting, nil
		}
	}
	grant, waiting, err := a.grant(ctx, velero, names, id)
	if waiting != nil && waiting.Reason == v1alpha1.ReasonWaitingForConfiguration {
		// Requested a moment ago, and not in the cache yet.
		waiting = pending(id)
	}
	return grant, waiting, err
}

// grant says what a request grants.
func (a *Access) grant(ctx context.Context, velero types.NamespacedName, names plan.Names, id string) (plan.Grant, *Waiting, error) {
	request := &clustersv1alpha1.AccessRequest{}
	err := a.client.Get(ctx, requestKey(velero, names, id), request)
	if apierrors.IsNotFound(err) {
		return plan.Grant{}, &Waiting{Reason: v1alpha1.ReasonWaitingForConfiguration, Message: "access is requested as soon as the configuration is valid"}, nil
	}
	if err != nil {
		return plan.Grant{}, nil, fmt.Errorf("read access %q: %w", id, err)
	}
	if !request.DeletionTimestamp.IsZero() {
		return plan.Grant{}, pending(id), a.finishCached(ctx, client.ObjectKeyFromObject(request), names, id)
	}
	if waiting := judge(request, id); waiting != nil {
		return plan.Grant{}, waiting, nil
	}
	version, err := a.guard(ctx, names, types.NamespacedName{Namespace: request.Namespace, Name: request.Status.SecretRef.Name})
	if apierrors.IsNotFound(err) {
		// Its ClusterProvider makes it anew, without our label, so without an event for us.
		waiting := pending(id)
		waiting.Unwatched = true
		return plan.Grant{}, waiting, nil
	}
	if err != nil {
		return plan.Grant{}, nil, fmt.Errorf("guard the credentials of access %q: %w", id, err)
	}
	return plan.Grant{Secret: request.Status.SecretRef.Name, Key: clustersv1alpha1.SecretKeyKubeconfig, Version: version}, nil, nil
}

// judge says why a request does not count as granted. A grant of an older generation does not: it has the rights of before.
func judge(request *clustersv1alpha1.AccessRequest, id string) *Waiting {
	switch {
	case denied(request):
		return &Waiting{Failed: true, Reason: v1alpha1.ReasonAccessDenied, Message: fmt.Sprintf("the platform denied access to the %s", subject(id))}
	case !request.DeletionTimestamp.IsZero(), !request.Status.IsGranted(), request.Status.ObservedGeneration != request.Generation,
		request.Status.SecretRef == nil, request.Status.SecretRef.Name == "":
		return pending(id)
	}
	return nil
}

func denied(request *clustersv1alpha1.AccessRequest) bool {
	return request.Status.IsDenied() && request.Status.ObservedGeneration == request.Generation
}

func conflict(id string) *Waiting {
	return &Waiting{Failed: true, Reason: v1alpha1.ReasonNameConflict, Message: fmt.Sprintf(
		"a request for access to the %s exists already and does not have the labels of this Velero; a platform operator must give it back its label %s if somebody changed that, and else remove it",
		subject(id), plan.InstanceLabel)}
}

func pending(id string) *Waiting {
	reason := v1alpha1.ReasonWaitingForControlPlane
	if id == Workload {
		reason = v1alpha1.ReasonWaitingForWorkloadCluster
	}
	return &Waiting{Reason: reason, Message: fmt.Sprintf("waiting for the platform to grant access to the %s", subject(id))}
}

func subject(id string) string {
	if id == Workload {
		return "cluster that the server runs on"
	}
	return "control plane"
}

// guard puts our finalizer and labels on a kubeconfig Secret, and returns its version.
//
// helm-controller skips the uninstall when the kubeconfig Secret is gone ("skipping Helm release uninstallation"), and the deletion of a
// namespace deletes Secrets first (flux2#4793); the finalizer keeps it until Release. Our label brings it into our cache, and Flux's own
// label has Flux notice a renewed token at once.
func (a *Access) guard(ctx context.Context, names plan.Names, key types.NamespacedName) (plan.Version, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := a.client.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		// Not labelled yet, so not in the cache.
		err = a.reader.Get(ctx, key, secret)
	}
	if err != nil {
		return plan.Version{}, err
	}
	if !secret.DeletionTimestamp.IsZero() {
		if err := a.letGo(ctx, secret); err != nil {
			return plan.Version{}, err
		}
		return plan.Version{}, apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	}
	before := secret.DeepCopy()
	if guarded(secret, names) {
		if err := a.client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return plan.Version{}, err
		}
	}
	return plan.Version{UID: secret.UID, ResourceVersion: secret.ResourceVersion}, nil
}

// letGo lets a Secret go that somebody deleted to get a new one: the request stands, so its ClusterProvider makes it anew. What is deleted
// with its whole namespace does not come again, and is kept for the uninstall; so is what a HelmRelease needs that is being deleted, since Flux
// would drop that as soon as it finds the Secret missing.
func (a *Access) letGo(ctx context.Context, secret *metav1.PartialObjectMetadata) error {
	if terminating, err := a.terminating(ctx, secret.Namespace); terminating || err != nil {
		return err
	}
	releases, err := a.releasesWith(ctx, secret.Namespace, []string{secret.Name})
	if err != nil {
		return err
	}
	for i := range releases {
		if !releases[i].DeletionTimestamp.IsZero() {
			return nil
		}
	}
	return a.withoutFinalizer(ctx, secret, plan.Finalizer)
}
