package plan_test

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

func TestHasChoice(t *testing.T) {
	const (
		digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
		crds   = `{"image":"velero/velero:v1.17.1"}`
		server = `{"image":"velero/velero:v1.17.1","plugins":[{"name":"aws","image":"host:5000/aws:v1.13.0"},{"name":"gcp","image":"gcp@` + digest + `"}]}`
	)
	chosen := plan.Plan{Version: "v1.17.1", Plugins: []plan.Plugin{{Name: "aws", Version: "v1.13.0"}, {Name: "gcp", Version: digest}}}
	with := func(change func(*plan.Plan)) plan.Plan {
		changed := chosen
		changed.Plugins = append([]plan.Plugin(nil), chosen.Plugins...)
		change(&changed)
		return changed
	}
	pinned := `{"image":"mirror.example:5000/velero:v1.17.1@` + digest + `","plugins":[{"name":"aws","image":"m/aws:v1.13.0@` + digest + `"},{"name":"gcp","image":"m/g@` + digest + `"}],"podLabels":{"a":"b"}}`
	for name, test := range map[string]struct {
		plan         plan.Plan
		crds, server string
		want         bool
	}{
		"runs":                       {chosen, crds, server, true},
		"mirrored and pinned":        {chosen, crds, pinned, true},
		"another version":            {with(func(p *plan.Plan) { p.Version = "v1.17" }), crds, server, false},
		"a digest of the version":    {with(func(p *plan.Plan) { p.Version = "v1.17.1@" + digest }), crds, server, false},
		"the CRDs of another one":    {chosen, `{"image":"velero/velero:v1.18.3"}`, server, false},
		"fewer plugins":              {with(func(p *plan.Plan) { p.Plugins = p.Plugins[:1] }), crds, server, false},
		"another plugin":             {with(func(p *plan.Plan) { p.Plugins[0].Name = "azure" }), crds, server, false},
		"another version of one":     {with(func(p *plan.Plan) { p.Plugins[0].Version = "v1.14.0" }), crds, server, false},
		"a port is no version":       {with(func(p *plan.Plan) { p.Version = "5000/velero" }), crds, `{"image":"host:5000/velero"}`, false},
		"an image that is no text":   {chosen, crds, `{"image":1}`, false},
		"values that are no objects": {chosen, crds, `[]`, false},
		"no values":                  {chosen, crds, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.plan.HasChoice(values(test.crds), values(test.server)); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func values(text string) *apiextensionsv1.JSON {
	if text == "" {
		return nil
	}
	return &apiextensionsv1.JSON{Raw: []byte(text)}
}
