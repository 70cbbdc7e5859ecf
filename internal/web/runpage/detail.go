// SPDX-License-Identifier: Apache-2.0

package runpage

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/values/brief"
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
	Cache        *Cache            `json:"cache,omitzero"`
	Changes      []progress.Change `json:"changes,omitempty"`
	Events       []Entry           `json:"events"`
	EventsTotal  int               `json:"events_total"`
	Raw          []any             `json:"raw"`
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
	mostRead   = 2000 // of its events, of which there may be far more in a loop
)

// Detail reads what a step or an iteration, such as "refine[3]", was given, said and changed.
func (p *Page) Detail(at session.Address, log *session.View) (*Detail, error) {
	sp, ok := p.spans[at]
	if !ok {
		return nil, missing("step", at)
	}
	d := &Detail{Address: at, Events: []Entry{}, Raw: []any{}, EventsTotal: sp.events}
	for ev := range between(log, sp.first, min(sp.last, sp.first+mostRead-1)) {
		if !ev.Address.Under(at) {
			continue
		}
		if len(d.Raw) < mostRaw {
			d.Raw = append(d.Raw, ev)
		}
		if line := lineOf(ev); line != "" && len(d.Events) < mostEvents {
			d.Events = append(d.Events, Entry{ev.Seq, ev.Timestamp, brief.Clean(line)})
		}
		if ev.ModelVersion != "" {
			d.Model = ev.ModelVersion
		}
	}
	t := p.Live.Tree()
	if s := t.Find(at); s != nil {
		d.Output, d.Error = p.said(s, log), brief.CleanText(s.Error)
		if u := s.Usage(); u.Calls > 0 {
			d.InputTokens, d.OutputTokens = &u.InputTokens, &u.OutputTokens
			d.Cost, _ = costOf(u)
			d.Cache = cacheOf(u)
		}
		p.against(t, at, d, log)
	}
	if len(d.Output) > mostText {
		d.Output, d.Shortened, d.Words = brief.Clip(d.Output, mostText/4), true, nil
	}
	d.Changes = p.changes(sp, log)
	return d, log.Err()
}

// said is what a step says, from the log: of what an old one said the tree may have the beginning only.
func (p *Page) said(s *progress.Step, log *session.View) string {
	sp, ok := p.spans[s.Address]
	if !ok || s.Status == progress.StatusRunning || sp.last-sp.first >= mostRead {
		return brief.CleanText(s.Text)
	}
	var own []*session.Event
	for ev := range between(log, sp.first, sp.last) {
		if ev.Address == s.Address {
			own = append(own, ev)
		}
	}
	return brief.CleanText(progress.Said(own))
}

// changes are the state keys that were written from one event to another, with their values before
// and after. It reads these values, and none between.
func (p *Page) changes(sp span, log *session.View) []progress.Change {
	before, after := make(map[string]any), make(map[string]any)
	value := func(state map[string]any, key string, seq int64) {
		for ev := range between(log, seq, seq) {
			switch v := ev.Actions.StateDelta[key].(type) {
			case nil:
			case string:
				state[key] = brief.CleanText(v)
			default:
				state[key] = v
			}
		}
	}
	newest := make(map[string]int64) // of the keys of several iterations the newest counts
	for at, seqs := range p.writes {
		i, _ := slices.BinarySearch(seqs, sp.first)
		j, _ := slices.BinarySearch(seqs, sp.last+1)
		if i == j || newest[at.key] > seqs[j-1] {
			continue
		}
		newest[at.key] = seqs[j-1]
		delete(before, at.key)
		delete(after, at.key)
		if i > 0 {
			value(before, at.key, seqs[i-1])
		}
		value(after, at.key, seqs[j-1])
	}
	return progress.Diff(before, after)
}

// against finds what the step said in the iteration from which this one was written.
func (p *Page) against(t *progress.Tree, at session.Address, d *Detail, log *session.View) {
	l := t.Find(at.Parent())
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
				if s.Name != at.Agent() || s.Text == "" || d.Output == "" {
					continue
				}
				if was := p.said(s, log); len(was)+len(d.Output) < mostText {
					d.Words, d.Against = progress.DiffWords(was, d.Output), before.Number
				}
			}
		}
	}
}

// between yields the events of a log with these numbers, whole, and reads no others.
func between(v *session.View, first, last int64) iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		log := v.Log()
		before := v.LastSeq() - int64(log.Len()) // that the log has no more
		for i := max(first-before, 1); i <= last-before && i <= int64(log.Len()); i++ {
			if !yield(log.At(int(i - 1))) {
				return
			}
		}
	}
}

// lineOf describes an event in words.
func lineOf(ev *session.Event) string {
	if ev.Mark != nil {
		return strings.ReplaceAll(string(ev.Mark.Kind), "_", " ")
	}
	text, _, more := strings.Cut(strings.TrimSpace(ev.Text()), "\n")
	if more {
		text += " …"
	}
	return ev.Author + ": " + brief.Clip(text, 160)
}
