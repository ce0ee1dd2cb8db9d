// Command importcrds copies Velero's CRDs into the templates of the chart velero-control-plane.
//
//	go run ./charts/importcrds -from "$(go mod download -json github.com/vmware-tanzu/velero@v1.18.3 | jq -r .Dir)"
//
// The only change it makes to a CRD is its metadata: the chart's labels, and the annotation that keeps the CRD, and with
// it every user's Backup, when the release is uninstalled.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"
)

const (
	annotations = "\n  annotations:\n"
	keep        = "    helm.sh/resource-policy: keep\n"
	spec        = "\nspec:\n"
	labels      = "\n  labels:\n    {{- include \"velero-control-plane.labels\" . | nindent 4 }}"
)

func main() {
	from := flag.String("from", "", "directory of the Velero source tree")
	to := flag.String("to", "charts/velero-control-plane/templates", "directory of the chart's templates")
	flag.Parse()
	if err := importAll(*from, *to); err != nil {
		log.Fatal(err)
	}
}

// importAll replaces every CRD template in to by the ones found in the Velero tree from.
func importAll(from, to string) error {
	sources, err := filepath.Glob(filepath.Join(from, "config/crd/*/bases/velero.io_*.yaml"))
	if err != nil {
		return err
	}
	if len(sources) == 0 {
		return fmt.Errorf("no CRDs below %q: name the root of a Velero source tree with -from", from)
	}
	stale, err := filepath.Glob(filepath.Join(to, "velero.io_*.yaml"))
	if err != nil {
		return err
	}
	for _, path := range stale {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	for _, path := range sources {
		if err := importOne(path, filepath.Join(to, filepath.Base(path))); err != nil {
			return fmt.Errorf("import %s: %w", filepath.Base(path), err)
		}
	}
	return nil
}

func importOne(source, target string) error {
	crd, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	template, err := asTemplate(string(crd))
	if err != nil {
		return err
	}
	return os.WriteFile(target, []byte(template), 0o644)
}

// asTemplate returns the CRD as a Helm template. It refuses text that Helm would evaluate.
func asTemplate(crd string) (string, error) {
	if strings.Contains(crd, "{{") {
		return "", errors.New("the CRD contains {{, which Helm would evaluate")
	}
	head, body, found := strings.Cut(crd, spec)
	if !found || !strings.Contains(head, annotations) {
		return "", errors.New("the CRD has no metadata.annotations followed by spec")
	}
	head = strings.Replace(head, annotations, annotations+keep, 1)
	return strings.TrimPrefix(head, "---\n") + labels + spec + body, nil
}
