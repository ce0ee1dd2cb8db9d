package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const nothingLeftOut = "\nLeft out on this machine: nothing.\n"

func TestReport(t *testing.T) {
	for _, test := range []struct {
		name   string
		events []string
		want   string
	}{{
		name: "passing tests are silent",
		events: []string{
			`{"Action":"run","Package":"p","Test":"TestA"}`,
			`{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}`,
			`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: chatter\n"}`,
			`{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}`,
			`{"Action":"output","Package":"p","Output":"PASS\n"}`,
			`{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}`,
			`{"Action":"pass","Package":"p","Elapsed":0.1}`,
			`{"Action":"output","Package":"q","Output":"?   \tq\t[no test files]\n"}`,
		},
		want: "ok  \tp\t0.1s\n" + nothingLeftOut + "\n1 passed, 0 failed, 0 skipped\n",
	}, {
		name: "what a failed test printed is shown",
		events: []string{
			`{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: got 1\n"}`,
			`{"Action":"output","Package":"p","Test":"TestA","Output":"--- FAIL: TestA (0.00s)\n"}`,
			`{"Action":"fail","Package":"p","Test":"TestA"}`,
			`{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}`,
		},
		want: "    a_test.go:3: got 1\n--- FAIL: TestA (0.00s)\nFAIL\tp\t0.1s\n" + nothingLeftOut + "\n0 passed, 1 failed, 0 skipped\n",
	}, {
		name: "what a package prints outside its tests is shown, and so are build failures",
		events: []string{
			`{"Action":"output","Package":"p","Output":"starting etcd ...\n"}`,
			`{"ImportPath":"q","Action":"build-output","Output":"q.go:1: undefined: x\n"}`,
			"go: no such package\n",
		},
		want: "starting etcd ...\nq.go:1: undefined: x\ngo: no such package\n" + nothingLeftOut + "\n0 passed, 0 failed, 0 skipped\n",
	}, {
		name: "what a crashed test printed is shown",
		events: []string{
			`{"Action":"output","Package":"p","Test":"TestA","Output":"panic: no map\n"}`,
			`{"Action":"output","Package":"p","Output":"FAIL\tp\t0.1s\n"}`,
			`{"Action":"fail","Package":"p"}`,
		},
		want: "FAIL\tp\t0.1s\npanic: no map\n" + nothingLeftOut + "\n0 passed, 1 failed, 0 skipped\n",
	}, {
		name: "skipped tests are listed with their reason",
		events: []string{
			`{"Action":"output","Package":"p","Test":"TestNode","Output":"=== RUN   TestNode\n"}`,
			`{"Action":"output","Package":"p","Test":"TestNode","Output":"    node_test.go:9: a kubelet needs root: run as root\n"}`,
			`{"Action":"output","Package":"p","Test":"TestNode","Output":"--- SKIP: TestNode (0.00s)\n"}`,
			`{"Action":"skip","Package":"p","Test":"TestNode"}`,
		},
		want: "\nLeft out on this machine, and why:\n  p TestNode: a kubelet needs root: run as root\n\n0 passed, 0 failed, 1 skipped\n",
	}} {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			r := newRun(&out)
			for _, event := range test.events {
				if !strings.HasSuffix(event, "\n") {
					event += "\n"
				}
				if err := r.read(strings.NewReader(event)); err != nil {
					t.Fatal(err)
				}
			}
			r.summarize()
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCommandsRunSideBySide(t *testing.T) {
	var out strings.Builder
	r := newRun(&out)
	fifo := t.TempDir() + "/fifo"
	// Each needs the other: opening a named pipe waits for somebody at its other end.
	read := "mkfifo -m 600 " + fifo + " && cat " + fifo
	write := "while ! test -p " + fifo + "; do sleep 0.01; done; " + `echo '{"Action":"pass","Package":"p","Test":"TestA"}' > ` + fifo
	if err := r.commands(t.Context(), []string{read, write}); err != nil {
		t.Fatal(err)
	}
	r.summarize()
	if diff := cmp.Diff(nothingLeftOut+"\n1 passed, 0 failed, 0 skipped\n", out.String()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}

func TestCommandThatFails(t *testing.T) {
	var out strings.Builder
	r := newRun(&out)
	err := r.commands(t.Context(), []string{"exit 3", `sleep 0.1; echo '{"Action":"pass","Package":"p","Test":"TestA"}'`})
	if err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error is %v, want one about the command that failed", err)
	}
	r.summarize()
	if diff := cmp.Diff(nothingLeftOut+"\n1 passed, 0 failed, 0 skipped\n", out.String()); diff != "" {
		t.Errorf("the other command was not read to its end (-want +got):\n%s", diff)
	}
}
