package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/openmcp-project/service-provider-velero/internal/mirror"
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

const aboutList = `service-provider-velero mirror list -c PROVIDERCONFIG [--to MIRROR] [-o table|json|plain]

Prints every chart and every version of every image that a ProviderConfig needs; with --to, also where it would be in the mirror. It asks
no registry. With -o plain, each line is a reference for other tools, and with --to two: source and target.`

func mirrorList(ctx context.Context, args []string, streams Streams) error {
	var options mirrorOptions
	var output string
	flags := pflag.NewFlagSet("mirror list", pflag.ContinueOnError)
	options.register(flags)
	options.registerFrom(flags)
	flags.StringVarP(&output, "output", "o", "table", "table, json or plain")
	if err := parse(flags, aboutList, args, streams); err != nil {
		return err
	}
	if !slices.Contains([]string{"table", "json", "plain"}, output) {
		return fmt.Errorf("mirror list: -o %s is none of table, json and plain", output)
	}
	config, err := options.config(ctx, streams)
	if err != nil {
		return err
	}
	from, to, err := options.layouts()
	if err != nil {
		return err
	}
	entries, err := mirror.List(plan.Artifacts(&config.Spec), from, to)
	if err != nil {
		return err
	}
	return printEntries(streams.Out, entries, output)
}

func printEntries(out io.Writer, entries []mirror.Entry, output string) error {
	if output == "json" {
		return printJSON(out, entries)
	}
	if output == "plain" {
		for _, entry := range entries {
			if _, err := fmt.Fprintln(out, strings.TrimSpace(entry.Source+" "+entry.Target)); err != nil {
				return err
			}
		}
		return nil
	}
	rows := [][]string{{"KIND", "NAME", "VERSION", "SOURCE", "TARGET"}}
	for _, entry := range entries {
		rows = append(rows, []string{entry.Kind, entry.Name, shortVersion(entry.Version), entry.Source, entry.Target})
	}
	return printTable(out, rows)
}

// shortVersion leaves out the digest, which the source has.
func shortVersion(version string) string {
	version, _, _ = strings.Cut(version, "@")
	if len(version) > len("sha256:")+12 && strings.HasPrefix(version, "sha256:") {
		return version[:len("sha256:")+12]
	}
	return version
}

// printTable leaves out trailing columns that are empty everywhere but in the heading.
func printTable(out io.Writer, rows [][]string) error {
	width := len(rows[0])
	for width > 1 && !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[width-1] != "" }) {
		width--
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(table, strings.Join(row[:width], "\t")); err != nil {
			return err
		}
	}
	return table.Flush()
}
