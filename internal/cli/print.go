package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/openmcp-project/service-provider-velero/internal/render"
)

// printer prints manifests: as documents of YAML, one after the other, or as one List of JSON.
type printer struct {
	out   io.Writer
	json  bool
	items []any
	count int
}

func newPrinter(out io.Writer, format string) *printer {
	return &printer{out: out, json: format == "json", items: []any{}}
}

func (p *printer) add(manifest map[string]any) error {
	if p.json {
		p.items = append(p.items, manifest)
		return nil
	}
	document, err := render.YAML(manifest)
	if err != nil {
		return err
	}
	separator := "---\n"
	if p.count == 0 {
		separator = ""
	}
	p.count++
	_, err = fmt.Fprintf(p.out, "%s%s\n", separator, document)
	return err
}

func (p *printer) close() error {
	if !p.json {
		return nil
	}
	return printJSON(p.out, map[string]any{"apiVersion": "v1", "kind": "List", "items": p.items})
}

func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}
