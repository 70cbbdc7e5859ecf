// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/runs/prompt"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/canonical"
	"github.com/refrain-dev/refrain/session"
)

// Report is what a replay has found.
type Report struct {
	Run string `json:"run"`
	// File is the file of the run's log; empty for a run of a store.
	File string `json:"file,omitempty"`
	// Differences are those that fail the replay.
	Differences []Difference `json:"differences"`
	// Requests is how many requests to models the play made, and Changed has those that the changed definition changes.
	Requests int      `json:"requests"`
	Changed  []Change `json:"changed"`
	// Notes says what the replay leaves out, and whether the log was changed since it was written.
	Notes []string `json:"notes,omitempty"`
}

// Difference is a difference from the record.
type Difference struct {
	At   session.Address `json:"at,omitempty"`
	Text string          `json:"text"`
}

// Change is a request that a changed definition changes.
type Change struct {
	Request
	Places []Place `json:"places"`
}

// Place is a part of a request that differs.
type Place struct {
	// Part is the part, such as "instructions", and Line the first line in it that differs, from 1.
	Part  string          `json:"part"`
	Line  int             `json:"line"`
	Words []progress.Edit `json:"words"`
}

// Same reports whether the run came to the same end.
func (r *Report) Same() bool { return len(r.Differences) == 0 }

// Replay plays the run and compares. The error is about the definition, or the cause of ctx.
func (rec *Recording) Replay(ctx context.Context, cfg Config) (*Report, error) {
	def := cmp.Or(cfg.Definition, rec.Definition)
	p, end, err := rec.play(ctx, &cfg, def)
	if err != nil {
		return nil, err
	}
	rep := &Report{Run: rec.ID, File: rec.file, Differences: p.problems, Requests: len(p.requests), Changed: []Change{}, Notes: notes(def)}
	verified, err := rec.verify()
	if err != nil {
		return nil, err
	}
	if why := verified.Problem(); why != "" {
		rep.Notes = append(rep.Notes, "the log is not as it was written: "+why)
	}
	rep.count(p)
	rep.compare(rec.end, end, len(cfg.Live) > 0)
	if cfg.Definition != nil {
		before, _, err := rec.play(ctx, &Config{Code: cfg.Code}, rec.Definition)
		if err != nil {
			return nil, err
		}
		rep.requests(before.requests, p.requests, cfg.Exact)
	}
	if rep.Differences == nil {
		rep.Differences = []Difference{}
	}
	return rep, nil
}

// notes says what of a definition a replay leaves out.
func notes(def *definition.Definition) (all []string) {
	for a := range def.Root.All {
		if len(a.Callbacks) > 0 && !acts(a) {
			all = append(all, fmt.Sprintf("the callbacks of %s are left out", a.Name))
		}
	}
	return all
}

func (r *Report) differ(at session.Address, format string, args ...any) {
	r.Differences = append(r.Differences, Difference{at, fmt.Sprintf(format, args...)})
}

// count reports the agents that have asked less often than recorded.
func (r *Report) count(p *player) {
	names := make(map[string]bool)
	for _, x := range p.rec.items {
		names[x.at.Agent()] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if n, all := p.asked[name], p.rec.count(name); n < all {
			r.differ("", "%s %s %d times, and recorded are %d", name, p.verb(name), n, all)
		}
	}
}

// compare reports how two runs have ended otherwise.
func (r *Report) compare(was, is *ending, live bool) {
	switch {
	case was.failed && !is.failed:
		r.differ("", "the run succeeds; recorded is a failure: %s", was.err)
	case !was.failed && is.failed && len(r.Differences) == 0:
		r.differ("", "the run fails: %s", is.err)
	}
	if !r.loops(was.stops, is.stops) {
		r.loops(was.iterations, is.iterations)
	}
	for _, name := range slices.Sorted(maps.Keys(was.calls)) {
		r.calls(name, was.calls[name], is.calls[name])
	}
	for _, name := range slices.Sorted(maps.Keys(is.calls)) {
		if was.calls[name] == nil {
			r.calls(name, nil, is.calls[name])
		}
	}
	if live {
		return
	}
	if was.answer != is.answer {
		r.differ("", "the result differs: %s", Words(progress.DiffWords(was.answer, is.answer)))
	}
	before, after := maps.Clone(was.state), maps.Clone(is.state)
	for _, began := range []map[string]any{was.began, is.began} {
		for key := range began { // what a definition gives and no step changes is not what the run has come to
			if canonical.Same(was.state[key], was.began[key]) && canonical.Same(is.state[key], is.began[key]) {
				delete(before, key)
				delete(after, key)
			}
		}
	}
	for _, c := range progress.Diff(before, after) {
		words := c.Words
		if words == nil {
			words = []progress.Edit{{Op: progress.Left, Text: text(c.Before)}, {Op: progress.Put, Text: text(c.After)}}
		}
		r.differ("", "the state differs: %s: %s", c.Key, Words(words))
	}
}

// loops reports the first loop, or the first iteration, that ended otherwise; what follows differs because of it.
func (r *Report) loops(was, is []loopEnd) (differs bool) {
	for i := range max(len(was), len(is)) {
		var a, b loopEnd
		if i < len(was) {
			a = was[i]
		}
		if i < len(is) {
			b = is[i]
		}
		if a != b {
			r.differ(cmp.Or(b.at, a.at), "%s; recorded is %s", named(b), named(a))
			return true
		}
	}
	return false
}

func named(e loopEnd) string {
	if e.text == "" {
		return "nothing"
	}
	return e.text
}

// calls reports the first call of an agent that differs.
func (r *Report) calls(name string, was, is []string) {
	for i := range max(len(was), len(is)) {
		switch {
		case i >= len(is):
			r.differ("", "%s does not call %s", name, brief.Line(was[i], mostCall))
		case i >= len(was):
			r.differ("", "%s calls %s, which the record does not have", name, brief.Line(is[i], mostCall))
		case was[i] != is[i]:
			r.differ("", "call %d of %s differs: %s", i+1, name, Words(progress.DiffWords(was[i], is[i])))
		default:
			continue
		}
		return
	}
}

// mostCall is the largest length of a call in a report, in columns.
const mostCall = 200

// requests compares the requests of two plays.
func (r *Report) requests(was, is []Request, exact bool) {
	type key struct {
		agent string
		n     int
	}
	known := make(map[key]*Request)
	for i := range was {
		known[key{was[i].Agent, was[i].Number}] = &was[i]
	}
	for _, q := range is {
		old := known[key{q.Agent, q.Number}]
		if old == nil {
			continue // it is counted
		}
		a, b := toolsOf(old.Request), toolsOf(q.Request)
		if a != b {
			r.differ(q.At, "request %d of %s offers the tools %s; recorded are %s", q.Number, q.Agent, cmp.Or(b, "none"), cmp.Or(a, "none"))
		}
		if places := compare(old.Request, q.Request); places != nil {
			r.Changed = append(r.Changed, Change{q, places})
		}
	}
	if exact {
		for _, c := range r.Changed {
			r.differ(c.At, "request %d of %s has changed", c.Number, c.Agent)
		}
	}
}

// toolsOf lists the tools that a request offers, with their parameters.
func toolsOf(q *prompt.Request) string {
	var all []string
	for _, t := range q.Tools {
		all = append(all, t.Name+string(t.Parameters))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// compare returns the places in which two requests differ.
func compare(was, is *prompt.Request) (all []Place) {
	add := func(part, a, b string) {
		if a != b {
			all = append(all, placeOf(part, a, b))
		}
	}
	add("instructions", was.System, is.System)
	for i := range max(len(was.Messages), len(is.Messages)) {
		var a, b prompt.Message
		if i < len(was.Messages) {
			a = was.Messages[i]
		}
		if i < len(is.Messages) {
			b = is.Messages[i]
		}
		add(fmt.Sprintf("message %d (%s)", i+1, cmp.Or(b.Role, a.Role)), a.Text, b.Text)
	}
	about := make(map[string]string)
	for _, t := range was.Tools {
		about[t.Name] = t.Description
	}
	for _, t := range is.Tools {
		if old, ok := about[t.Name]; ok {
			add("description of "+t.Name, old, t.Description)
		}
	}
	add("settings", string(was.Settings), string(is.Settings))
	return all
}

func placeOf(part, was, is string) Place {
	p := Place{Part: part, Words: progress.DiffWords(was, is)}
	p.Line = 1
	if first := p.Words[0]; first.Op == progress.Kept {
		p.Line += strings.Count(first.Text, "\n")
	}
	return p
}

// around is how many letters of the text around a change are shown.
const around = 40

// Words writes the changed words of a text with those around them: [-old-] and {+new+}.
func Words(edits []progress.Edit) string {
	var b strings.Builder
	for i, e := range edits {
		shown := strings.Join(strings.Fields(e.Text), " ")
		letters := []rune(shown)
		switch n := len(letters); {
		case e.Op == progress.Left:
			shown = "[-" + brief.Clip(shown, 5*around) + "-]"
		case e.Op == progress.Put:
			shown = "{+" + brief.Clip(shown, 5*around) + "+}"
		case i == 0 && n > around:
			shown = "…" + string(letters[n-around:])
		case i == len(edits)-1 && n > around:
			shown = string(letters[:around]) + "…"
		case n > 2*around:
			shown = string(letters[:around]) + " … " + string(letters[n-around:])
		}
		if strings.TrimLeftFunc(e.Text, unicode.IsSpace) != e.Text {
			shown = " " + shown
		}
		if strings.TrimRightFunc(e.Text, unicode.IsSpace) != e.Text {
			shown += " "
		}
		b.WriteString(shown)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	what := "the same end"
	if !r.Same() {
		what = "FAILED"
	}
	fmt.Fprintf(&b, "%s: %s, %s", cmp.Or(r.File, r.Run), what, brief.Count(r.Requests, "request"))
	if n := len(r.Changed); n > 0 {
		fmt.Fprintf(&b, ", %d changed", n)
	}
	b.WriteByte('\n')
	for _, d := range r.Differences {
		b.WriteString("  ")
		if d.At != "" {
			fmt.Fprintf(&b, "%s: ", d.At)
		}
		fmt.Fprintf(&b, "%s\n", d.Text)
	}
	for _, c := range r.Changed {
		for _, p := range c.Places {
			fmt.Fprintf(&b, "  %s, request %d (%s), %s, line %d:\n    %s\n", c.Agent, c.Number, c.At, p.Part, p.Line, Words(p.Words))
		}
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "  note: %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
