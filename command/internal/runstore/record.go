// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/store"
)

// recorder also writes the events of a run to a file, one line of JSON for each event, as soon as the event is stored. The file
// of an interrupted run has all events up to the interruption. Pieces of streamed answers are neither in a store nor in the
// file, and the mailboxes of runs are not in the file.
type recorder struct {
	session.Service
	lease.Leaser
	store.Watcher
	file *os.File
}

// newRecorder creates the file. It fails if the file exists, because the file may be the record of another run.
func newRecorder(s session.Service, name string) (*recorder, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("--record %s: this file exists, and may be the record of another run; choose another "+
			"name, or remove the file", name)
	}
	if err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	return &recorder{s, s.(lease.Leaser), s.(store.Watcher), f}, nil
}

// AppendEvent stores the event and writes it to the file.
func (r *recorder) AppendEvent(ctx context.Context, s session.Session, ev *session.Event) error {
	if err := r.Service.AppendEvent(ctx, s, ev); err != nil || ev.Partial || s.AppName() == MailApp {
		return err
	}
	return r.write(ev)
}

// Start stores the events that a run begins with, and writes them to the file.
func (r *recorder) Start(ctx context.Context, req *session.StartRequest) (*session.StartResponse, error) {
	resp, err := store.Start(ctx, r.Service, req)
	for _, ev := range req.Events {
		if err == nil && !ev.Partial {
			err = r.write(ev)
		}
	}
	return resp, err
}

func (r *recorder) write(ev *session.Event) error {
	line, err := progress.MarshalJSON(ev.WithoutTemp())
	if err != nil {
		return fmt.Errorf("record event %d: %w", ev.Seq, err)
	}
	if _, err := r.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("record event %d: %w", ev.Seq, err)
	}
	return nil
}

// Close closes the file.
func (r *recorder) Close() error { return r.file.Close() }

// OpenLog reads a log file for a command. Its errors say what to do next, and it prints a note about a file whose end was cut
// off.
func OpenLog(e *term.Env, name string) (*runlog.File, error) {
	release, err := term.EndsReading(e)
	defer release()
	if err != nil {
		return nil, &term.Exit{Code: term.ExitInterrupted, Err: err}
	}
	log, err := runlog.ReadFile(name, e.Stdin)
	_, closed := errors.AsType[*fs.PathError](err)
	switch {
	case closed:
		return nil, term.UsageError(err)
	case err != nil:
		return nil, term.Failure(err)
	case log.Len() == 0:
		_ = log.Close()
		return nil, term.UsageError(fmt.Errorf("%s: the file has no events; write a run's events with refrain export or "+
			"refrain run --record FILE", name))
	case log.Cut:
		fmt.Fprintf(e.Stderr, "%s: the last line was cut off and is left out\n", name)
	}
	return log, nil
}
