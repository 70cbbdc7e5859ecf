// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
)

// header returns the lines with the name of the run and its progress.
func (m *model) header() []string {
	t := m.live.Tree()
	main, now := t.Main(), m.now()
	name, kind := m.cfg.Name, "Agent: "
	if t.Root != nil {
		name = t.Root.Name
	}
	var where []string
	timeout := time.Duration(0)
	if main != nil {
		kind, name = "Loop Agent: ", main.Name
		n := 0
		if it := main.Loop.Current(); it != nil {
			n = it.Number
		}
		label := "Current Iteration: "
		if m.narrow() {
			label = "Iteration "
		}
		where = append(where, label+strong.of(ofLimit(n, main.Loop.Plan)))
		if main == t.Root {
			timeout = time.Duration(main.Loop.Plan.Timeout)
		}
	}
	elapsed := "Elapsed Time: " + strong.of(brief.Clock(now))
	if m.narrow() {
		elapsed = strong.of(brief.Clock(now))
	}
	if timeout > 0 {
		elapsed += faint.of(" / " + brief.Clock(timeout))
	}
	where = append(append(where, elapsed), m.usage(t, main)...)
	switch {
	case t.Root != nil && t.Root.Status == progress.StatusWaiting:
		where = append(where, yellow.of("[WAITING]"))
	case t.Paused:
		where = append(where, yellow.of("[PAUSED]"))
	}
	head := kind + strong.of(fit(brief.Clean(name), max(10, m.width-len(kind))))
	if m.low() { // one line or two have to do
		if m.narrow() {
			return []string{head, flow(where, m.width)[0]}
		}
		return flow(append([]string{head}, where...), m.width)
	}
	lines := append(flow([]string{head, faint.of(brief.Clean(m.cfg.Run))}, m.width), flow(where, m.width)...)
	if main != nil && m.height >= 20 {
		if s := scoreLine(main.Loop, m.width); s != "" {
			lines = append(lines, s)
		}
	}
	return lines
}

// usage returns what model calls have used, and the budget.
func (m *model) usage(t *progress.Tree, main *progress.Step) []string {
	if t.Root == nil {
		return nil
	}
	u := t.Root.Usage()
	b := m.cfg.Budget
	if b == nil && main == t.Root && main != nil {
		b = main.Loop.Plan.Budget
	}
	if b == nil {
		b = new(loop.Budget)
	}
	var out []string
	if u.Calls > 0 || b.Calls > 0 {
		calls := brief.Count(u.Calls, "call")
		if b.Calls > 0 {
			calls = brief.Whole(u.Calls) + "/" + brief.Count(b.Calls, "call")
		}
		out = append(out, calls)
	}
	if s := tokens(u); s != "" || b.Tokens > 0 {
		if s == "" {
			s = "0 tok"
		}
		if b.Tokens > 0 {
			s += faint.of(" / " + brief.Whole(b.Tokens))
		}
		out = append(out, s)
	}
	if u.InputTokens > 0 && u.CachedTokens*10 >= u.InputTokens {
		out = append(out, brief.Percent(float64(u.CachedTokens)/float64(u.InputTokens))+" cached")
	}
	if u.Calls > 0 || b.Cost != nil {
		s := "cost " + brief.Money(u.Cost)
		switch {
		case u.Unknown && u.Cost == 0:
			s = "cost —"
		case u.Unknown:
			s += " or more"
		}
		if b.Cost != nil {
			s += faint.of(" / " + brief.Money(*b.Cost))
		}
		out = append(out, s)
	}
	return out
}

// scoreLine returns the scores so far and the target.
func scoreLine(l *progress.Loop, width int) string {
	if l.Plan.Score == nil {
		return ""
	}
	var scores []float64
	for _, it := range l.Iterations {
		if it.Record != nil && it.Record.Score != nil {
			scores = append(scores, *it.Record.Score)
		}
	}
	target := ""
	if l.Plan.Score.Target != nil {
		target = "   target " + brief.Score(*l.Plan.Score.Target)
	}
	c := curve(scores, width-len("Score")-ansi.StringWidthWc(target))
	if c == "" {
		return ""
	}
	return "Score" + cyan.of(c) + faint.of(target)
}

// footer returns the trend, the notes and the keys.
func (m *model) footer() []string {
	var lines []string
	t := m.live.Tree()
	if main := t.Main(); main != nil {
		l := main.Loop
		lines = append(lines, m.trend(l)...)
		if l.Stop != nil {
			if rec := l.Stop; rec.BestScore != nil && rec.BestError > 0 {
				lines = append(lines, "Best Score: "+brief.Score(*rec.BestScore)+brief.OffBy(rec.BestError))
			}
			lines = append(lines, strong.of(brief.Clean(l.Stop.String())))
		}
	}
	if m.finished {
		return lines
	}
	for _, part := range m.noteLines() {
		lines = append(lines, yellow.of(part))
	}
	if m.down {
		return lines
	}
	return append(lines, faint.of(m.hints()))
}

// noteLines returns the note, broken into lines that fit into the window.
func (m *model) noteLines() []string {
	if m.note == "" {
		return nil
	}
	lines := strings.Split(ansi.WrapWc(m.note, m.width, ""), "\n")
	if m.low() && len(lines) > 3 {
		lines = lines[:3]
	}
	return lines
}

// lastLines returns the number of lines above the keys in a low window.
func (m *model) lastLines() int { return max(1, len(m.noteLines())) }

// trend returns the trend of the scores, and an estimate of the rest of the loop.
func (m *model) trend(l *progress.Loop) []string {
	over := l.Stop != nil || m.finished
	if m.low() && m.narrow() {
		if over {
			return []string{strong.of(prose.Trend(l))}
		}
		return []string{strong.of(prose.Trend(l)) + "  " + prose.Estimate(l, m.now())}
	}
	ahead := []string{"Convergence Trend: " + strong.of(prose.Trend(l))}
	if !over {
		ahead = append(ahead, "Estimated Completion: "+strong.of(prose.Estimate(l, m.now())))
	}
	if m.low() {
		return []string{strings.Join(ahead, "   ")}
	}
	return flow(ahead, m.width)
}
