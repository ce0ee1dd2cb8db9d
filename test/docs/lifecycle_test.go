package docs

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of states into test/e2e/README.md")

const (
	stateReadme = "../e2e/README.md"
	tableBegin  = "<!-- states: written by go test ./test/docs -update -->\n"
	tableEnd    = "<!-- end of the states -->\n"
)

// TestEveryStateIsListed compares the table of states with the names of the tests, which are "state | expected end".
func TestEveryStateIsListed(t *testing.T) {
	content, err := os.ReadFile(stateReadme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(content), tableBegin)
	listed, after, ends := strings.Cut(rest, tableEnd)
	if !begins || !ends {
		t.Fatalf("%s has no place for the table between %q and %q", stateReadme, tableBegin, tableEnd)
	}
	names := stateTests(t)
	if len(names) == 0 {
		t.Fatal("there is no test of a state")
	}
	want := stateTable(names)
	if *update {
		if err := os.WriteFile(stateReadme, []byte(before+tableBegin+want+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("%s is stale, go test ./test/docs -update writes it (-tests +listed):\n%s", stateReadme, diff)
	}
}

// stateTests are the names of all tests of a state, in the order of files and lines.
func stateTests(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../e2e/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	var names []string
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if name, ok := subtestName(node); ok && strings.Contains(name, " | ") {
				names = append(names, name)
			}
			return true
		})
	}
	return names
}

// subtestName is the first argument of a call of Run.
func subtestName(node ast.Node) (string, bool) {
	call, ok := node.(*ast.CallExpr)
	if !ok || len(call.Args) != 2 {
		return "", false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "Run" {
		return "", false
	}
	return text(call.Args[0]), true
}

// text of an expression of strings; what is only known at run time is an ellipsis.
func text(expression ast.Expr) string {
	switch expression := expression.(type) {
	case *ast.BinaryExpr:
		return text(expression.X) + text(expression.Y)
	case *ast.BasicLit:
		if literal, err := strconv.Unquote(expression.Value); err == nil {
			return literal
		}
	}
	return "…"
}

func stateTable(names []string) string {
	var table strings.Builder
	table.WriteString("| State | Expected end |\n|---|---|\n")
	for _, name := range names {
		state, end, _ := strings.Cut(name, " | ")
		fmt.Fprintf(&table, "| %s | %s |\n", cell(state), cell(end))
	}
	return table.String()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
