package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// asProgram has the test binary be the program.
const asProgram = "SERVICE_PROVIDER_VELERO_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// TestUsageErrors: openmcp-operator takes a provider for installed when init exits with 0, so no mistake may.
func TestUsageErrors(t *testing.T) {
	tests := map[string]struct {
		args  []string
		env   string
		names []string
	}{
		"NoCommand":         {nil, "POD_NAMESPACE=p", []string{"no command", "init", "run"}},
		"UnknownCommand":    {[]string{"start"}, "POD_NAMESPACE=p", []string{`"start"`, "init", "run"}},
		"FlagAsCommand":     {[]string{"--provider-name=velero"}, "POD_NAMESPACE=p", []string{"--provider-name=velero", "usage"}},
		"UnknownFlag":       {[]string{"init", "--unknown"}, "POD_NAMESPACE=p", []string{"--unknown"}},
		"RunFlagOfInit":     {[]string{"init", "--leader-elect=true"}, "POD_NAMESPACE=p", []string{"--leader-elect"}},
		"BadValue":          {[]string{"run", "--metrics-secure=perhaps"}, "POD_NAMESPACE=p", []string{"perhaps", "--metrics-secure"}},
		"BadVerbosity":      {[]string{"run", "--verbosity=loud"}, "POD_NAMESPACE=p", []string{"loud", "--verbosity"}},
		"NoProvider":        {[]string{"init", "--environment=e"}, "POD_NAMESPACE=p", []string{"--provider-name"}},
		"NoNamespace":       {[]string{"run", "--provider-name=velero"}, "POD_NAMESPACE=", []string{"POD_NAMESPACE"}},
		"NoPlatformCluster": {[]string{"init", "--provider-name=velero", "--kubeconfig=/does/not/exist"}, "POD_NAMESPACE=p", []string{"platform", "/does/not/exist"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			program := exec.CommandContext(t.Context(), os.Args[0], test.args...)
			program.Env = append(os.Environ(), asProgram+"=1", test.env)
			var printed strings.Builder
			program.Stderr = &printed
			err := program.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 {
				t.Errorf("it ends with %v, want exit code 1", err)
			}
			for _, name := range test.names {
				if !strings.Contains(printed.String(), name) {
					t.Errorf("it does not name %s but prints:\n%s", name, &printed)
				}
			}
			if strings.Contains(printed.String(), "goroutine") {
				t.Errorf("it panics:\n%s", &printed)
			}
		})
	}
}
