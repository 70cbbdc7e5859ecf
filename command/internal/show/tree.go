// SPDX-License-Identifier: Apache-2.0

package show

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session/mark"
)

// PrintTree writes the run step by step: the iterations of its loop, and below each iteration its steps.
func (s *Shown) PrintTree(w io.Writer) {
	root := s.Tree.Root
	if root == nil {
		return
	}
	fmt.Fprintln(w)
	p := s.treePrinter(w)
	if s.main == root {
		fmt.Fprintln(w, "Progress by Iteration:")
		p.loop(root, "", false)
		return
	}
	p.step(root, "", "")
}

type treePrinter struct {
	w   io.Writer
	to  int // the largest length of a line
	now time.Duration
	cut progress.Status // of steps that are running in the log, if no process drives the run; else empty

	all   bool   // iterations of a long loop are shown
	spool *spool // has those that the tree has left out; nil if it has left out none
}

// longLine is the largest length of a line of a tree where no terminal sets one.
const longLine = 160

func (s *Shown) treePrinter(w io.Writer) *treePrinter {
	to := longLine
	if s.columns > 0 {
		to = min(to, s.columns)
	}
	p := &treePrinter{w: w, to: to, now: s.Tree.Now, all: s.spool != nil, spool: s.spool}
	if s.Status == runlog.StatusInterrupted || s.Status == string(mark.RunIsPaused) {
		p.cut = progress.Status(s.Status)
	}
	return p
}

// A loop with more than longLoop iterations is shown with the first and the last endsShown, unless all are asked for.
const (
	longLoop  = 50
	endsShown = progress.FirstKept
)

// loop writes the iterations and the finalizer of a loop. more means that further lines follow.
func (p *treePrinter) loop(s *progress.Step, guide string, more bool) {
	its, final := s.Loop.Iterations, s.Loop.Finalizer
	more = more || final != nil && final.Status != progress.StatusPending
	ends := !p.all && len(its)+s.Loop.Left() > longLoop
	for i, it := range its {
		branch, stem := term.Branches(i == len(its)-1 && !more)
		switch last := len(its) - endsShown; {
		case ends && i == endsShown:
			p.line(guide+branch, fmt.Sprintf("… iterations %d to %d; --all shows them", its[i-1].Number+1, its[last].Number-1))
			continue
		case ends && i > endsShown && i < last:
			continue
		case p.spool != nil && i > 0:
			p.leftOut(s.Loop, its[i-1].Number, it.Number, guide)
		}
		p.line(guide+branch, p.iteration(s.Loop, it))
		p.steps(it.Steps, guide+stem, false)
	}
	if final != nil && final.Status != progress.StatusPending {
		p.steps([]*progress.Step{final}, guide, len(s.Steps) > 0)
	}
}

// leftOut writes the iterations between two others that the tree has left out.
func (p *treePrinter) leftOut(l *progress.Loop, after, before int, guide string) {
	err := p.spool.between(l, after, before, func(text io.Reader) error {
		lines := bufio.NewScanner(text)
		lines.Buffer(nil, math.MaxInt32)
		for lines.Scan() {
			p.print(guide + lines.Text())
		}
		return lines.Err()
	})
	if p.spool.err == nil {
		p.spool.err = err
	}
}

// dropLines adds an iteration that leaves the tree, as the lines of the tree. It is not the last one of its loop.
func (p *spool) dropLines(loop *progress.Step, it *progress.Iteration) {
	p.add(loop.Loop, it.Number, func(w io.Writer) error {
		t := &treePrinter{w: w, to: math.MaxInt32, all: true, spool: p}
		branch, stem := term.Branches(false)
		t.line(branch, t.iteration(loop.Loop, it))
		t.steps(it.Steps, stem, false)
		return p.err
	})
	p.forget(it.Steps)
}

func (p *treePrinter) steps(steps []*progress.Step, guide string, more bool) {
	for i, s := range steps {
		branch, stem := term.Branches(i == len(steps)-1 && !more)
		p.step(s, guide+branch, guide+stem)
	}
}

// step writes a step and the steps below it.
func (p *treePrinter) step(s *progress.Step, first, rest string) {
	line := s.Name + "  " + p.status(s.Status, s.Took(p.now))
	if u := s.Usage(); u.Tokens() > 0 {
		line += "  " + brief.Whole(u.Tokens()) + " tok"
	}
	p.line(first, strings.TrimSuffix(line+"  "+p.notes(s), "  "))
	if s.Loop != nil {
		p.loop(s, rest, len(s.Steps) > 0)
	}
	p.steps(s.Steps, rest, false)
}

func (p *treePrinter) line(guide, text string) { p.print(guide + brief.Clean(text)) }

func (p *treePrinter) print(line string) {
	fmt.Fprintln(p.w, strings.TrimRight(ansi.TruncateWc(line, p.to, "…"), " "))
}

// Status returns a status with its duration.
func (p *treePrinter) status(s progress.Status, took time.Duration) string {
	if p.cut != "" && s == progress.StatusRunning {
		s = p.cut
	}
	text := "[" + strings.ToUpper(string(s)) + "]"
	if s == progress.StatusPending || s == progress.StatusSkipped {
		return text
	}
	return text + " " + brief.Clock(took)
}

// iteration returns the line about an iteration of a loop.
func (p *treePrinter) iteration(l *progress.Loop, it *progress.Iteration) string {
	note, _ := prose.IterationNote(l, it)
	return strings.TrimSuffix(iterationTitle(it)+"  "+p.status(it.Status, it.Took(p.now))+"  "+note, "  ")
}

// iterationTitle returns the title of an iteration with its score.
func iterationTitle(it *progress.Iteration) string {
	if it.Record != nil {
		return it.Record.String()
	}
	title := fmt.Sprintf("Iteration %d", it.Number)
	if it.Provisional != nil {
		title += ": Score " + brief.Score(*it.Provisional) + " (provisional)"
	}
	return title
}

func (p *treePrinter) notes(s *progress.Step) string {
	var notes []string
	if s.Attempt > 1 {
		notes = append(notes, fmt.Sprintf("attempt %d", s.Attempt))
	}
	if s.Cached {
		notes = append(notes, "cached")
	}
	if x := s.Exit; x != nil {
		switch {
		case x.Refused != "":
			notes = append(notes, "wanted to leave, refused: "+x.Refused)
		case x.Reason != "":
			notes = append(notes, "leaves: "+x.Reason)
		default:
			notes = append(notes, "leaves")
		}
	}
	if s.Status == progress.StatusRunning && p.cut == "" && !s.Limited.IsZero() {
		notes = append(notes, progress.Waits(s.Limited, time.Now()))
	}
	if s.Asks != "" {
		notes = append(notes, "asks: "+s.Asks)
	}
	if s.Error != "" {
		notes = append(notes, s.Error)
	}
	if s.Race != nil {
		notes = append(notes, progress.RaceText(s.Race))
	}
	if s.Loop != nil && s.Loop.Stop != nil {
		notes = append(notes, s.Loop.Stop.String())
	}
	return strings.Join(notes, "; ")
}

// printIteration writes one iteration with all text of its steps.
func printIteration(w io.Writer, s *Shown) {
	it := s.Iteration
	p := s.treePrinter(w)
	fmt.Fprintln(w, brief.Clean(p.iteration(s.main.Loop, it)))
	if it.Record != nil {
		for _, d := range it.Record.Dimensions {
			fmt.Fprintf(w, "  %s: %s\n", brief.Clean(d.Name), brief.Score(d.Value))
		}
	}
	for _, c := range it.Steps {
		p.spoken(c, "")
	}
}

// spoken writes a step with its text, and the steps below it with a larger margin.
func (p *treePrinter) spoken(s *progress.Step, margin string) {
	fmt.Fprintln(p.w)
	p.line(margin, strings.TrimSuffix(s.Name+"  "+p.status(s.Status, s.Took(p.now))+"  "+p.notes(s), "  "))
	if s.Text != "" {
		term.Indented(p.w, s.Text, margin+"  ")
	}
	if s.Loop != nil {
		for _, it := range s.Loop.Iterations {
			fmt.Fprintln(p.w)
			p.line(margin+"  ", iterationTitle(it))
			for _, c := range it.Steps {
				p.spoken(c, margin+"  ")
			}
		}
		if final := s.Loop.Finalizer; final != nil && final.Status != progress.StatusPending {
			p.spoken(final, margin+"  ")
		}
	}
	for _, c := range s.Steps {
		p.spoken(c, margin+"  ")
	}
}
