package cluster

import (
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestUninstalling(t *testing.T) {
	tests := map[string]struct {
		conditions []metav1.Condition
		failed     bool
	}{
		"Nothing":         {nil, false},
		"StillInstalled":  {[]metav1.Condition{{Type: fluxmeta.ReadyCondition, Status: metav1.ConditionTrue, Reason: helmv2.InstallSucceededReason, Message: "flux"}}, false},
		"FailedBefore":    {[]metav1.Condition{{Type: fluxmeta.ReadyCondition, Status: metav1.ConditionFalse, Reason: helmv2.UpgradeFailedReason, Message: "flux"}}, false},
		"UninstallFailed": {[]metav1.Condition{{Type: fluxmeta.ReadyCondition, Status: metav1.ConditionFalse, Reason: helmv2.UninstallFailedReason, Message: "flux"}}, true},
		"UninstallBegins": {[]metav1.Condition{{Type: fluxmeta.ReadyCondition, Status: metav1.ConditionUnknown, Reason: helmv2.UninstallFailedReason, Message: "flux"}}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			progress := uninstalling(&helmv2.HelmRelease{Status: helmv2.HelmReleaseStatus{Conditions: test.conditions}})
			if progress.Done || (progress.Failure == "flux") != test.failed || progress.Detail != "" {
				t.Errorf("progress is %+v", progress)
			}
		})
	}
}
