package cli

import (
	"context"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/openmcp-project/service-provider-velero/internal/mirror"
)

// updates is how many reports of progress may wait to be shown.
const updates = 256

// watched runs a copy with a progress bar, where somebody can see it.
func watched(ctx context.Context, copying mirror.Copy, out io.Writer) ([]mirror.Result, error) {
	if !isTerminal(out) || copying.DryRun {
		return copying.Run(ctx)
	}
	progress, shown := make(chan v1.Update, updates), make(chan struct{})
	copying.Updates = progress
	go func() {
		defer close(shown)
		show(out, progress)
	}()
	results, err := copying.Run(ctx)
	close(progress)
	<-shown
	return results, err
}

// show draws the bar. How much there is to copy is only known bit by bit.
func show(out io.Writer, progress <-chan v1.Update) {
	bar := progressbar.NewOptions64(1, progressbar.OptionSetWriter(out), progressbar.OptionSetDescription("copying"), progressbar.OptionShowBytes(true),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())
	for update := range progress {
		bar.ChangeMax64(max(update.Total, update.Complete, 1) + 1)
		_ = bar.Set64(update.Complete)
	}
	_ = bar.Clear()
}

func isTerminal(out io.Writer) bool {
	file, isFile := out.(*os.File)
	return isFile && term.IsTerminal(int(file.Fd()))
}
