package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const regressions = "../regressions.md"

var namedTest = regexp.MustCompile("`([a-z0-9/]+): (Test[A-Za-z0-9]+)(?:/([^`]+))?`")

// TestEveryRegressionHasItsTest looks for each test that the list names, and that each row of three cells names one.
func TestEveryRegressionHasItsTest(t *testing.T) {
	content, err := os.ReadFile(regressions)
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]testsOf{}
	count := 0
	for _, line := range strings.Split(string(content), "\n") {
		named := namedTest.FindAllStringSubmatch(line, -1)
		cells := strings.Count(line, " | ") + 1
		if strings.HasPrefix(line, "| ") && cells == 3 && !strings.HasSuffix(line, "| Tests |") && len(named) == 0 {
			t.Errorf("no test is named in %s", line)
		}
		for _, test := range named {
			count++
			if _, parsed := packages[test[1]]; !parsed {
				packages[test[1]] = testsIn(t, test[1])
			}
			if !packages[test[1]].has(test[2], test[3]) {
				t.Errorf("there is no test %s", test[0])
			}
		}
	}
	if count == 0 {
		t.Fatal("no test is named at all")
	}
}

// testsOf are the functions of a package, and the names of what they run.
type testsOf struct {
	functions, subtests map[string]bool
}

func (s testsOf) has(function, subtest string) bool {
	return s.functions[function] && (subtest == "" || s.subtests[subtest])
}

func testsIn(t *testing.T, directory string) testsOf {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", directory, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("package %s has no tests: %v", directory, err)
	}
	found := testsOf{functions: map[string]bool{}, subtests: map[string]bool{}}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if function, ok := node.(*ast.FuncDecl); ok && function.Recv == nil {
				found.functions[function.Name.Name] = true
			}
			for _, name := range subtestNames(node) {
				found.subtests[name] = true
			}
			return true
		})
	}
	return found
}

// subtestNames are what a node gives names to: calls of Run and of Assess, and the rows of a table.
func subtestNames(node ast.Node) []string {
	switch node := node.(type) {
	case *ast.CallExpr:
		if name, ok := subtestName(node); ok {
			state, _, _ := strings.Cut(name, " | ")
			return []string{name, state}
		}
		if selector, ok := node.Fun.(*ast.SelectorExpr); ok && selector.Sel.Name == "Assess" && len(node.Args) == 2 {
			return []string{text(node.Args[0])}
		}
	case *ast.KeyValueExpr:
		if _, literal := node.Key.(*ast.BasicLit); literal {
			return []string{text(node.Key)}
		}
	}
	return nil
}
