// Package cli holds the commands that people run, beside the operator: they read manifests and registries, and print.
package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// Streams are what a command reads and prints.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// errHelp ends a command that was only asked what it can do.
var errHelp = errors.New("help was printed")

// parse reads the arguments of a command, which takes flags only. Its help goes to the output, as that is what was asked for.
func parse(flags *pflag.FlagSet, about string, args []string, streams Streams) error {
	flags.SortFlags = false
	flags.SetOutput(io.Discard)
	flags.Usage = func() {}
	err := flags.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		if _, err := fmt.Fprintf(streams.Out, "%s\n\nflags:\n%s\n", about, strings.TrimRight(flags.FlagUsagesWrapped(140), "\n")); err != nil {
			return err
		}
		return errHelp
	}
	if err != nil {
		return fmt.Errorf("%s: %w; --help tells what there is", flags.Name(), err)
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s takes no argument %q; --help tells what there is", flags.Name(), flags.Arg(0))
	}
	return nil
}

// helped makes a success of help.
func helped(err error) error {
	if errors.Is(err, errHelp) {
		return nil
	}
	return err
}
