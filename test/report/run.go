package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
)

// event is one line of `go test -json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// run is what is known of a test run so far.
type run struct {
	out io.Writer
	// mutex: events come from several commands.
	mutex sync.Mutex
	// output of the tests that have not ended; one that passes is not worth reading.
	output map[[2]string][]string
	// skipped tests, each with its reason.
	skipped []string
	passed  int
	// failed counts by package: one may fail without any of its tests, when it does not build or crashes.
	failed map[string]int
}

func newRun(out io.Writer) *run {
	return &run{out: out, output: map[[2]string][]string{}, failed: map[string]int{}}
}

// read takes the events of any number of `go test` commands, one after another. It may be called for several at the same time.
func (r *run) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			r.take(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the test events: %w", err)
		}
	}
}

func (r *run) take(line string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var e event
	if err := json.Unmarshal([]byte(line), &e); err != nil {
		fmt.Fprint(r.out, line) // not from a test, for example a complaint of go itself
		return
	}
	key := [2]string{e.Package, e.Test}
	switch {
	case e.Action == "output" && e.Test != "":
		r.output[key] = append(r.output[key], e.Output)
	case e.Action == "output" && !noise(e.Output), e.Action == "build-output":
		fmt.Fprint(r.out, e.Output)
	case e.Test != "":
		r.end(e.Action, key)
	case e.Action == "fail":
		r.failed[e.Package] = max(r.failed[e.Package], 1)
		r.flush(e.Package)
	}
}

// noise is what a package prints when there is nothing to say about it.
func noise(output string) bool {
	return output == "PASS\n" || strings.HasSuffix(output, "\t[no test files]\n")
}

// end is told that a test passed, failed or was skipped; other actions do not end it.
func (r *run) end(action string, key [2]string) {
	switch action {
	case "pass":
		r.passed++
	case "fail":
		r.failed[key[0]]++
		fmt.Fprint(r.out, strings.Join(r.output[key], ""))
	case "skip":
		r.skipped = append(r.skipped, fmt.Sprintf("%s %s: %s", key[0], key[1], reason(r.output[key])))
	default:
		return
	}
	delete(r.output, key)
}

// flush prints what the tests of a failed package said that never ended: they ran when it crashed or took too long.
func (r *run) flush(failed string) {
	for key, output := range r.output {
		if key[0] == failed {
			fmt.Fprint(r.out, strings.Join(output, ""))
			delete(r.output, key)
		}
	}
}

// reason is what a skipped test printed, without the lines and positions that go adds.
func reason(output []string) string {
	var said []string
	for _, line := range output {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if _, text, found := strings.Cut(line, ".go:"); found {
			_, line, _ = strings.Cut(text, ": ")
		}
		said = append(said, line)
	}
	return strings.Join(said, " ")
}

func (r *run) summarize() {
	if len(r.skipped) == 0 {
		fmt.Fprintln(r.out, "\nLeft out on this machine: nothing.")
	} else {
		fmt.Fprintln(r.out, "\nLeft out on this machine, and why:")
	}
	for _, skipped := range r.skipped {
		fmt.Fprintln(r.out, "  "+skipped)
	}
	failed := 0
	for _, count := range r.failed {
		failed += count
	}
	fmt.Fprintf(r.out, "\n%d passed, %d failed, %d skipped\n", r.passed, failed, len(r.skipped))
}
