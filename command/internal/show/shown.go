// SPDX-License-Identifier: Apache-2.0

// Package show shows what a run did.
package show

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/runs/prompt"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// Options are the flags of refrain show.
type Options struct {
	Store, Loop, Diff string
	Prompt            string // the address or the name of a step
	Iteration         int
	One               bool // --iteration is given
	State, JSON       bool
	Files             bool // of a workspace
	Resources         bool
	All               bool // iterations of a long loop
}

// Shown is the report of refrain show about a run.
type Shown struct {
	*runlog.Report
	// The fields below are set only if the flags ask for them.
	Iteration *progress.Iteration `json:"iteration,omitempty"`
	State     map[string]any      `json:"state,omitempty"`
	Resources *progress.Resources `json:"resources,omitempty"`
	Diff      []progress.Change   `json:"diff,omitempty"`
	Prompt    *prompt.Request     `json:"prompt,omitempty"`
	Files     *Files              `json:"files,omitempty"`

	main *progress.Step  // the loop whose iterations are shown
	step session.Address // the step whose prompt is shown

	resume func() string // returns how to resume the run
	where  string        // where the files of the result are

	columns int    // width of the terminal; 0 without a terminal
	spool   *spool // of the iterations that the tree left out; nil if they are not shown
}

// mostSteps bounds the steps that show holds.
const mostSteps = 4096

// Run shows the run, or the file of a run, that word names.
func Run(ctx context.Context, e *term.Env, f Options, word string) error {
	from, to, err := parseDiff(f.Diff)
	if err != nil {
		return err
	}
	if f.Diff != "" && (f.One || f.State) {
		return errors.New("--diff is about two iterations; leave out --iteration and --state")
	}
	if f.Files && (f.One || f.State || f.Prompt != "" || f.Resources) {
		return errors.New("--files stands alone or beside --diff")
	}
	if f.Prompt != "" && (f.Diff != "" || f.State) {
		return errors.New("--prompt is about one step; leave out --diff and --state")
	}
	run, err := runstore.Open(ctx, e, f.Store, word)
	if err != nil {
		return err
	}
	defer run.Close()
	opts := runlog.ReportOptions{Most: mostSteps, Keep: session.Address(f.Loop)}
	var left *spool
	if whole := !f.One && f.Diff == "" && f.Prompt == "" && !f.Files; whole && (f.JSON || f.All && !f.State && !f.Resources) {
		left = newSpool()
		defer left.close()
		if opts.Drop = left.drop; !f.JSON {
			opts.Drop = left.dropLines
		}
	}
	s, err := Of(ctx, run, opts)
	if err != nil {
		return err
	}
	s.spool = left
	if f.One || f.Diff != "" || f.Loop != "" {
		if s.main, err = loopOf(s.Tree, f.Loop); err != nil {
			return term.UsageError(fmt.Errorf("run %s: %w", run.ID, err))
		}
	}
	if f.One {
		if s.Iteration, err = iterationIn(ctx, run, s.main, f.Iteration); err != nil && (f.Iteration != 0 || !f.State) {
			return term.UsageError(err)
		}
	}
	if f.State {
		seq := run.Last().Seq
		if f.One {
			if seq, err = seqOf(run, s.main, f.Iteration); err != nil {
				return err
			}
		}
		s.State = run.StateAfter(seq)
	}
	if f.Diff != "" {
		if s.Diff, err = diffOf(run, s.main, from, to); err != nil {
			return err
		}
	}
	if f.Files {
		if s.Files, err = filesOf(ctx, run, s.main, f.Diff != "", from, to); err != nil {
			return term.UsageError(err)
		}
	}
	if f.Prompt != "" {
		if s.step, s.Prompt, err = s.promptOf(ctx, e.Code, run, f.Prompt, f.Iteration); err != nil {
			return err
		}
	}
	if f.Resources {
		s.Resources = &s.Used
		s.Resources.Wall, s.Resources.Active = s.Updated.Sub(s.Started), s.Tree.Active()
	}
	s.columns = term.ColumnsOf(e.Stdout)
	if err := s.print(e, f); err != nil {
		return term.Failure(fmt.Errorf("write the run: %w", err))
	}
	return nil
}

// parseDiff reads N..M.
func parseDiff(s string) (from, to int, err error) {
	if s == "" { // the flag is not given
		return 0, 0, nil
	}
	a, b, ok := strings.Cut(s, "..")
	from, err = strconv.Atoi(a)
	to, err2 := strconv.Atoi(b)
	if !ok || err != nil || err2 != nil || from < 0 || to < 0 {
		return 0, 0, fmt.Errorf("--diff %q: write the numbers of two iterations, such as --diff 3..4", s)
	}
	return from, to, nil
}

// Of returns the report about a run.
func Of(ctx context.Context, r *runstore.Run, opts runlog.ReportOptions) (*Shown, error) {
	rep, err := r.Report(ctx, opts, lease.Dead)
	if err != nil {
		err = term.Failure(err)
	}
	view := r.View()
	if view != nil && !mark.RunStatus(rep.Status).IsFinal() { // an audit export has no state
		if p, err := program.Of(view); err == nil {
			def, _ := p.Definition()
			rep.Answer = runstore.SaidLast(def, view, rep.Answer)
		}
	}
	return &Shown{Report: rep, main: rep.Tree.Main(), resume: r.HowToResume, where: runstore.FilesOf(ctx, r.ID, view)}, err
}

// iterationIn returns an iteration of a loop, with all text of its steps.
func iterationIn(ctx context.Context, r *runstore.Run, main *progress.Step, n int) (*progress.Iteration, error) {
	if it, err := iterationOf(main, n); err != nil && main.Loop.Left() == 0 {
		return it, err
	}
	s, err := Of(ctx, r, runlog.ReportOptions{Most: mostSteps, Pass: passOf(main, n)})
	if err != nil {
		return nil, err
	}
	if main, err = loopOf(s.Tree, string(main.Address)); err != nil {
		return nil, err
	}
	return iterationOf(main, n)
}

// passOf returns the address of an iteration of a loop.
func passOf(loop *progress.Step, n int) session.Address {
	return session.Address(fmt.Sprintf("%s[%d]", loop.Address, n))
}

// loopOf returns the loop at an address; with an empty address, the main loop of the run.
func loopOf(t *progress.Tree, address string) (*progress.Step, error) {
	var loops []string
	var found *progress.Step
	for s := range t.Loops() {
		loops = append(loops, string(s.Address))
		if string(s.Address) == address {
			found = s
		}
	}
	switch {
	case len(loops) == 0:
		return nil, errors.New("no loop has begun in it")
	case address == "":
		return t.Main(), nil
	case found != nil:
		return found, nil
	}
	return nil, fmt.Errorf("no loop has the address %q (%s)", address, term.Meant(address, loops))
}

// iterationOf returns an iteration of a loop.
func iterationOf(s *progress.Step, n int) (*progress.Iteration, error) {
	for _, it := range s.Loop.Iterations {
		if it.Number == n {
			return it, nil
		}
	}
	return nil, noIteration(s, n)
}

func noIteration(s *progress.Step, n int) error {
	has := "it has none"
	if its := s.Loop.Iterations; len(its) > 0 {
		has = fmt.Sprintf("it has %d to %d", its[0].Number, its[len(its)-1].Number)
	}
	if n == 0 {
		has += "; --state shows what there was before the first"
	}
	return fmt.Errorf("loop %s has no iteration %d: %s", cmp.Or(string(s.Address), s.Name), n, has)
}

// seqOf returns the number of the last event of an iteration.
func seqOf(r *runstore.Run, s *progress.Step, n int) (int64, error) {
	seq := progress.IterationSeq(r.Current(), s.Address, n)
	if seq == 0 {
		return 0, term.UsageError(noIteration(s, n))
	}
	return seq, nil
}

// diffOf returns the changes of the state between two iterations.
func diffOf(r *runstore.Run, s *progress.Step, from, to int) ([]progress.Change, error) {
	a, err := seqOf(r, s, from)
	if err != nil {
		return nil, err
	}
	b, err := seqOf(r, s, to)
	if err != nil {
		return nil, err
	}
	return progress.Diff(r.StateAfter(a), r.StateAfter(b)), nil
}
