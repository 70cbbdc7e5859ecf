// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/command/internal/trust"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// soon is how long a background process may take to take over its run.
const soon = 30 * time.Second

// patience is how long to wait for a run that should soon ask a question or end.
const patience = 10 * time.Second

// Detach stores a new run, and starts a background process that drives it. The background process does not end with this one.
func Detach(ctx context.Context, e *term.Env, s *runstore.Stock, req supervisor.Request, l Launch) error {
	if !s.Durable {
		req.Program.Close()
		return term.UsageError(errors.New("--detach: a store in memory ends with this process; name another store " +
			"with --store"))
	}
	sup, err := s.Supervise(e, nil)
	if err != nil {
		return err
	}
	defer sup.Close(ctx)
	if l.id, err = sup.Submit(ctx, req); err != nil {
		return term.Failure(err)
	}
	if len(l.Notify) > 0 {
		if err := s.Notifier(e, nil, false, "", nil).Register(ctx, l.id, l.Notify, 0); err != nil {
			return term.Failure(fmt.Errorf("run %s is stored, but not continued: --notify: %w", l.id, err))
		}
	}
	if err := inBackground(ctx, e, s, l); err != nil {
		return term.Failure(fmt.Errorf("run %s is stored, but was not continued: %w. %s", l.id, err,
			runstore.HowToResumeIn(ctx, s.Service, l.id)))
	}
	tellStanding(ctx, e, s, l.id, "started")
	_, err = fmt.Fprintln(e.Stdout, l.id)
	return term.Failure(err)
}

// Launch describes what a background process does.
type Launch struct {
	id    string
	Grace time.Duration
	// Notify says who is notified besides those of the definition.
	Notify definition.Notify
	// Brief says that the process ends soon, because the run begins with a question, or has only its end left.
	Brief bool
}

// inBackground starts this program again to resume a run, and waits until the new process has taken over the run.
func inBackground(ctx context.Context, e *term.Env, s *runstore.Stock, l Launch) error {
	log, err := runstore.OpenMessages(e, s, l.id)
	if err != nil {
		return err
	}
	defer log.Close()
	begin, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	seen, err := s.LastSeq(ctx, l.id)
	if err != nil {
		return err
	}
	cmd, err := resumeCommand(e, s, l)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	late, cancel := context.WithTimeoutCause(ctx, soon, errors.New("no process took over the run"))
	defer cancel()
	taken := make(chan error, 1)
	go func() { taken <- s.Taken(late, l.id, seen) }()
	select {
	case err := <-taken:
		if err == nil && l.Brief {
			select {
			case <-ended:
			case <-time.After(patience): // the run has more to do than expected
			}
		}
		return err
	case err := <-ended: // the process has ended early, or could not start
		if now, lookErr := s.LastSeq(ctx, l.id); err == nil || lookErr == nil && now > seen {
			return nil
		}
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(text[min(begin, int64(len(text))):])))
	}
}

// resumeCommand returns the command that resumes a run with this program, in the working directory of this process. The name of
// the store is not among its arguments, because a list of processes shows arguments, and the name may contain a password.
func resumeCommand(e *term.Env, s *runstore.Stock, l Launch) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	spec, err := s.Elsewhere(e)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "resume", "--progress", term.Plain, "--grace", l.Grace.String(), "--", l.id)
	cmd.Dir, cmd.Env = s.Dir, append(os.Environ(), "REFRAIN_STORE="+spec)
	if copies := e.Getenv(trust.CopiesVariable); copies != "" {
		cmd.Env = append(cmd.Env, trust.CopiesVariable+"="+copies)
	}
	apart(cmd)
	return cmd, nil
}

// tellStanding prints the status of a run that another process has taken over. The run may already have ended, or wait for an
// answer.
func tellStanding(ctx context.Context, e *term.Env, s *runstore.Stock, id, went string) {
	view, run, err := s.View(ctx, id)
	if err != nil {
		term.PrintError(e.Stderr, err)
		return
	}
	sum := progress.Summarize(slices.Collect(view.Log().Outline()))
	status := sum.Status
	if run != nil {
		status = run.Status
	}
	switch status {
	case mark.RunRunning:
		fmt.Fprintf(e.Stderr, "run %s continues in the background: follow it with refrain watch %s; end it with "+
			"refrain pause %s or refrain cancel %s\n", id, id, id, id)
	case mark.RunWaiting:
		fmt.Fprintf(e.Stderr, "run %s has %s in the background, and %s\n%s\n", id, went, runstore.WaitsForPerson,
			strings.Join(runstore.Asks(id, sum), "\n"))
	case mark.RunCompleted:
		fmt.Fprintf(e.Stderr, "run %s has already completed; refrain watch %s shows its answer\n", id, id)
	case mark.RunFailed:
		fmt.Fprintf(e.Stderr, "run %s has already failed: %s\n", id, brief.Clean(sum.Error))
	default:
		fmt.Fprintf(e.Stderr, "run %s is %s\n%s\n", id, status, runstore.HowToResume(view, id))
	}
}

// AsksFirst reports whether an agent asks a person before it does anything else.
func AsksFirst(a *definition.Agent) bool {
	switch {
	case a.Type == definition.TypeHuman:
		return true
	case a.Type == definition.TypeParallel:
		return !slices.ContainsFunc(a.SubAgents, func(b *definition.Agent) bool { return !AsksFirst(b) })
	case a.Type != definition.TypeLoop && a.Type != definition.TypeSequential:
		return false
	}
	for _, b := range a.SubAgents {
		if a.Loop != nil && len(a.Loop.Order) > 0 && a.Loop.Order[0] != b.Name ||
			a.Loop != nil && b.OutputKey == definition.LoopOutput {
			continue // not the first agent, or a finalizer
		}
		return AsksFirst(b)
	}
	return false
}
