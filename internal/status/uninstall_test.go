package status

import (
	"strings"
	"testing"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
)

// TestUninstallFailures: what nobody will mend by waiting names who has to do what.
func TestUninstallFailures(t *testing.T) {
	const of = "Helm uninstall failed for release velero--1/velero-server.v1 with chart velero-server@0.1.0+f675ff5211ab: "
	for name, test := range map[string]struct {
		text, reason string
		says         []string
	}{
		"Refused":     {of + "query: failed to query with labels: Unauthorized", v1alpha1.ReasonCredentialsInvalid, []string{"a platform operator must", "suspend its HelmRelease"}},
		"Forbidden":   {of + "secrets is forbidden: User \"x\" cannot list", v1alpha1.ReasonCredentialsInvalid, []string{"a platform operator must", "suspend its HelmRelease"}},
		"Unreachable": {of + "Kubernetes cluster unreachable: Get \"https://10.0.0.1\": dial tcp: i/o timeout", v1alpha1.ReasonTargetUnreachable, []string{"cannot be reached"}},
		"Timeout":     {of + "timed out waiting for the condition", "", []string{"in time", "it is tried again"}},
		// Helm keeps to itself what it could not delete, and why.
		"Undeletable": {of + "failed to delete release: velero-server", "", []string{"does not know its kind any more", "a platform operator must", "suspend its HelmRelease"}},
		"Unexplained": {of + "kaboom at 10.0.0.7", "", []string{"HelmRelease", "it is tried again"}},
	} {
		t.Run(name, func(t *testing.T) {
			reason, message := UninstallFailure(test.text)
			if reason != test.reason {
				t.Errorf("reason %q", reason)
			}
			for _, said := range test.says {
				if !strings.Contains(message, said) {
					t.Errorf("%q does not say %q", message, said)
				}
			}
			for _, internal := range []string{"10.0.0", "velero--", "https"} {
				if strings.Contains(message, internal) {
					t.Errorf("%q says %q", message, internal)
				}
			}
		})
	}
}
