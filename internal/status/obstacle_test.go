package status

import (
	"strings"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// TestObstacles: nothing is Ready behind one, and what is not known is not called failed.
func TestObstacles(t *testing.T) {
	const refuses, incomplete, unavailable = v1alpha1.ReasonPlatformRefuses, v1alpha1.ReasonPlatformIncomplete, v1alpha1.ReasonPlatformUnavailable
	absent := func(o *Observation) { o.ControlPlane, o.Server = Release{}, Release{} }
	unseen := func(o *Observation) { absent(o); o.Access = Access{} }
	blocked := func(o *Observation) { o.Blocked = &plan.Blocked{Reason: "VersionNotOffered", Message: "m"} }
	runs := func(*Observation) {}
	tests := map[string]struct {
		reason                                     string
		change                                     func(*Observation)
		phase                                      v1alpha1.InstancePhase
		ready, configuration, access, crds, server string
	}{
		"RefusedWhileItRuns":    {refuses, runs, v1alpha1.Failed, "False " + refuses, "False " + refuses, "True Granted", "True Installed", "True Installed"},
		"IncompleteWhileItRuns": {incomplete, runs, v1alpha1.Failed, "False " + incomplete, "False " + incomplete, "True Granted", "True Installed", "True Installed"},
		"IncompleteAndGone":     {incomplete, absent, v1alpha1.Failed, "False " + incomplete, "False " + incomplete, "True Granted", "False " + incomplete, "False " + incomplete},
		"IncompleteAtTheFirst":  {incomplete, unseen, v1alpha1.Failed, "False " + incomplete, "True Valid", "False " + incomplete, "False " + incomplete, "False " + incomplete},
		"OutageWhileItRuns":     {unavailable, runs, v1alpha1.Unknown, "Unknown " + unavailable, "Unknown " + unavailable, "True Granted", "True Installed", "True Installed"},
		"OutageAndGone":         {unavailable, absent, v1alpha1.Unknown, "Unknown " + unavailable, "Unknown " + unavailable, "True Granted", "Unknown " + unavailable, "Unknown " + unavailable},
		"OutageAtTheFirst":      {unavailable, unseen, v1alpha1.Unknown, "Unknown " + unavailable, "True Valid", "Unknown " + unavailable, "Unknown " + unavailable, "Unknown " + unavailable},
		"OutageWhileBlocked":    {unavailable, blocked, v1alpha1.Failed, "False VersionNotOffered", "False VersionNotOffered", "True Granted", "True Installed", "True Installed"},
		"RefusedWhileBlocked":   {refuses, blocked, v1alpha1.Failed, "False " + refuses, "False " + refuses, "True Granted", "True Installed", "True Installed"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			velero, observed := healthy(t)
			test.change(&observed)
			observed.Obstacle = ObstacleOf(test.reason, "")
			got := Compute(velero, observed, later)
			for conditionType, want := range map[string]string{
				v1alpha1.ConditionReady: test.ready, v1alpha1.ConditionConfigurationValid: test.configuration, v1alpha1.ConditionAccessGranted: test.access,
				v1alpha1.ConditionControlPlaneInstalled: test.crds, v1alpha1.ConditionServerInstalled: test.server,
			} {
				if is := brief(apimeta.FindStatusCondition(got.Conditions, conditionType)); is != want {
					t.Errorf("%s is %q, want %q", conditionType, is, want)
				}
			}
			if got.Phase != string(test.phase) {
				t.Errorf("phase %s, want %s", got.Phase, test.phase)
			}
		})
	}
}

func brief(condition *metav1.Condition) string {
	if condition == nil {
		return ""
	}
	return string(condition.Status) + " " + condition.Reason
}

// TestObstaclesAreNotPassedOn: what the platform's API server writes, or who cannot reach it, names what is nobody's business.
func TestObstaclesAreNotPassedOn(t *testing.T) {
	for reason, want := range map[string]string{
		v1alpha1.ReasonPlatformRefuses: "refuses", v1alpha1.ReasonPlatformIncomplete: "Flux is not installed", v1alpha1.ReasonPlatformUnavailable: "not known",
	} {
		for _, text := range nasty {
			obstacle := ObstacleOf(reason, text)
			if obstacle.Reason != reason || !strings.Contains(obstacle.Message, want) {
				t.Errorf("%+v, want %s with %q", obstacle, reason, want)
			}
			for _, secret := range secrets {
				if strings.Contains(obstacle.Message, secret) {
					t.Errorf("%q is passed on: %q", text, obstacle.Message)
				}
			}
		}
	}
}
