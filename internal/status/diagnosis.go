package status

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// Diagnosis is why the server does not become ready, in the user's words.
type Diagnosis struct {
	Reason, Message string
}

// diagnoses are the reasons that a Diagnosis may have.
var diagnoses = []string{
	v1alpha1.ReasonImagePullFailed, v1alpha1.ReasonContainerFailed, v1alpha1.ReasonCrashLoop, v1alpha1.ReasonUnschedulable, v1alpha1.ReasonPodRejected,
}

// Told is the diagnosis that is in a status; nil when there is none.
func Told(stored []metav1.Condition) *Diagnosis {
	for _, condition := range stored {
		if condition.Type == v1alpha1.ConditionServerInstalled && slices.Contains(diagnoses, condition.Reason) {
			return &Diagnosis{Reason: condition.Reason, Message: condition.Message}
		}
	}
	return nil
}

// Unready says whether a look at the server's pod may tell more than Flux does: it waits for the server, or has given up waiting.
func Unready(observed Observation, stored []metav1.Condition) (installing, failed bool) {
	if observed.Server.HelmRelease == nil || observed.Hold != nil {
		return false, false
	}
	observed.Diagnosis = nil
	for _, one := range judge(observed, stored) {
		if one.conditionType == v1alpha1.ConditionServerInstalled {
			return one.reason == v1alpha1.ReasonInstalling, one.unready
		}
	}
	return false, false
}

// serverVerdict is the verdict on the server, with what is known beside what Flux says.
func serverVerdict(observed Observation, held verdict, stored []metav1.Condition) verdict {
	flux := server(observed.Server).verdict(held, stored)
	switch {
	case observed.Hold != nil && flux.reason == v1alpha1.ReasonInstalling:
		return observed.Hold.verdict()
	case observed.Diagnosis != nil && observed.Server.HelmRelease != nil && (flux.reason == v1alpha1.ReasonInstalling || flux.unready):
		return waiting(observed.Diagnosis.Reason, observed.Diagnosis.Message)
	default:
		return flux
	}
}

// Diagnose looks for the cause in the pods of a server. refusal is what the cluster wrote when it did not take a pod, and images are those of the
// plugins, by which their containers are known. Nothing that the cluster wrote is passed on.
func Diagnose(pods []corev1.Pod, refusal string, images map[string]string) *Diagnosis {
	pod := current(pods)
	switch {
	case pod != nil:
		return diagnosePod(pod, images)
	case refusal != "":
		return diagnosis(v1alpha1.ReasonPodRejected, "the cluster does not accept its pod: "+causeOr(refusal, "the platform operator finds the cause in its Deployment").text)
	default:
		return nil
	}
}

func diagnosis(reason, cause string) *Diagnosis {
	return &Diagnosis{reason, "the Velero server does not become ready: " + cause + "; it is tried again"}
}

// current is the newest pod that is not on its way out.
func current(pods []corev1.Pod) *corev1.Pod {
	var newest *corev1.Pod
	for i := range pods {
		pod := &pods[i]
		over := !pod.DeletionTimestamp.IsZero() || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
		if !over && (newest == nil || newest.CreationTimestamp.Before(&pod.CreationTimestamp)) {
			newest = pod
		}
	}
	return newest
}

func diagnosePod(pod *corev1.Pod, images map[string]string) *Diagnosis {
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if found := diagnoseContainer(container, subjectOf(pod, container.Name, images)); found != nil {
			return found
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable {
			return diagnosis(v1alpha1.ReasonUnschedulable, "no node of the cluster has room for its pod and may take it")
		}
	}
	return nil
}

var (
	// pullReasons and startReasons are what kubelets write of a container that waits, for ever if nobody acts.
	pullReasons  = regexp.MustCompile(`^(ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull|RegistryUnavailable|ImageInspectError|SignatureValidationFailed)$`)
	startReasons = regexp.MustCompile(`^(CreateContainerConfigError|CreateContainerError|RunContainerError|StartError|ContainerCannotRun|PostStartHookError)$`)
)

// crashes is how often a container must have ended: once, it may for a reason that is gone.
const crashes = 2

func diagnoseContainer(container corev1.ContainerStatus, subject string) *Diagnosis {
	if done(container) {
		return nil
	}
	var reason string
	if container.State.Waiting != nil {
		reason = container.State.Waiting.Reason
	}
	var last corev1.ContainerStateTerminated
	if container.LastTerminationState.Terminated != nil {
		last = *container.LastTerminationState.Terminated
	}
	switch {
	case pullReasons.MatchString(reason):
		return diagnosis(v1alpha1.ReasonImagePullFailed, "the image of "+subject+" cannot be pulled")
	case startReasons.MatchString(reason) || startReasons.MatchString(last.Reason):
		return diagnosis(v1alpha1.ReasonContainerFailed, subject+" cannot be started")
	// Whether it waits or runs at the moment does not matter, and would flap.
	case container.RestartCount < crashes:
		return nil
	case last.Reason == "OOMKilled":
		return diagnosis(v1alpha1.ReasonCrashLoop, subject+" runs out of memory again and again")
	default:
		return diagnosis(v1alpha1.ReasonCrashLoop, subject+" ends again and again")
	}
}

// done says whether a container does what it should: it runs and is ready, or it was to end and has.
func done(container corev1.ContainerStatus) bool {
	ended := container.State.Terminated
	return container.Ready || ended != nil && ended.ExitCode == 0
}

// subjectOf are the user's words for a container of chart velero-server.
func subjectOf(pod *corev1.Pod, name string, images map[string]string) string {
	if name == "velero" {
		return "the server"
	}
	for _, container := range pod.Spec.InitContainers {
		if plugin := images[container.Image]; container.Name == name && plugin != "" {
			return "plugin " + plugin
		}
	}
	if plugin, is := strings.CutPrefix(name, "plugin-"); is {
		return "plugin " + plugin
	}
	return "a container that the cluster added to its pod"
}
