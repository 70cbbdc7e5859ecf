// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// soon is how long a process in the background may take to take its run up.
const soon = 30 * time.Second

// patience is how long a run may take to a question, or an end, that is the next thing.
const patience = 10 * time.Second

// detach puts a run into the log and has another process, which does not end with
// this one, drive it.
func detach(ctx context.Context, e *env, s *stock, req supervisor.Request, l launch) error {
	if !s.durable {
		req.Program.Close()
		return &exitError{exitUsage, errors.New("--detach: a store in memory ends with this process; name another one with --store")}
	}
	sup, err := s.supervise(e, nil)
	if err != nil {
		return err
	}
	defer sup.Close(ctx)
	if l.id, err = sup.Submit(ctx, req); err != nil {
		return &exitError{exitFailed, err}
	}
	if err := inBackground(ctx, e, s, l); err != nil {
		return &exitError{exitFailed, fmt.Errorf("run %s is kept, but does not go on: %w. %s", l.id, err, howToResumeIn(ctx, s.service, l.id))}
	}
	tellStanding(ctx, e, s, l.id, "started")
	if _, err := fmt.Fprintln(e.stdout, l.id); err != nil {
		return &exitError{exitFailed, err}
	}
	return nil
}

// launch is what a process in the background is to do.
type launch struct {
	id    string
	grace time.Duration
	// brief says that the process has soon nothing to do, because the run begins with
	// a question, or because nothing but its end is still to come.
	brief bool
}

// inBackground starts this program again, to resume a run, and waits until it does.
func inBackground(ctx context.Context, e *env, s *stock, l launch) error {
	log, err := openMessages(e, s, l.id)
	if err != nil {
		return err
	}
	defer log.Close()
	begin, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	seen, err := s.lastSeq(ctx, l.id)
	if err != nil {
		return err
	}
	cmd, err := s.command(e, l)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	late, cancel := context.WithTimeoutCause(ctx, soon, errors.New("nobody has taken it up"))
	defer cancel()
	taken := make(chan error, 1)
	go func() { taken <- s.taken(late, l.id, seen) }()
	select {
	case err := <-taken:
		if err == nil && l.brief {
			select {
			case <-ended:
			case <-time.After(patience): // it has more to do than was thought
			}
		}
		return err
	case err := <-ended: // it was quick, or could not
		if now, lookErr := s.lastSeq(ctx, l.id); err == nil || lookErr == nil && now > seen {
			return nil
		}
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(text[min(begin, int64(len(text))):])))
	}
}

// command is this program, told to resume a run. It is where this one was started,
// and what the store is called does not show in a list of processes: there may be a
// password in it.
func (s *stock) command(e *env, l launch) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	spec, err := s.elsewhere(e)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "resume", "--progress", progressPlain, "--grace", l.grace.String(), "--", l.id)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "REFRAIN_STORE="+spec)
	apart(cmd)
	return cmd, nil
}

// taken waits until somebody has taken a run up.
func (s *stock) taken(ctx context.Context, id string, seen int64) error {
	for ev, err := range s.service.(session.Watcher).Watch(ctx, keyOf(id), seen) {
		if err != nil || ev.Mark != nil && ev.Mark.Kind == mark.KindRunTaken {
			return err
		}
	}
	return context.Cause(ctx)
}

// lastSeq is the number of a run's last event.
func (s *stock) lastSeq(ctx context.Context, id string) (int64, error) {
	got, err := s.service.Get(ctx, &session.GetRequest{AppName: appName, UserID: userName, SessionID: id, NumRecentEvents: 1})
	if err != nil {
		return 0, err
	}
	return session.ViewOf(got.Session).LastSeq(), nil
}

// view is a run's log, and what it says of the run; nil if it says nothing.
func (s *stock) view(ctx context.Context, id string) (*session.View, *mark.Run, error) {
	got, err := s.service.Get(ctx, &session.GetRequest{AppName: appName, UserID: userName, SessionID: id})
	if err != nil {
		return nil, nil, err
	}
	view := session.ViewOf(got.Session)
	return view, session.RunOf(view), nil
}

// tellStanding says what has become of a run that another process was given. It may
// have come to its end, or to a question, already.
func tellStanding(ctx context.Context, e *env, s *stock, id, went string) {
	view, run, err := s.view(ctx, id)
	if err != nil {
		printError(e.stderr, err)
		return
	}
	sum := progress.Summarize(slices.Collect(view.Outline()))
	status := sum.Status
	if run != nil {
		status = run.Status
	}
	switch status {
	case mark.RunRunning:
		fmt.Fprintf(e.stderr, "run %s goes on in the background: refrain watch %s shows it, refrain pause %s and refrain cancel %s end it\n", id, id, id, id)
	case mark.RunWaiting:
		fmt.Fprintf(e.stderr, "run %s has %s in the background, and %s\n%s\n", id, went, waitsForPerson, strings.Join(asking(id, sum), "\n"))
	case mark.RunCompleted:
		fmt.Fprintf(e.stderr, "run %s has completed already: refrain watch %s shows its answer\n", id, id)
	case mark.RunFailed:
		fmt.Fprintf(e.stderr, "run %s has failed already: %s\n", id, progress.Clean(sum.Error))
	default:
		fmt.Fprintf(e.stderr, "run %s is %s\n%s\n", id, status, howToResume(view, id))
	}
}

// asksFirst reports whether a person is asked before anything else is done.
func asksFirst(a *definition.Agent) bool {
	switch {
	case a.Type == definition.TypeHuman:
		return true
	case a.Type == definition.TypeParallel:
		return !slices.ContainsFunc(a.SubAgents, func(b *definition.Agent) bool { return !asksFirst(b) })
	case a.Type != definition.TypeLoop && a.Type != definition.TypeSequential:
		return false
	}
	for _, b := range a.SubAgents {
		if a.Loop != nil && len(a.Loop.Order) > 0 && a.Loop.Order[0] != b.Name || a.Loop != nil && b.OutputKey == definition.LoopOutput {
			continue // not the first, or a finalizer
		}
		return asksFirst(b)
	}
	return false
}

// openMessages opens the file for what a process in the background has to say, in
// the folder of the store.
func openMessages(e *env, s *stock, id string) (*os.File, error) {
	dir := messagesDir(e, s.spec)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(s.dir, dir)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(messagesName(id), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
}

// messagesDir is the folder of what processes in the background have had to say.
func messagesDir(e *env, spec string) string {
	return filepath.Join(filepath.Dir(artifactsDir(e, spec)), "messages")
}

// messagesName is the file of a run: in that folder, whatever its ID is.
func messagesName(id string) string { return url.PathEscape(id) + ".txt" }
