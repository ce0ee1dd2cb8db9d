// Command report reads the output of `go test -json`, prints it as `go test` does, and says at the end which tests the machine did not allow
// to run, and why.
package main

import (
	"fmt"
	"os"
)

func main() {
	run := newRun(os.Stdout)
	if err := run.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
	run.summarize()
}
