package landscape

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/openmcp-project/service-provider-velero/test/landscape/apiserver"
	"github.com/openmcp-project/service-provider-velero/test/landscape/site"
)

// OperatorRunning says whether a replica of the operator runs.
func (l *Landscape) OperatorRunning() bool {
	records, err := l.site.Processes().Records()
	if err != nil {
		return false
	}
	for _, record := range records {
		if record.Stage == site.StageOperator && record.Alive() {
			return true
		}
	}
	return false
}

// Describe prints what runs, and where kubeconfigs and logs are.
func (l *Landscape) Describe(out io.Writer) error {
	if err := l.describeProcesses(out); err != nil {
		return err
	}
	names, err := apiserver.List(l.site)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nCLUSTER\tURL\tKUBECONFIG")
	for _, name := range names {
		server, found, err := apiserver.Open(l.site, name)
		if err != nil {
			return err
		}
		if found {
			fmt.Fprintf(table, "%s\t%s\t%s\n", name, server.URL(), server.Kubeconfig())
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nregistry   %s (http)\nlogs       %s\nstate      %s\nkubectl    %s\n",
		l.Registry, l.site.Path("logs"), l.site.Dir, l.site.Programs["kubectl"])
	return nil
}

func (l *Landscape) describeProcesses(out io.Writer) error {
	records, err := l.site.Processes().Records()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nPROCESS\tPID\tSTATE\tLOG")
	for _, record := range records {
		state := "runs for " + time.Since(record.Started).Round(time.Second).String()
		if !record.Alive() {
			state = "has ended"
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\n", record.Name, record.PID, state, record.Log)
	}
	return table.Flush()
}
