package status

import (
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// foreign is in everything that the cluster writes of a pod.
const foreign = "https://registry.internal/token?secret=abc in namespace velero--1"

func waitingFor(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: foreign}}
}

func ended(reason string, code int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: reason, ExitCode: code, Message: foreign}}
}

var runs = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}

// pod is one with two plugins, whose init containers and server are in these states.
func pod(inits []corev1.ContainerStatus, server corev1.ContainerStatus) corev1.Pod {
	server.Name = "velero"
	for i := range inits {
		inits[i].Name = []string{"plugin-aws", "plugin-team-own-0a1b2c3d"}[i]
	}
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: earlier},
		Spec: corev1.PodSpec{InitContainers: []corev1.Container{
			{Name: "plugin-aws", Image: "reg/aws:v1"}, {Name: "plugin-team-own-0a1b2c3d", Image: "reg/own:v1"},
		}},
		Status: corev1.PodStatus{InitContainerStatuses: inits, ContainerStatuses: []corev1.ContainerStatus{server}},
	}
}

var (
	complete = corev1.ContainerStatus{State: ended("Completed", 0), Ready: true}
	initial  = corev1.ContainerStatus{State: waitingFor("PodInitializing")}
)

func unschedulable() corev1.Pod {
	pod := pod(nil, corev1.ContainerStatus{})
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: foreign}}
	return pod
}

func deletedPod() corev1.Pod {
	pod := pod(nil, corev1.ContainerStatus{State: waitingFor("ImagePullBackOff")})
	pod.CreationTimestamp, pod.DeletionTimestamp = later, &later
	return pod
}

func TestDiagnose(t *testing.T) {
	again := func(state corev1.ContainerState, restarts int32, last corev1.ContainerState) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: state, RestartCount: restarts, LastTerminationState: last}
	}
	failed := ended("Error", 1)
	for name, test := range map[string]struct {
		pods         []corev1.Pod
		refusal      string
		reason, says string
	}{
		"none yet":                   {nil, "", "", ""},
		"it comes":                   {[]corev1.Pod{pod([]corev1.ContainerStatus{initial, initial}, initial)}, "", "", ""},
		"it runs":                    {[]corev1.Pod{pod([]corev1.ContainerStatus{complete, complete}, corev1.ContainerStatus{State: runs, Ready: true, RestartCount: 7})}, "", "", ""},
		"it starts":                  {[]corev1.Pod{pod([]corev1.ContainerStatus{complete, complete}, again(runs, 1, failed))}, "", "", ""},
		"image of a plugin":          {[]corev1.Pod{pod([]corev1.ContainerStatus{{State: waitingFor("ImagePullBackOff")}, initial}, initial)}, "", v1alpha1.ReasonImagePullFailed, "the image of plugin aws cannot be pulled"},
		"image of another":           {[]corev1.Pod{pod([]corev1.ContainerStatus{complete, {State: waitingFor("ErrImagePull")}}, initial)}, "", v1alpha1.ReasonImagePullFailed, "the image of plugin team/own cannot be pulled"},
		"image of the server":        {[]corev1.Pod{pod([]corev1.ContainerStatus{complete, complete}, corev1.ContainerStatus{State: waitingFor("InvalidImageName")})}, "", v1alpha1.ReasonImagePullFailed, "the image of the server cannot be pulled"},
		"a plugin ends, waits":       {[]corev1.Pod{pod([]corev1.ContainerStatus{again(waitingFor("CrashLoopBackOff"), 3, failed), initial}, initial)}, "", v1alpha1.ReasonCrashLoop, "plugin aws ends again and again"},
		"a plugin ends, runs":        {[]corev1.Pod{pod([]corev1.ContainerStatus{again(runs, 3, failed), initial}, initial)}, "", v1alpha1.ReasonCrashLoop, "plugin aws ends again and again"},
		"a plugin ends, has ended":   {[]corev1.Pod{pod([]corev1.ContainerStatus{again(failed, 3, failed), initial}, initial)}, "", v1alpha1.ReasonCrashLoop, "plugin aws ends again and again"},
		"the server ends":            {[]corev1.Pod{pod([]corev1.ContainerStatus{complete, complete}, again(waitingFor("CrashLoopBackOff"), 5, failed))}, "", v1alpha1.ReasonCrashLoop, "the server ends again and again"},
		"the server lacks memory":    {[]corev1.Pod{pod([]corev1.ContainerStatus{complete, complete}, again(runs, 5, ended("OOMKilled", 137)))}, "", v1alpha1.ReasonCrashLoop, "the server runs out of memory"},
		"a plugin cannot be started": {[]corev1.Pod{pod([]corev1.ContainerStatus{{State: waitingFor("CreateContainerConfigError")}, initial}, initial)}, "", v1alpha1.ReasonContainerFailed, "plugin aws cannot be started"},
		"no node":                    {[]corev1.Pod{unschedulable()}, "", v1alpha1.ReasonUnschedulable, "no node of the cluster has room for its pod"},
		"the old one goes":           {[]corev1.Pod{deletedPod(), pod([]corev1.ContainerStatus{initial, initial}, initial)}, "", "", ""},
		"a rule of the cluster":      {nil, `pods "velero-1" is forbidden: violates PodSecurity "restricted:latest" ` + foreign, v1alpha1.ReasonPodRejected, "an admission rule of the cluster"},
		"a quota":                    {nil, `pods "velero-1" is forbidden: exceeded quota: ` + foreign, v1alpha1.ReasonPodRejected, "a resource quota of the cluster is exhausted"},
		"something else":             {nil, foreign, v1alpha1.ReasonPodRejected, "the platform operator finds the cause"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Diagnose(test.pods, test.refusal, map[string]string{"reg/aws:v1": "aws", "reg/own:v1": "team/own"})
			if got == nil {
				got = &Diagnosis{}
			}
			if got.Reason != test.reason || !strings.Contains(got.Message, test.says) {
				t.Errorf("%+v, want %s: %s", got, test.reason, test.says)
			}
			for _, internal := range []string{"registry", "secret", "velero--", "quota: "} {
				if strings.Contains(got.Message, internal) {
					t.Errorf("%q has %q in it", got.Message, internal)
				}
			}
		})
	}
}

func unpulled() *Diagnosis {
	return diagnosis(v1alpha1.ReasonImagePullFailed, "the image of plugin aws cannot be pulled")
}

// installingFirst is a server that Flux installs for the first time.
func installingFirst(hr *helmv2.HelmRelease) {
	hr.Status = helmv2.HelmReleaseStatus{ObservedGeneration: hr.Generation}
	ready(metav1.ConditionUnknown, "Progressing", "Running 'install' action")(hr)
}

func timedOut(hr *helmv2.HelmRelease) {
	hr.Status.History = helmv2.Snapshots{snapshot(1, "velero-server", "0.1.0", "failed")}
	ready(metav1.ConditionFalse, helmv2.InstallFailedReason, "Helm install failed: timeout waiting for: Deployment/velero--1/velero status: 'InProgress'")(hr)
}

// TestDiagnosisStaysWhileFluxTriesAgain: what Flux says alternates, and the cause is the same.
func TestDiagnosisStaysWhileFluxTriesAgain(t *testing.T) {
	velero, observed := stored(t)
	observed.Diagnosis = unpulled()
	want := outcome{metav1.ConditionFalse, v1alpha1.ReasonImagePullFailed, v1alpha1.Progressing, []string{"plugin aws"}}
	var before v1alpha1.VeleroStatus
	for i, change := range []func(*helmv2.HelmRelease){installingFirst, timedOut, installingFirst, timedOut} {
		change(observed.Server.HelmRelease)
		installing, failed := Unready(observed, velero.Status.Conditions)
		if installing == failed {
			t.Fatalf("step %d: installing %t, failed %t", i, installing, failed)
		}
		velero.Status = Compute(velero, observed, later)
		want.check(t, velero.Status, v1alpha1.ConditionServerInstalled)
		if i > 0 && Changed(conditionsOnly(before), conditionsOnly(velero.Status)) {
			t.Errorf("step %d: the status moves: %+v", i, velero.Status.Conditions)
		}
		before = velero.Status
	}
	if told := Told(velero.Status.Conditions); told == nil || *told != *unpulled() {
		t.Errorf("told is %+v", told)
	}
}

func conditionsOnly(status v1alpha1.VeleroStatus) v1alpha1.VeleroStatus {
	status.Resources = nil
	return status
}

// TestNobodyLooksWhereFluxSaysTheCause, or where all is well.
func TestNobodyLooksWhereFluxSaysTheCause(t *testing.T) {
	for name, change := range map[string]func(*Observation){
		"it runs": func(*Observation) {},
		"denied": func(o *Observation) {
			ready(metav1.ConditionFalse, helmv2.UpgradeFailedReason, "Helm upgrade failed: admission webhook denied the request")(o.Server.HelmRelease)
		},
		"suspended":     func(o *Observation) { o.Server.HelmRelease.Spec.Suspend = true },
		"there is none": func(o *Observation) { o.Server.HelmRelease = nil },
		"a change waits": func(o *Observation) {
			installingFirst(o.Server.HelmRelease)
			o.Hold = Gate(nil, []string{"backup daily-1"}, false, later.Time)
		},
		"the CRDs failed": func(o *Observation) { timedOut(o.ControlPlane.HelmRelease) },
	} {
		t.Run(name, func(t *testing.T) {
			velero, observed := stored(t)
			change(&observed)
			if installing, failed := Unready(observed, velero.Status.Conditions); installing || failed {
				t.Errorf("installing %t, failed %t", installing, failed)
			}
			before := Compute(velero, observed, later)
			observed.Diagnosis = unpulled()
			if after := Compute(velero, observed, later); Changed(before, after) {
				t.Errorf("a diagnosis takes the place of what is known: %+v", after.Conditions)
			}
		})
	}
}
