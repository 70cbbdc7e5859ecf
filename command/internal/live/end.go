// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/command/internal/deffile"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/history/stops"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sqlite"
	"github.com/refrain-dev/refrain/supervisor"
)

// refused returns the error of a run that did not begin.
func (f *follower) refused(err error) error {
	if exit, ok := errors.AsType[*term.Exit](err); ok {
		return exit
	}
	if errors.Is(err, term.ErrInterrupted) {
		return &term.Exit{Code: term.ExitInterrupted}
	}
	if held, ok := errors.AsType[*lease.HeldError](err); ok {
		return term.Failure(fmt.Errorf("run %s is driven by %s since %s; follow it with refrain watch %s, or pause "+
			"it with refrain pause %s",
			held.Key.SessionID, held.Owner, held.Since.Local().Format(time.DateTime), held.Key.SessionID,
			held.Key.SessionID))
	}
	if errors.Is(err, supervisor.ErrOver) {
		err = f.over(err)
	}
	return term.Failure(err)
}

// over adds to the error of a run that has ended how to continue the run, if that is possible.
func (f *follower) over(err error) error {
	run := f.req.Stands
	switch {
	case run == nil:
	case run.Status == mark.RunFailed:
		return fmt.Errorf("run %s has failed; retry it with refrain resume %s --retry. %s", f.req.Session,
			f.req.Session, run.Error)
	case !endsInLoop(f.def.Root):
	case run.Stop == string(loop.ReasonNoProgress), run.Stop == string(loop.ReasonConverged):
		return fmt.Errorf("%w: %s; to continue from an iteration, with another definition if you like: "+
			"refrain fork %s --run --at-iteration N --definition FILE", err, run.Stop, f.req.Session)
	default:
		switch what, flag := raiseFlag(&loop.StopRecord{Reason: loop.StopReason(run.Stop)}); {
		case what == "":
		case f.def.Allows(definition.Limits{MaxIterations: new(uint(1))}) != nil: // no flag says which loop it is for
			return fmt.Errorf("%w: %s; give the loop %s in the file, with --definition FILE", err, run.Stop, what)
		case flag != "":
			return fmt.Errorf("%w: %s; give the loop %s with %s", err, run.Stop, what, flag)
		default:
			return fmt.Errorf("%w: %s; give the loop %s", err, run.Stop, what)
		}
	}
	return err
}

// raiseFlag returns what a loop needs in order to continue after a limit, and the flag of refrain resume that gives it. flag is empty
// if the record does not tell which of the run's budgets is spent.
func raiseFlag(rec *loop.StopRecord) (what, flag string) {
	switch rec.Reason {
	case loop.ReasonMaxIterations:
		return "more iterations", "--add-iterations N"
	case loop.ReasonTimeout:
		return "more time", "--timeout DURATION"
	case loop.ReasonBudget:
		for _, c := range rec.Conditions {
			if limit, ok := strings.CutPrefix(c.Name, "budget."); ok && c.Fired {
				return "a larger budget", "--budget-" + limit + " N"
			}
		}
		return "a larger --budget-calls, --budget-tokens or --budget-cost", ""
	}
	return "", ""
}

// endsInLoop reports whether an agent is a loop, or a sequence or parallel agent with a loop: only such a run can continue with
// other limits after it has completed.
func endsInLoop(a *definition.Agent) bool {
	switch a.Type {
	case definition.TypeLoop:
		return true
	case definition.TypeSequential, definition.TypeParallel:
		return slices.ContainsFunc(a.SubAgents, endsInLoop)
	}
	return false
}

// finish shows the end of the run.
func (f *follower) finish(end supervisor.Ending) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return term.Failure(f.broken)
	}
	if !f.begun { // the run ended before its first event
		f.begun = true
		f.diary.line(f.req.at, startedLine(f.req))
		if err := f.out.started(f.req); err != nil {
			return term.Failure(err)
		}
	}
	res := result{answer: f.sees.Fold.Answer(), stop: f.sees.Fold.Stop(), findings: f.sees.Diagnosis.Findings(), tasks: f.sees.Fold.Tasks(),
		used: f.meter.Used(f.sees.Resources)}
	res.used.Active = end.Run.ActiveAt(time.Now())
	f.ended(end, &res)
	if f.diary != nil && f.diary.file != nil {
		dir, name := runstore.DiaryPlace(f.e, f.stock.Name(f.e), f.req.Session)
		file := filepath.Join(dir, name)
		if here, err := os.Getwd(); err == nil {
			if rel, err := filepath.Rel(here, file); err == nil && filepath.IsLocal(rel) {
				file = rel
			}
		}
		res.next = append(res.next, "What happened, line by line: "+file+"; all that the agents said and did: refrain show "+f.req.Session+" --transcript")
	}
	f.diary.finished(f.req, res)
	return res.show(f.out, f.req)
}

// ended fills in the result of a run: its error, its exit code, and what to do next.
func (f *follower) ended(end supervisor.Ending, res *result) {
	id := f.req.Session
	_, isWaiting := errors.AsType[*agent.WaitingError](end.Err)
	canceled, isCanceled := errors.AsType[*supervisor.CanceledError](end.Err)
	_, isPaused := errors.AsType[*supervisor.PausedError](end.Err)
	switch {
	case end.Err == nil:
		res.code = exitCode(f.sees.Fold.Stops(), f.req.ZeroOnLimit)
		res.next = append(res.next, f.files()...)
		if f.req.lasts {
			res.next = append(res.next, "See what the run did with: refrain show "+id)
			all := f.sees.Fold.Stops()
			i := slices.IndexFunc(all, func(r *loop.StopRecord) bool { return r.Reason.Limit() })
			if res.code == term.ExitLimit && i >= 0 && endsInLoop(f.def.Root) &&
				f.def.Allows(definition.Limits{MaxIterations: new(uint(1))}) == nil { // resume can set a limit
				what, flag := raiseFlag(all[i])
				res.next = append(res.next, strings.TrimSpace("Continue with "+what+": refrain resume "+id+" "+flag))
			}
		}
	case isCanceled:
		res.canceled("")
		if canceled.Reason != "" {
			res.next = append(res.next, canceled.Error())
		}
	case isWaiting && f.req.Asks:
		res.waits()
	case isWaiting && !f.req.lasts:
		res.waits(runstore.Asks(id, f.summary())[0], // after the process ends, nobody can answer
			"The run ends here, because it is kept in memory; give --store so that a run can wait for the answer")
	case isWaiting:
		res.waits(runstore.Asks(id, f.summary())...)
	case isPaused && !f.req.lasts:
		res.canceled("")
	case isPaused:
		said := res.answer
		res.paused(treeOf(f.current(math.MaxInt64)), f.summary(), runstore.HowToResumeIn(context.Background(), f.stock.Service, id))
		if f.presses.Load() > 0 {
			res.code = term.ExitInterrupted
			view, _ := f.stored()
			res.answer = runstore.SaidLast(f.def, view, said)
		}
	case errors.As(end.Err, new(*sqlite.RemovedError)):
		f.storeGone(end.Err, res)
	default:
		res.code, res.err = term.ExitFailed, deffile.Hint(end.Err)
		plain := progress.PlainError(end.Err.Error())
		tasksFailed := plain != end.Err.Error()
		if tasksFailed {
			res.err = errors.New(plain)
		}
		if p, ok := errors.AsType[*agent.PanicError](end.Err); ok && p.Where() != "" {
			res.next = append(res.next, "The panic was in "+p.Where())
		}
		stands := end.Run.Status
		switch was := f.req.Stands; {
		case stands == mark.RunFailed:
		case was != nil && was.Status == stands && stands != mark.RunRunning:
			res.status = "stays " + string(stands)
		case stands == mark.RunIsPaused:
			res.status = string(stands)
		}
		again := !errors.Is(end.Err, agent.ErrDiverged) || f.req.Changed // otherwise the run fails in the same way
		switch {
		case !f.req.lasts || !again:
		case stands == mark.RunFailed && errors.Is(end.Err, session.ErrStateLimit):
			res.next = append(res.next, "Continue with a definition that has a higher state limit or keeps less: refrain resume "+id+
				" --retry --definition FILE")
		case stands == mark.RunFailed && wasDenied(end.Err): // otherwise the tool is denied again
			res.next = append(res.next, "Allow it all tools, and try the failed step again, with: refrain resume "+id+" --permissions all")
		case stands == mark.RunFailed && tasksFailed: // a retry would say so again
			res.next = append(res.next, "Try the failed tasks again: take the branch, replace [!] by [ ] in its plan, and start refrain loop with the plan")
		case stands == mark.RunFailed:
			res.next = append(res.next, "Try the failed step again with: refrain resume "+id+" --retry")
		case !stands.IsFinal() || stands == mark.RunCanceled:
			res.next = append(res.next, runstore.HowToResumeIn(context.Background(), f.stock.Service, id))
		}
	}
}

// wasDenied reports whether a coding agent was not allowed to use a tool.
func wasDenied(err error) bool {
	failed, ok := errors.AsType[*taskagent.CLIError](err)
	return ok && failed.Outcome == taskagent.CLIDenied
}

// storeGone fills in the result of a run whose store was removed.
func (f *follower) storeGone(err error, res *result) {
	gone, _ := errors.AsType[*sqlite.RemovedError](err)
	res.status, res.code, res.err = runlog.StatusInterrupted, term.ExitFailed, gone // one error, even if several parts reported it
	if gone.Kept == "" {
		return
	}
	kept := gone.Kept
	if rel, err := filepath.Rel(f.stock.Dir, kept); err == nil && filepath.IsLocal(rel) {
		kept = rel
	}
	res.next = append(res.next, "Resume with: refrain resume "+f.req.Session+" --store sqlite:"+kept)
}

// summary returns the status of the run from its log.
func (f *follower) summary() *progress.Summary {
	return progress.SummarizeAll(f.current(math.MaxInt64))
}

// exitCode returns the exit code of a completed run; see [stops.Limited].
func exitCode(all []*loop.StopRecord, zeroOnLimit bool) int {
	if !zeroOnLimit && slices.ContainsFunc(all, stops.Limited) {
		return term.ExitLimit
	}
	return term.ExitOK
}
