package landscape

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// AuditEvent is one finished request to an API server: the ground truth of who called what.
type AuditEvent struct {
	Verb      string `json:"verb"`
	URI       string `json:"requestURI"`
	UserAgent string `json:"userAgent"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Received time.Time `json:"requestReceivedTimestamp"`
}

// Writes says whether the request was one that changes something.
func (e AuditEvent) Writes() bool {
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// AuditEvents returns the requests the cluster has received since a point in time and keep wants; nil keeps all.
func (c Cluster) AuditEvents(since time.Time, keep func(AuditEvent) bool) ([]AuditEvent, error) {
	file, err := os.Open(c.AuditLog())
	if err != nil {
		return nil, fmt.Errorf("read the audit log of %s: %w", c.Name, err)
	}
	defer file.Close()
	events, err := auditEvents(file, since, keep)
	if err != nil {
		return nil, fmt.Errorf("read the audit log of %s: %w", c.Name, err)
	}
	return events, nil
}

func auditEvents(log io.Reader, since time.Time, keep func(AuditEvent) bool) ([]AuditEvent, error) {
	var events []AuditEvent
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return events, nil // a line without an end is still being written
		}
		if err != nil {
			return nil, err
		}
		var event AuditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, err
		}
		if !event.Received.Before(since) && (keep == nil || keep(event)) {
			events = append(events, event)
		}
	}
}
