package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// failures are what Flux runs into.
func failures(t *testing.T) {
	badValues(t)
	// Flux tries again after a minute. That is waited for side by side.
	for _, each := range []func(*testing.T){denials, drift, conflict, occupied, timeout} {
		t.Run("side by side", func(t *testing.T) {
			t.Parallel()
			each(t)
		})
	}
}

func badValues(t *testing.T) {
	tenant := newTenant(t, "failures", "values")
	tenant.order(t)
	t.Run("failure: values that the chart does not accept | UpgradeFailed, the server is left alone, Ready once they are corrected", func(t *testing.T) {
		pod := tenant.podState(t)
		setServerValues(t, `{"resources":"lots"}`)
		tenant.awaitCondition(t, v1alpha1.ConditionServerInstalled, metav1.ConditionFalse, v1alpha1.ReasonUpgradeFailed, "does not accept the configured values")
		tenant.awaitPhase(t, v1alpha1.Failed)
		setServerValues(t, "")
		tenant.awaitReady(t)
		tenant.assertNotRestarted(t, pod)
	})
	tenant.leave(t)
}

func denials(t *testing.T) {
	tenant := newTenant(t, "failures", "denied")
	tenant.order(t)
	t.Run("failure: the cluster denies an update | UpgradeFailed, Ready once it is permitted", func(t *testing.T) {
		rule := denyDeployments(t, tenant, "UPDATE")
		tenant.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = newVersion })
		tenant.awaitCondition(t, v1alpha1.ConditionServerInstalled, metav1.ConditionFalse, v1alpha1.ReasonUpgradeFailed, "an admission rule of the cluster")
		tenant.awaitPhase(t, v1alpha1.Failed)
		rule.remove(t)
		tenant.awaitRunning(t, newVersion)
	})
	t.Run("failure: Flux gave up on a release | Stalled, Ready once the cause is gone", func(t *testing.T) {
		// What Flux is told by us never ends so. A person has edited the HelmRelease while nothing could be applied.
		tenant.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = "v9.9.9" })
		tenant.awaitCondition(t, v1alpha1.ConditionConfigurationValid, metav1.ConditionFalse, v1alpha1.ReasonVersionNotOffered)
		rule := denyDeployments(t, tenant, "UPDATE")
		tenant.editRelease(t, func(spec *helmv2.HelmReleaseSpec) {
			spec.Upgrade.Strategy, spec.Upgrade.Remediation = nil, nil
			spec.Values = &apiextensionsv1.JSON{Raw: append(spec.Values.Raw[:len(spec.Values.Raw)-1], `,"podAnnotations":{"edited":"by hand"}}`...)}
		})
		tenant.awaitCondition(t, v1alpha1.ConditionServerInstalled, metav1.ConditionFalse, v1alpha1.ReasonStalled, "an admission rule of the cluster")
		rule.remove(t)
		tenant.change(t, func(spec *v1alpha1.VeleroSpec) { spec.Version = oldVersion })
		tenant.awaitReady(t)
		deployment, err := tenant.deployment(t.Context())
		must(t, err)
		if edited := deployment.Spec.Template.Annotations["edited"]; edited != "" {
			t.Errorf("the edit of the HelmRelease is on the cluster")
		}
	})
	tenant.leave(t)
}

// drift is what is changed by hand on the targets.
func drift(t *testing.T) {
	tenant := newTenant(t, "failures", "drifting")
	tenant.order(t)
	tenant.changePollInterval(t, 10*time.Second)
	t.Run("drift: the Deployment is deleted by hand | it is back, and the status has not moved", func(t *testing.T) {
		before, err := tenant.velero(t.Context())
		must(t, err)
		tenant.deleteDeployment(t)
		tenant.awaitAvailable(t)
		tenant.awaitQuiet(t)
		after, err := tenant.velero(t.Context())
		must(t, err)
		if before.ResourceVersion != after.ResourceVersion {
			t.Errorf("the Velero was written: was %+v, is %+v", before.Status, after.Status)
		}
	})
	t.Run("drift: Helm's records are deleted by hand | the release is recorded again, and the pod is not restarted", func(t *testing.T) {
		pod := tenant.podState(t)
		records := &corev1.Secret{}
		selected := []client.DeleteAllOfOption{client.InNamespace(tenant.names.WorkloadNamespace), client.MatchingLabels{"owner": "helm"}}
		must(t, workload.DeleteAllOf(t.Context(), records, selected...))
		eventually(t, retried, "the release is recorded again", func(ctx context.Context) error {
			var found corev1.SecretList
			if err := workload.List(ctx, &found, client.InNamespace(tenant.names.WorkloadNamespace), client.MatchingLabels{"owner": "helm", "status": "deployed"}); err != nil {
				return err
			}
			if len(found.Items) == 0 {
				return errors.New("there is no record")
			}
			return nil
		})
		tenant.awaitReady(t)
		tenant.assertNotRestarted(t, pod)
	})
	t.Run("drift: the cluster denies the correction | UpgradeFailed, Ready once it is permitted", func(t *testing.T) {
		rule := denyDeployments(t, tenant, "CREATE")
		tenant.deleteDeployment(t)
		tenant.awaitCondition(t, v1alpha1.ConditionServerInstalled, metav1.ConditionFalse, v1alpha1.ReasonUpgradeFailed, "Flux cannot change it back")
		rule.remove(t)
		tenant.awaitAvailable(t)
		tenant.awaitReady(t)
	})
	tenant.changePollInterval(t, 10*time.Minute)
	tenant.leave(t)
}

// changePollInterval waits until Flux has taken it up.
func (s tenant) changePollInterval(t *testing.T, interval time.Duration) {
	t.Helper()
	changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) { spec.PollInterval = &metav1.Duration{Duration: interval} })
	eventually(t, soon, "Flux is told the interval", func(ctx context.Context) error {
		for _, name := range []string{plan.ControlPlaneRelease, plan.ServerRelease} {
			release, err := s.helmRelease(ctx, name)
			if err != nil {
				return err
			}
			if release.Spec.Interval.Duration != interval {
				return fmt.Errorf("that of %s is %s", name, release.Spec.Interval.Duration)
			}
		}
		return nil
	})
	s.awaitQuiet(t)
	s.awaitReady(t)
}

// conflict: on the shared cluster, nothing that exists already is ours; on the control plane, only the namespace and Velero's CRDs are.
func conflict(t *testing.T) {
	t.Run("failure: a Deployment of that name is there already | InstallFailed, it is left alone, Ready once it is gone", func(t *testing.T) {
		tenant := newTenant(t, "failures", "taken")
		must(t, ensure(t.Context(), workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant.names.WorkloadNamespace}}))
		foreign := foreignDeployment(tenant.names.WorkloadNamespace)
		must(t, workload.Create(t.Context(), foreign))
		tenant.orderControlPlane(t)
		tenant.orderVelero(t, oldVersion)
		tenant.awaitCondition(t, v1alpha1.ConditionServerInstalled, metav1.ConditionFalse, v1alpha1.ReasonInstallFailed, "belongs to somebody else")
		tenant.awaitPhase(t, v1alpha1.Failed)
		deployment, err := tenant.deployment(t.Context())
		must(t, err)
		if deployment.UID != foreign.UID || deployment.Generation != foreign.Generation || len(deployment.Labels) > 0 {
			t.Errorf("the foreign Deployment was changed: %+v", deployment.ObjectMeta)
		}
		must(t, workload.Delete(t.Context(), foreign))
		tenant.awaitReady(t)
		tenant.leave(t)
	})
	t.Run("failure: the control plane has a Deployment of that name already | InstallFailed, it is left alone, Ready once it is gone", func(t *testing.T) {
		tenant := newTenant(t, "upgrade", "occupied")
		tenant.orderControlPlane(t)
		controlPlane := tenant.awaitControlPlane(t)
		foreign := foreignDeployment("velero")
		must(t, ensure(t.Context(), controlPlane, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: foreign.Namespace}}))
		must(t, controlPlane.Create(t.Context(), foreign))
		tenant.orderVelero(t, oldVersion)
		tenant.awaitCondition(t, v1alpha1.ConditionControlPlaneInstalled, metav1.ConditionFalse, v1alpha1.ReasonInstallFailed, "belongs to somebody else, who must remove it first")
		tenant.awaitPhase(t, v1alpha1.Failed)
		left := &appsv1.Deployment{}
		must(t, controlPlane.Get(t.Context(), client.ObjectKeyFromObject(foreign), left))
		if left.UID != foreign.UID || left.Generation != foreign.Generation || len(left.Labels) > 0 {
			t.Errorf("the foreign Deployment was changed: %+v", left.ObjectMeta)
		}
		must(t, controlPlane.Delete(t.Context(), foreign))
		tenant.awaitReady(t)
		tenant.leave(t)
	})
}

// occupied: what is not ours in the tenant namespace is in nobody's cache.
func occupied(t *testing.T) {
	t.Run("failure: somebody has a Secret of a name that is needed | NameConflict with its name, Ready once it is gone", func(t *testing.T) {
		tenant := newTenant(t, "failures", "occupied")
		tenant.orderControlPlane(t)
		foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tenant.names.TenantNamespace, Name: "sp-velero-server-values"}}
		eventually(t, installed, "the tenant namespace is there", func(ctx context.Context) error { return platform.Create(ctx, foreign.DeepCopy()) })
		tenant.orderVelero(t, oldVersion)
		eventually(t, installed, "the conflict is told", func(ctx context.Context) error {
			velero, err := tenant.velero(ctx)
			if err != nil {
				return err
			}
			return hasCondition(velero, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonNameConflict)
		})
		must(t, platform.Delete(t.Context(), foreign))
		tenant.awaitReady(t)
		tenant.leave(t)
	})
}

func foreignDeployment(namespace string) *appsv1.Deployment {
	labels := map[string]string{"app": "somebody-elses"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "velero"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example/somebody-elses:v1"}}},
			},
		},
	}
}

// setServerValues sets the ProviderConfig's extra values of the server chart, or takes them away.
func setServerValues(t *testing.T, values string) {
	t.Helper()
	changeOffer(t, func(spec *v1alpha1.ProviderConfigSpec) {
		spec.Values = nil
		if values != "" {
			spec.Values = &v1alpha1.ChartValues{Server: &apiextensionsv1.JSON{Raw: []byte(values)}}
		}
	})
}

// editRelease edits the server's HelmRelease by hand.
func (s tenant) editRelease(t *testing.T, edit func(*helmv2.HelmReleaseSpec)) {
	t.Helper()
	eventually(t, soon, "edit the HelmRelease", func(ctx context.Context) error {
		release, err := s.helmRelease(ctx, plan.ServerRelease)
		if err != nil {
			return err
		}
		edit(&release.Spec)
		return platform.Update(ctx, release)
	})
}

func (s tenant) awaitPhase(t *testing.T, phase v1alpha1.InstancePhase) {
	t.Helper()
	eventually(t, soon, fmt.Sprintf("%s is %s", s, phase), func(ctx context.Context) error {
		velero, err := s.velero(ctx)
		if err == nil && velero.Status.Phase != string(phase) {
			err = fmt.Errorf("phase is %s", velero.Status.Phase)
		}
		return err
	})
}

func (s tenant) pods(ctx context.Context) ([]corev1.Pod, error) {
	var pods corev1.PodList
	err := workload.List(ctx, &pods, client.InNamespace(s.names.WorkloadNamespace))
	return pods.Items, err
}

func (s tenant) deleteDeployment(t *testing.T) {
	t.Helper()
	deployment, err := s.deployment(t.Context())
	must(t, err)
	must(t, workload.Delete(t.Context(), deployment))
	eventually(t, soon, "the Deployment is gone", func(ctx context.Context) error {
		found, err := s.deployment(ctx)
		if err == nil && found.UID == deployment.UID {
			return errors.New("it is still there")
		}
		return client.IgnoreNotFound(err)
	})
}

// awaitAvailable waits for the server, for as long as Flux may take to find out that it is missing.
func (s tenant) awaitAvailable(t *testing.T) {
	t.Helper()
	eventually(t, retried, "the server is available", func(ctx context.Context) error {
		deployment, err := s.deployment(ctx)
		if err == nil && deployment.Status.AvailableReplicas != 1 {
			err = errors.New("it is not available")
		}
		return err
	})
}

// awaitQuiet waits until Flux has nothing to do for the tenant, and the operator nothing to tell about it.
func (s tenant) awaitQuiet(t *testing.T) {
	t.Helper()
	eventually(t, retried, "Flux is content", func(ctx context.Context) error {
		for _, name := range []string{plan.ControlPlaneRelease, plan.ServerRelease} {
			release, err := s.helmRelease(ctx, name)
			if err != nil {
				return err
			}
			ready, reconciling := apimeta.IsStatusConditionTrue(release.Status.Conditions, "Ready"), apimeta.IsStatusConditionTrue(release.Status.Conditions, "Reconciling")
			if !ready || reconciling || release.Status.ObservedGeneration != release.Generation {
				return fmt.Errorf("%s is not: %+v", name, release.Status.Conditions)
			}
		}
		return nil
	})
	time.Sleep(settle)
}

const nodeLabel = "test.velero.services.openmcp.cloud/needs"

// timeout has a server that finds no node, and Flux not wait for five minutes, which is what it does otherwise.
func timeout(t *testing.T) {
	tenant := newTenant(t, "failures", "slow")
	server := only(tenant.names.TenantNamespace, helmv2.GroupVersion.Group, helmv2.GroupVersion.Version, "helmreleases", admissionregistrationv1.Create, admissionregistrationv1.Update)
	pods := only(tenant.names.WorkloadNamespace, "", "v1", "pods", admissionregistrationv1.Create)
	t.Run("failure: no node takes the server's pod | Unschedulable, and its cause for as long as Flux tries again", func(t *testing.T) {
		admissionRule{platform, setField("hurry", server, "/spec/timeout", `"10s"`)}.create(t)
		admissionRule{workload, setField("pin", pods, "/spec/nodeSelector", fmt.Sprintf(`{%q: "here"}`, nodeLabel))}.create(t)
		tenant.orderControlPlane(t)
		tenant.orderVelero(t, oldVersion, aws)
		tenant.awaitCondition(t, v1alpha1.ConditionServerInstalled, metav1.ConditionFalse, v1alpha1.ReasonUnschedulable, "no node of the cluster has room", "it is tried again")
		tenant.awaitPhase(t, v1alpha1.Progressing)
	})
	t.Run("failure: an image cannot be pulled | ImagePullFailed with the plugin's name, Ready once it can", func(t *testing.T) {
		tenant.failPull(t, "plugin-aws")
		tenant.awaitCondition(t, v1alpha1.ConditionServerInstalled, metav1.ConditionFalse, v1alpha1.ReasonImagePullFailed, "the image of plugin aws cannot be pulled", "it is tried again")
		labelNode(t, `"here"`)
		defer labelNode(t, "null")
		tenant.awaitReady(t)
	})
	tenant.leave(t)
}

func labelNode(t *testing.T, value string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}}
	must(t, workload.Patch(t.Context(), node, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+nodeLabel+`":`+value+`}}}`))))
}
