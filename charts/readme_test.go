package charts_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const (
	valuesBegin = "<!-- values: written by go test ./charts -update -->\n"
	valuesEnd   = "<!-- end of the values -->\n"
)

// schema is what the table of values needs of a values.schema.json.
type schema struct {
	Ref         string            `json:"$ref"`
	Comment     string            `json:"$comment"`
	Description string            `json:"description"`
	Type        any               `json:"type"`
	Required    []string          `json:"required"`
	Properties  properties        `json:"properties"`
	Items       *schema           `json:"items"`
	Definitions map[string]schema `json:"definitions"`
}

// properties are in the order of the file.
type properties []property

type property struct {
	name string
	schema
}

func (p *properties) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if _, err := decoder.Token(); err != nil {
		return err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		entry := property{name: fmt.Sprint(name)}
		if err := decoder.Decode(&entry.schema); err != nil {
			return err
		}
		*p = append(*p, entry)
	}
	return nil
}

func TestReadmeListsEveryValue(t *testing.T) {
	for _, chart := range []string{controlPlane, server} {
		path := filepath.Join(chart, "README.md")
		before, rest, begins := strings.Cut(string(read(t, path)), valuesBegin)
		listed, after, ends := strings.Cut(rest, valuesEnd)
		if !begins || !ends {
			t.Fatalf("%s has no place for the table between %q and %q", path, valuesBegin, valuesEnd)
		}
		want := valuesTable(t, chart)
		if *update {
			if err := os.WriteFile(path, []byte(before+valuesBegin+want+valuesEnd+after), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if diff := cmp.Diff(want, listed); diff != "" {
			t.Errorf("%s is stale, go test ./charts -update writes it (-schema +listed):\n%s", path, diff)
		}
	}
}

// Every default is documented, and every documented value has a default or is required.
func TestSchemaAndDefaultsListTheSameValues(t *testing.T) {
	for _, chart := range []string{controlPlane, server} {
		var defaults, documented []string
		for _, path := range defaultPaths(t, chart) {
			defaults = append(defaults, strings.Join(path, "."))
		}
		walk(readSchema(t, chart), "", func(path string, _ property, required bool) {
			isDefault := slices.Contains(defaults, path)
			documented = append(documented, path)
			if !isDefault && !required && !strings.Contains(path, "[]") {
				t.Errorf("%s: %s has no default", chart, path)
			}
		})
		for _, path := range defaults {
			isGroup := slices.ContainsFunc(documented, func(d string) bool { return strings.HasPrefix(d, path+".") })
			ofUser := slices.ContainsFunc(documented, func(d string) bool { return strings.HasPrefix(path, d+".") })
			if !isGroup && !ofUser && !slices.Contains(documented, path) {
				t.Errorf("%s: %s is not in the schema", chart, path)
			}
		}
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func readSchema(t *testing.T, chart string) schema {
	t.Helper()
	var s schema
	if err := json.Unmarshal(read(t, filepath.Join(chart, "values.schema.json")), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// walk visits all values that hold no group of others.
func walk(s schema, above string, visit func(path string, p property, required bool)) {
	for _, p := range s.Properties {
		path := above + p.name
		switch described := func(below properties) bool { return len(below) > 0 && below[0].Description != "" }; {
		case described(p.Properties):
			walk(p.schema, path+".", visit)
		case p.Items != nil && described(p.Items.Properties):
			visit(path, p, slices.Contains(s.Required, p.name))
			walk(*p.Items, path+"[].", visit)
		default:
			visit(path, p, slices.Contains(s.Required, p.name))
		}
	}
}

func valuesTable(t *testing.T, chart string) string {
	t.Helper()
	var defaults map[string]any
	if err := yaml.Unmarshal(read(t, filepath.Join(chart, "values.yaml")), &defaults); err != nil {
		t.Fatal(err)
	}
	root := readSchema(t, chart)
	var table strings.Builder
	table.WriteString("| value | type | default | meaning |\n|---|---|---|---|\n")
	walk(root, "", func(path string, p property, required bool) {
		meaning := p.Description
		if strings.HasPrefix(p.Comment, "Sensitive") {
			meaning += ". **Sensitive**"
		}
		row := []string{"`" + path + "`", typeOf(root, p.schema), defaultOf(t, defaults, path, required), meaning}
		for i, cell := range row {
			row[i] = strings.ReplaceAll(cell, "|", `\|`)
		}
		table.WriteString("| " + strings.Join(row, " | ") + " |\n")
	})
	return table.String()
}

func typeOf(root, s schema) string {
	if name, isRef := strings.CutPrefix(s.Ref, "#/definitions/"); isRef {
		if name == "quantity" || name == "cidr" {
			return name
		}
		return typeOf(root, root.Definitions[name])
	}
	switch {
	case s.Type == nil:
		return "string" // an enum
	case s.Items != nil && len(s.Items.Properties) == 0:
		return "list of " + typeOf(root, *s.Items)
	case s.Items != nil:
		return "list"
	}
	return fmt.Sprint(s.Type)
}

func defaultOf(t *testing.T, defaults map[string]any, path string, required bool) string {
	t.Helper()
	var value any = defaults
	for key := range strings.SplitSeq(path, ".") {
		group, _ := value.(map[string]any)
		value = group[key]
	}
	switch {
	case value != nil:
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return "`" + string(text) + "`"
	case required:
		return "required"
	}
	return ""
}
