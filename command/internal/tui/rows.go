// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
)

// row is a line of the tree.
type row struct {
	key   string // says which it is, also in the next frame; "" if it cannot be chosen
	guide string // the lines of the tree before it
	label string
	wide  int // columns of the longest label beside it

	status  progress.Status
	took    time.Duration
	aside   string // tokens, or an improvement
	note    string
	warning bool // what the note says is bad

	step               *progress.Step
	top                int // the outermost iteration that it is
	foldable, unfolded bool
	done               bool
}

// rows returns the lines of the whole tree, without those that are folded.
func (m *model) rows() []row {
	t := m.live.Tree()
	if t.Root == nil {
		return nil
	}
	w := &walker{m: m, now: m.now(), main: t.Main()}
	if t.Root.Loop != nil {
		w.loop(t.Root, "")
	} else if len(t.Root.Steps) > 0 {
		w.steps(t.Root.Steps, t.Root.Address.Agent(), "")
	} else {
		w.steps([]*progress.Step{t.Root}, "", "")
	}
	return w.out
}

// walker converts a tree into rows.
type walker struct {
	m    *model
	now  time.Duration
	main *progress.Step
	out  []row
}

// loop adds the iterations and the finalizer of a loop.
func (w *walker) loop(s *progress.Step, guide string) {
	l := s.Loop
	its := l.Iterations
	if w.m.errors {
		its = slices.DeleteFunc(slices.Clone(its), func(it *progress.Iteration) bool {
			return !it.Failed() && it.Status != progress.StatusRunning && it.Status != progress.StatusRejected
		})
	}
	after := w.shown(s.Steps)
	if l.Finalizer != nil && (!w.m.errors || l.Finalizer.Failed()) {
		after = append([]*progress.Step{l.Finalizer}, after...)
	}
	wide := 0
	for _, it := range its {
		wide = max(wide, ansi.StringWidthWc(w.m.iterationLabel(it)))
	}
	for i, it := range its {
		last := i == len(its)-1 && len(after) == 0
		branch, stem := term.Branches(last)
		r := w.iteration(s, it)
		r.guide, r.wide = guide+branch, wide
		w.out = append(w.out, r)
		if r.unfolded {
			w.steps(w.shown(it.Steps), r.key, guide+stem)
		}
	}
	w.steps(after, string(s.Address), guide)
}

// shown returns the steps that are visible now.
func (w *walker) shown(steps []*progress.Step) []*progress.Step {
	if !w.m.errors {
		return steps
	}
	return slices.DeleteFunc(slices.Clone(steps), func(s *progress.Step) bool {
		return !s.Failed() && s.Status != progress.StatusRunning
	})
}

// iteration returns the row of an iteration.
func (w *walker) iteration(s *progress.Step, it *progress.Iteration) row {
	r := row{
		key: fmt.Sprintf("%s[%d]", s.Address, it.Number), label: w.m.iterationLabel(it),
		status: it.Status, took: it.Took(w.now), foldable: len(it.Steps) > 0,
		done: it.Status != progress.StatusRunning,
	}
	if s == w.main {
		r.top = it.Number
	}
	r.unfolded = (!r.done || it.Failed() || it.Status.Halted()) != w.m.toggled[r.key]
	if r.done {
		r.aside = usageText(it.Usage())
	}
	if m := w.m; m.narrow() && it.Record != nil && it.Record.Delta != nil {
		r.aside = brief.Signed(*it.Record.Delta)
	}
	if r.note, r.warning = prose.IterationNote(s.Loop, it); it.Record != nil && it.Record.WithinNoise() {
		r.note = strings.TrimPrefix(r.note+", "+loop.TextWithinNoise, ", ")
	}
	return r
}

// iterationLabel returns the number and the score of an iteration; a narrow window shows them without words.
func (m *model) iterationLabel(it *progress.Iteration) string {
	label, score, so := fmt.Sprintf("Iteration %d", it.Number), ": Score ", " (provisional)"
	if m.narrow() {
		score, so = ": ", "?"
	}
	switch rec := it.Record; {
	case rec != nil && rec.Score != nil:
		label += score + brief.Score(*rec.Score)
		if m.narrow() { // the difference comes last
			break
		}
		label += brief.OffBy(rec.Error)
		if rec.Delta != nil {
			label += "  " + brief.Signed(*rec.Delta)
		}
	case it.Provisional != nil:
		label += score + brief.Score(*it.Provisional) + so
	}
	return label
}

// steps adds steps, each with the steps below it. in is the key of the row that contains them.
func (w *walker) steps(steps []*progress.Step, in, guide string) {
	wide := 0
	for _, s := range steps {
		wide = max(wide, ansi.StringWidthWc(brief.Clean(s.Name)))
	}
	for i, s := range steps {
		last := i == len(steps)-1
		branch, stem := term.Branches(last)
		r := w.step(s, in)
		r.guide, r.wide = guide+branch, wide
		w.out = append(w.out, r)
		if !r.unfolded {
			continue
		}
		if s.Loop != nil {
			w.loop(s, guide+stem)
		} else {
			w.steps(w.shown(s.Steps), r.key, guide+stem)
		}
	}
}

// step returns the row of a step.
func (w *walker) step(s *progress.Step, in string) row {
	r := row{
		key: string(s.Address), label: brief.Clean(s.Name), status: s.Status, took: s.Took(w.now), step: s,
		done: s.Status != progress.StatusRunning,
	}
	if r.key == "" {
		r.key = in + "/" + s.Name
	}
	for range s.Children() {
		r.foldable = true
		break
	}
	r.unfolded = r.foldable && (!r.done || s.Failed() || s.Status.Halted()) != w.m.toggled[r.key]
	if s.Status != progress.StatusPending && s.Status != progress.StatusSkipped && !w.m.narrow() {
		r.aside = usageText(s.Usage())
	}
	r.note, r.warning = stepNote(s)
	return r
}

// stepNote returns the note of a step, and whether it is a warning.
func stepNote(s *progress.Step) (note string, warning bool) {
	var notes []string
	if s.Attempt > 1 {
		notes = append(notes, fmt.Sprintf("attempt %d", s.Attempt))
	}
	switch {
	case s.Asks != "":
		return "waits for a person: " + brief.Clean(s.Asks), true
	case s.Error != "":
		if s.Again {
			notes = append(notes, "another attempt follows")
		}
		notes, warning = append(notes, brief.Clean(s.Error)), true
	case s.Exit != nil && s.Exit.Refused != "":
		notes = append(notes, "wanted to leave: refused")
	case s.Exit != nil:
		notes = append(notes, strings.TrimSuffix("leaves: "+brief.Clean(s.Exit.Reason), ": "))
	case s.Loop != nil && s.Loop.Stop != nil:
		notes = append(notes, brief.Count(s.Loop.Stop.Iterations, "iteration")+", "+string(s.Loop.Stop.Reason))
	case s.Loop != nil:
		n := 0
		if it := s.Loop.Current(); it != nil {
			n = it.Number
		}
		notes = append(notes, "iteration "+ofLimit(n, s.Loop.Plan))
	case s.Status == progress.StatusRunning && !s.Limited.IsZero():
		notes = append(notes, progress.Waits(s.Limited, time.Now()))
	case s.Status == progress.StatusRunning && s.Doing != "":
		notes = append(notes, "calls "+brief.Clean(s.Doing))
	case s.Status == progress.StatusRunning && s.Line != "":
		notes = append(notes, brief.Clean(s.Line))
	case s.Status == progress.StatusRunning && s.Text != "":
		notes = append(notes, "“"+strings.Join(strings.Fields(brief.Clean(brief.End(s.Text, 200))), " ")+"”")
	case s.Cached:
		notes = append(notes, "cached")
	case s.Finalizer && s.Status == progress.StatusPending:
		notes = append(notes, "final answer")
	case s.CanExit && s.Status == progress.StatusPending:
		notes = append(notes, "can stop")
	}
	return strings.Join(notes, ", "), warning
}

func ofLimit(n int, p *loop.Plan) string {
	if p.MaxIterations > 0 {
		return fmt.Sprintf("%d/%d", n, p.MaxIterations)
	}
	return fmt.Sprint(n)
}

// lastRunning returns the index of the last row that is running, or was running when the run was paused; -1 if there is none.
func lastRunning(rows []row) int {
	for i, r := range slices.Backward(rows) {
		switch r.status {
		case progress.StatusRunning, progress.StatusPaused, progress.StatusWaiting:
			return i
		}
	}
	return -1
}
