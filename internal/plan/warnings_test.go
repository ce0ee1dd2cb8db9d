package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestWarnings(t *testing.T) {
	const aws = "reg.example:5000/velero/velero-plugin-for-aws"
	digest := "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, test := range map[string]struct {
		server  string
		plugins []Plugin
		want    []string
	}{
		"no plugins":  {"v1.17.1", nil, nil},
		"a match":     {"v1.17.1", []Plugin{{"aws", "v1.13.0", aws + ":v1.13.0"}}, nil},
		"the next":    {"v1.18.3", []Plugin{{"aws", "v1.14.3", aws + ":v1.14.3"}, {"gcp", "v1.14.0", "velero-plugin-for-gcp:v1.14.0"}}, nil},
		"pinned":      {"v1.17.1" + digest, []Plugin{{"aws", "v1.13.0" + digest, aws + ":v1.13.0" + digest}}, nil},
		"too old":     {"v1.18.3", []Plugin{{"aws", "v1.13.0", aws + ":v1.13.0"}}, []string{"plugin aws v1.13.0 is made for Velero v1.17, not for v1.18.3; choose v1.14.x of it if that is offered"}},
		"too new":     {"v1.17.1", []Plugin{{"azure", "v1.14.0", "velero-plugin-for-microsoft-azure:v1.14.0"}}, []string{"plugin azure v1.14.0 is made for Velero v1.18, not for v1.17.1; choose v1.13.x of it if that is offered"}},
		"corrupts":    {"v1.18.3", []Plugin{{"s3", "v1.14.2", aws + ":v1.14.2"}}, []string{"plugin s3 v1.14.2 corrupts backups on object stores that are not Amazon's; choose v1.14.3 or newer if that is offered"}},
		"once only":   {"v1.17.1", []Plugin{{"aws", "v1.14.1", aws + ":v1.14.1"}}, []string{"plugin aws v1.14.1 cannot write to some object stores that are not Amazon's; choose v1.14.3 or newer if that is offered"}},
		"merged":      {"v1.14.0", []Plugin{{"csi", "v0.7.1", "velero-plugin-for-csi:v0.7.1"}}, []string{"plugin csi v0.7.1 is a part of Velero since v1.14, which ends when it is installed too; leave it out"}},
		"before that": {"v1.13.2", []Plugin{{"csi", "v0.7.1", "velero-plugin-for-csi:v0.7.1"}}, nil},
		"two": {"v1.18.3", []Plugin{{"aws", "v1.13.0", aws + ":v1.13.0"}, {"gcp", "v1.12.1", "velero-plugin-for-gcp:v1.12.1"}}, []string{
			"plugin aws v1.13.0 is made for Velero v1.17, not for v1.18.3; choose v1.14.x of it if that is offered",
			"plugin gcp v1.12.1 is made for Velero v1.16, not for v1.18.3; choose v1.14.x of it if that is offered",
		}},
		"of somebody else":   {"v1.18.3", []Plugin{{"aws", "v1.13.0", "reg.example/our-own-aws:v1.13.0"}, {"kubevirt", "v0.8.0", "kubevirt-velero-plugin:v0.8.0"}}, nil},
		"only a digest":      {"v1.18.3", []Plugin{{"aws", digest[1:], aws + digest}}, nil},
		"a server by digest": {digest[1:], []Plugin{{"aws", "v1.13.0", aws + ":v1.13.0"}, {"csi", "v0.7.1", "velero-plugin-for-csi:v0.7.1"}}, nil},
		"no releases":        {"main", []Plugin{{"aws", "latest", aws + ":latest"}}, nil},
		"a candidate":        {"v1.18.0-rc.1", []Plugin{{"aws", "v1.14.0-rc.1", aws + ":v1.14.0-rc.1"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			plan := &Plan{Version: test.server, Plugins: test.plugins}
			if diff := cmp.Diff(test.want, plan.Warnings(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestChangeIsNamed(t *testing.T) {
	plan := &Plan{Version: "v1.18.3", Plugins: []Plugin{{"aws", "v1.14.3", "aws:v1.14.3"}}}
	for name, test := range map[string]struct{ values, want string }{
		"version":        {`{"image":"velero:v1.17.1","plugins":[{"name":"aws","image":"aws:v1.13.0"}]}`, "version v1.18.3 is installed"},
		"plugin version": {`{"image":"velero:v1.18.3","plugins":[{"name":"aws","image":"aws:v1.13.0"}]}`, "the change of the plugins is made"},
		"one more":       {`{"image":"velero:v1.18.3","plugins":[]}`, "the change of the plugins is made"},
		"one fewer":      {`{"image":"velero:v1.18.3","plugins":[{"name":"aws","image":"aws:v1.14.3"},{"name":"b","image":"b:v1"}]}`, "the change of the plugins is made"},
		"the rest":       {`{"image":"velero:v1.18.3","plugins":[{"name":"aws","image":"aws:v1.14.3"}],"resources":{}}`, "a change by the platform operator is made"},
		"edited by hand": {`"nonsense"`, "a change by the platform operator is made"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan.Change(&apiextensionsv1.JSON{Raw: []byte(test.values)}); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
