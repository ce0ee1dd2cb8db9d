// Package docs checks that the README says what is so.
package docs

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	providerv1alpha1 "github.com/openmcp-project/openmcp-operator/api/provider/v1alpha1"

	"github.com/openmcp-project/service-provider-velero/api/v1alpha1"
	"github.com/openmcp-project/service-provider-velero/internal/cli"
)

func TestConditionsAndReasonsAreExplained(t *testing.T) {
	declared := constants(t, "../../api/v1alpha1/conditions.go")
	for heading, prefix := range map[string]string{"### Conditions": "Condition", "### Reasons": "Reason"} {
		var want []string
		for name, value := range declared {
			if strings.HasPrefix(name, prefix) {
				want = append(want, value)
			}
		}
		slices.Sort(want)
		explained := firstCells(section(t, heading))
		slices.Sort(explained)
		if diff := cmp.Diff(want, explained); diff != "" {
			t.Errorf("README section %q (-declared +explained):\n%s", heading, diff)
		}
	}
}

func TestPhasesAreExplained(t *testing.T) {
	var want []string
	for _, phase := range []v1alpha1.InstancePhase{
		v1alpha1.Pending, v1alpha1.Progressing, v1alpha1.Ready, v1alpha1.Failed, v1alpha1.Terminating, v1alpha1.Unknown,
	} {
		want = append(want, string(phase))
	}
	if diff := cmp.Diff(want, firstCells(section(t, "## For end users"))); diff != "" {
		t.Errorf("phases in the README (-declared +explained):\n%s", diff)
	}
}

func TestManifestsHaveOnlyFieldsThatExist(t *testing.T) {
	kinds := map[string]int{}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(readme(t), -1) {
		var meta struct{ Kind string }
		if err := yaml.Unmarshal([]byte(block[1]), &meta); err != nil {
			t.Errorf("manifest in the README: %v\n%s", err, block[1])
			continue
		}
		kinds[meta.Kind]++
		into := map[string]any{
			"Velero": &v1alpha1.Velero{}, "ProviderConfig": &v1alpha1.ProviderConfig{}, "ServiceProvider": &providerv1alpha1.ServiceProvider{},
		}[meta.Kind]
		if err := yaml.UnmarshalStrict([]byte(block[1]), into); err != nil {
			t.Errorf("%s in the README: %v", meta.Kind, err)
		}
	}
	if diff := cmp.Diff(map[string]int{"Velero": 1, "ServiceProvider": 1, "ProviderConfig": 2}, kinds); diff != "" {
		t.Errorf("manifests in the README (-want +got):\n%s", diff)
	}
}

func TestTargetsExist(t *testing.T) {
	content, err := os.ReadFile("../../Taskfile.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var taskfile struct {
		Tasks map[string]struct{ Desc string }
	}
	if err := yaml.Unmarshal(content, &taskfile); err != nil {
		t.Fatal(err)
	}
	for name, task := range taskfile.Tasks {
		if task.Desc == "" {
			t.Errorf("target %s has no description", name)
		}
	}
	for _, match := range regexp.MustCompile(`\./task ([a-z][a-z0-9:-]*)`).FindAllStringSubmatch(readme(t), -1) {
		if _, exists := taskfile.Tasks[match[1]]; !exists {
			t.Errorf("the README names target %s, which is none of %v", match[1], slices.Sorted(maps.Keys(taskfile.Tasks)))
		}
	}
}

// TestCommandsExist has every command with every flag of the README in the program's own help.
func TestCommandsExist(t *testing.T) {
	commands := map[string]func(context.Context, []string, cli.Streams) error{"render": cli.Render, "mirror": cli.Mirror}
	blocks := strings.ReplaceAll(strings.Join(regexp.MustCompile("(?s)```sh\n.*?```").FindAllString(readme(t), -1), "\n"), "\\\n", " ")
	found := 0
	for _, match := range regexp.MustCompile(`service-provider-velero (render|mirror)( [a-z]+)?( .*)`).FindAllStringSubmatch(blocks, -1) {
		found++
		var help strings.Builder
		args := append(strings.Fields(match[2]), "--help")
		if err := commands[match[1]](t.Context(), args, cli.Streams{Out: &help, Err: t.Output()}); err != nil {
			t.Errorf("%s: %v", match[0], err)
			continue
		}
		for _, flag := range regexp.MustCompile(` (--?[a-z-]+)`).FindAllStringSubmatch(match[3], -1) {
			if flag[1] != "-" && !regexp.MustCompile(`(^|\s)`+flag[1]+`[\s,]`).MatchString(help.String()) {
				t.Errorf("%s has no flag %s", match[0], flag[1])
			}
		}
	}
	if found < 4 {
		t.Errorf("the README names %d commands only", found)
	}
}

func TestLinkedFilesExist(t *testing.T) {
	for _, match := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(readme(t), -1) {
		if _, err := os.Stat("../../" + match[1]); err != nil {
			t.Errorf("the README links to %s: %v", match[1], err)
		}
	}
}

func readme(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// section is what stands under a heading, down to the next one.
func section(t *testing.T, heading string) string {
	t.Helper()
	_, rest, found := strings.Cut(readme(t), "\n"+heading+"\n")
	if !found {
		t.Fatalf("the README has no section %q", heading)
	}
	text, _, _ := strings.Cut(rest, "\n#")
	return text
}

// firstCells are the code words that the rows of a table begin with.
func firstCells(text string) []string {
	var cells []string
	for _, match := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|").FindAllStringSubmatch(text, -1) {
		cells = append(cells, match[1])
	}
	return cells
}

// constants are the string constants that a Go file declares, by name.
func constants(t *testing.T, path string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			values[name.Name], err = strconv.Unquote(spec.Values[i].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatalf("%s: constant %s: %v", path, name.Name, err)
			}
		}
		return false
	})
	return values
}
