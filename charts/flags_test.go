package charts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Velero ends when it gets a flag, or the name of a controller, that it does not know. What each version knows is from its sources.
func TestArgumentsAreThoseOfTheVersion(t *testing.T) {
	h := newHelm(t)
	const values = `
server:
  disableControllers: [backup-queue]
  extraArgs:
  - --client-qps=50
  - --keep-latest-maintenance-jobs=1
  - --maintenance-job-mem-limit=1Gi
  - --backup-repository-configmap=a
  - --repo-maintenance-job-configmap=b
  - --item-block-worker-count=2
  - --volume-group-snapshot-label-key=c
  - --concurrent-backups=2
  - --global-backup-volume-policies-configmap=d
`
	const (
		maintenance = " keep-latest-maintenance-jobs maintenance-job-mem-limit"
		configMaps  = " backup-repository-configmap repo-maintenance-job-configmap"
		digest      = "@sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"
		of117       = "client-qps" + configMaps + " item-block-worker-count volume-group-snapshot-label-key"
		of118       = "disable-controllers " + of117 + " concurrent-backups"
		of1183      = of118 + " global-backup-volume-policies-configmap"
		all         = "disable-controllers client-qps" + maintenance + configMaps +
			" item-block-worker-count volume-group-snapshot-label-key concurrent-backups global-backup-volume-policies-configmap"
	)
	for image, want := range map[string]string{
		"velero/velero:v1.14.1":             "client-qps" + maintenance,
		"velero/velero:v1.15.2":             "client-qps" + maintenance + configMaps,
		"velero/velero:v1.16.0":             "client-qps" + maintenance + configMaps + " item-block-worker-count",
		"velero/velero:v1.17.0":             of117,
		"velero/velero:1.17.2":              of117,
		"localhost:5000/velero:v1.17.1":     of117,
		"velero/velero:v1.17.1" + digest:    of117,
		"velero/velero:v1.18.0":             of118,
		"velero/velero:v1.18.2":             of118,
		"velero/velero:v1.18.3":             of1183,
		"velero/velero:v1.18.3-rc.1":        of1183,
		"velero/velero:v1.18.3_vmware.1":    of1183,
		"velero/velero:v1.19.0":             of1183,
		"velero/velero:v1.20.1":             of1183,
		"velero/velero:main":                all, // nobody knows
		"velero/velero" + digest:            all,
		"10.0.0.1:1170/velero/velero:v1.18": all,
	} {
		args := podTemplate(t, h, overlay(t, server, "image: '"+image+"'"+values)).Spec.Containers[0].Args
		var got []string
		for _, arg := range args[slices.Index(args, "--log-format=text")+1:] {
			flag, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
			got = append(got, flag)
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", image, diff)
		}
	}
}

func TestFlagsOfUnknownVersionsArePassedOn(t *testing.T) {
	h := newHelm(t)
	for _, image := range []string{"velero/velero:v1.19.0", "velero/velero:latest"} {
		args := podTemplate(t, h, overlay(t, server, "image: '"+image+"'\nserver: {extraArgs: [--not-known-yet=1]}")).Spec.Containers[0].Args
		if !slices.Contains(args, "--not-known-yet=1") {
			t.Errorf("%s: %v", image, args)
		}
	}
}

func TestWhatNeedsNodesIsOff(t *testing.T) {
	h := newHelm(t)
	for _, version := range []string{"v1.14.0", "v1.17.1", "v1.18.3", "latest"} {
		args := podTemplate(t, h, overlay(t, server, "image: velero/velero:"+version)).Spec.Containers[0].Args
		if !slices.Contains(args, "--disable-controllers=backup-repo") {
			t.Errorf("%s: %v", version, args)
		}
	}
}
