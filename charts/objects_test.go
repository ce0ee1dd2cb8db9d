package charts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
)

// What the release of the chart may contain: the Roles Flux works with are made for exactly these.
var allowedKinds = map[string][]string{
	controlPlane: {"Namespace", "CustomResourceDefinition", "Deployment"},
	server: {
		"Secret", "ServiceAccount", "Service", "ConfigMap", "Deployment", "NetworkPolicy",
		"ServiceMonitor", "PrometheusRule", // opt-in
	},
}

func TestReleasesHoldOnlyTheKindsFluxMayWrite(t *testing.T) {
	for chart, kinds := range allowedKinds {
		eachCase(t, chart, func(t *testing.T, objects []object) {
			for _, o := range objects {
				if !slices.Contains(kinds, o.kind()) {
					t.Errorf("%s %s is not expected", o.kind(), o.name())
				}
				for annotation := range o.metadata("annotations") {
					if strings.HasPrefix(annotation, "helm.sh/hook") {
						t.Errorf("%s %s is a hook", o.kind(), o.name())
					}
				}
			}
		})
	}
}

var monitoringServed = []string{"--api-versions", "monitoring.coreos.com/v1/ServiceMonitor,monitoring.coreos.com/v1/PrometheusRule"}

func TestMonitoringIsCreatedWhereItIsWantedAndServed(t *testing.T) {
	h := newHelm(t)
	const wanted = "metrics: {serviceMonitor: {enabled: true}, rules: {enabled: true}}"
	for name, test := range map[string]struct {
		values string
		flags  []string
		want   string
	}{
		"wanted and served": {wanted, monitoringServed, "PrometheusRule ServiceMonitor"},
		"not wanted":        {"{}", monitoringServed, ""},
		"not served":        {wanted, nil, ""},
		"one is served":     {wanted, []string{"--api-versions", "monitoring.coreos.com/v1/PrometheusRule"}, "PrometheusRule"},
		"one is wanted":     {"metrics: {serviceMonitor: {enabled: true}}", monitoringServed, "ServiceMonitor"},
	} {
		r := overlay(t, server, test.values)
		r.flags = test.flags
		var got []string
		for _, o := range h.mustRender(t, r) {
			if strings.HasPrefix(o["apiVersion"].(string), "monitoring") {
				got = append(got, o.kind())
			}
		}
		if diff := cmp.Diff(test.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAlertsWatchTheirOwnNamespace(t *testing.T) {
	h := newHelm(t)
	r := overlay(t, server, "metrics: {rules: {enabled: true, maxBackupAgeSeconds: 7200000}}")
	r.flags = monitoringServed
	for _, o := range h.mustRender(t, r) {
		if o.kind() != "PrometheusRule" {
			continue
		}
		text := o.text(t)
		if strings.Count(text, `"expr":`) != 6 || strings.Count(text, `{namespace=\"velero--3f2a\"`) != 6 || !strings.Contains(text, "> 7200000") {
			t.Errorf("rules %s", text)
		}
		if strings.Contains(text, "VeleroDown") {
			t.Error("without a ServiceMonitor, nobody writes the metric of VeleroDown")
		}
		return
	}
	t.Error("no PrometheusRule")
}

func TestLabelsAreValid(t *testing.T) {
	h := newHelm(t)
	long := "0.1.0-" + strings.Repeat("rc.", 20) + "1+0123456789ab"
	for chart := range allowedKinds {
		for _, version := range []string{"0.1.0", "0.1.0+0123456789ab", long} {
			for _, o := range h.mustRender(t, release{chart: chart, version: version, values: []string{minimalValues(chart)}}) {
				for key, value := range o.metadata("labels") {
					if problems := validation.IsValidLabelValue(value.(string)); len(problems) > 0 {
						t.Errorf("chart version %s: %s %s: label %s=%q: %v", version, o.kind(), o.name(), key, value, problems)
					}
				}
			}
		}
	}
}

func TestControlPlaneKeepsThirteenCRDsAndTheNamespace(t *testing.T) {
	want := []string{
		"backuprepositories", "backups", "backupstoragelocations", "datadownloads", "datauploads", "deletebackuprequests",
		"downloadrequests", "podvolumebackups", "podvolumerestores", "restores", "schedules", "serverstatusrequests",
		"volumesnapshotlocations",
	}
	eachCase(t, controlPlane, func(t *testing.T, objects []object) {
		var crds []string
		for _, o := range objects {
			kept := o.metadata("annotations")["helm.sh/resource-policy"] == "keep"
			switch o.kind() {
			case "CustomResourceDefinition":
				crds = append(crds, strings.TrimSuffix(o.name(), ".velero.io"))
				fallthrough
			case "Namespace":
				if !kept {
					t.Errorf("%s %s would be deleted with the release", o.kind(), o.name())
				}
			default:
				if kept {
					t.Errorf("%s %s would stay behind", o.kind(), o.name())
				}
			}
			if o.metadata("labels")["velero.io/exclude-from-backup"] != "true" {
				t.Errorf("%s %s would be backed up", o.kind(), o.name())
			}
		}
		slices.Sort(crds)
		if diff := cmp.Diff(want, crds); diff != "" {
			t.Errorf("CRDs (-want +got):\n%s", diff)
		}
	})
}

// Servers of 1.18 move a Backup through phases older CRDs refuse: with those no backup ever starts, and nothing shows it.
func TestCRDsKnowThePhasesOfTheNewestServer(t *testing.T) {
	h := newHelm(t)
	for _, o := range h.mustRender(t, release{chart: controlPlane, values: []string{minimalValues(controlPlane)}}) {
		if o.name() == "backups.velero.io" && !strings.Contains(o.text(t), `"Queued","ReadyToStart"`) {
			t.Error("backups.velero.io does not know the phase Queued")
		}
	}
}

func TestPlaceholderIsCreatedWhereDeploymentsAreServed(t *testing.T) {
	h := newHelm(t)
	for name, test := range map[string]struct {
		flags []string
		want  bool
	}{
		"apps/v1 is served": {[]string{"--api-versions", "apps/v1/Deployment"}, true},
		"it is not":         {nil, false},
		"switched off":      {[]string{"--api-versions", "apps/v1/Deployment", "--set", "placeholder.enabled=false"}, false},
	} {
		objects := h.mustRender(t, release{chart: controlPlane, values: []string{minimalValues(controlPlane)}, flags: test.flags})
		got := slices.ContainsFunc(objects, func(o object) bool { return o.kind() == "Deployment" && o.name() == "velero" })
		if got != test.want {
			t.Errorf("%s: placeholder %v", name, got)
		}
	}
}
