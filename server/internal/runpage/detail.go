// SPDX-License-Identifier: Apache-2.0

package runpage

import (
	"slices"
	"time"

	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
)

// Detail is what a step said, changed and left in the log.
type Detail struct {
	Address session.Address `json:"address"`
	Output  string          `json:"output"`
	// Words are the changes of Output since the step's output in iteration Against, from whose
	// version this one was written; nil if there is none.
	Words     []progress.Edit `json:"words,omitzero"`
	Against   int             `json:"against,omitzero"`
	Shortened bool            `json:"shortened,omitzero"`
	Error     string          `json:"error,omitzero"`
	Model     string          `json:"model,omitzero"`
	// The tokens are nil if no model was asked.
	InputTokens  *int64            `json:"input_tokens,omitzero"`
	OutputTokens *int64            `json:"output_tokens,omitzero"`
	Cost         *float64          `json:"cost,omitzero"`
	Prompt       []Message         `json:"prompt,omitzero"`
	Changes      []progress.Change `json:"changes,omitzero"`
	Events       []Entry           `json:"events"`
	EventsTotal  int               `json:"events_total"`
	Raw          []any             `json:"raw"`
}

// Message is a part of a request to a model.
type Message struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// Entry is a line about an event.
type Entry struct {
	Seq  int64     `json:"seq"`
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// The most of a step that a page shows; the export has all.
const (
	mostEvents = 200
	mostRaw    = 40
	mostText   = 64 << 10
)

// Log is where a Detail's events and states come from.
type Log interface {
	// Between yields the events with these numbers, whole.
	Between(first, last int64) ([]*session.Event, error)
	// StateAfter is the state after an event.
	StateAfter(seq int64) map[string]any
	// Line says in words what an event is about; empty if nothing can be said.
	Line(ev *session.Event) string
}

// Detail reads what a step or an iteration, such as "refine[3]", was given, said and changed.
func (p *Page) Detail(at session.Address, log Log) (*Detail, error) {
	first, last, ok := p.Span(at)
	if !ok {
		return nil, &MissingError{"step", at}
	}
	events, err := log.Between(first, last)
	if err != nil {
		return nil, err
	}
	d := &Detail{Address: at, Events: []Entry{}, Raw: []any{}}
	for _, ev := range events {
		if !ev.Address.Under(at) {
			continue
		}
		d.EventsTotal++
		if len(d.Raw) < mostRaw {
			d.Raw = append(d.Raw, ev)
		}
		if line := log.Line(ev); line != "" && len(d.Events) < mostEvents {
			d.Events = append(d.Events, Entry{ev.Seq, ev.Timestamp, line})
		}
		if ev.ModelVersion != "" {
			d.Model = ev.ModelVersion
		}
	}
	t := p.Live.Tree()
	if s := find(t, at); s != nil {
		d.Output, d.Error = s.Text, s.Error
		if u := s.Usage(); u.Calls > 0 {
			d.InputTokens, d.OutputTokens = &u.InputTokens, &u.OutputTokens
			d.Cost, _ = costOf(u)
		}
		p.against(t, at, d)
	}
	if len(d.Output) > mostText {
		d.Output, d.Shortened, d.Words = shorten(d.Output, mostText/4), true, nil
	}
	d.Changes = progress.Diff(log.StateAfter(first-1), log.StateAfter(last))
	return d, nil
}

// against finds what the step said in the iteration from which this one was written.
func (p *Page) against(t *progress.Tree, at session.Address, d *Detail) {
	l := find(t, at.Parent())
	if l == nil || l.Loop == nil {
		return
	}
	for i, it := range l.Loop.Iterations {
		if !slices.ContainsFunc(it.Steps, func(s *progress.Step) bool { return s.Address == at }) {
			continue
		}
		for _, before := range l.Loop.Iterations[:i] {
			if before.Number != it.From {
				continue
			}
			for _, s := range before.Steps {
				if s.Name == at.Agent() && s.Text != "" && d.Output != "" && len(s.Text)+len(d.Output) < mostText {
					d.Words, d.Against = progress.DiffWords(s.Text, d.Output), before.Number
				}
			}
		}
	}
}
