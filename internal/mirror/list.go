package mirror

import (
	"github.com/openmcp-project/service-provider-velero/internal/plan"
)

// Entry is one artifact as it is listed.
type Entry struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Source  string `json:"source"`
	// Target is empty when no mirror was named.
	Target string `json:"target,omitempty"`
}

// List says what a ProviderConfig needs, and where that would be in a mirror.
func List(artifacts []plan.Artifact, from, to *Layout) ([]Entry, error) {
	mapped := Layout{host: "mirror.invalid", Scoped: true}
	if to != nil {
		mapped = *to
	}
	all, err := places(artifacts, from, mapped)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(all))
	for _, place := range all {
		entry := Entry{Kind: "image", Name: place.Name, Version: place.Version, Source: place.source}
		if place.Chart {
			entry.Kind = "chart"
		}
		if to != nil {
			entry.Target = place.target
		}
		entries = append(entries, entry)
	}
	return entries, nil
}
