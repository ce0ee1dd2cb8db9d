package apiserver

import (
	"fmt"
	"syscall"
)

// Hang stops the server in the middle of its work, as a network that swallows everything does: calls are taken, and never answered. resume has
// it go on where it was.
func (s Server) Hang() (resume func() error, err error) {
	record, found, err := s.site.Processes().Lookup(s.process())
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("the API server %s does not run", s.Name)
	}
	if err := record.Signal(syscall.SIGSTOP); err != nil {
		return nil, err
	}
	return func() error { return record.Signal(syscall.SIGCONT) }, nil
}
