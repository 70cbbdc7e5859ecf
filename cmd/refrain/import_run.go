// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/refrain-dev/refrain/session"
)

// importFlags are the flags of refrain import for a run.
type importFlags struct{ store, as string }

// newImportRun is refrain import: of a run and, with --from or of a file that
// holds none, of a definition.
func newImportRun(e *env) *cobra.Command {
	var f importFlags
	cmd := newImport(e)
	definition := cmd.RunE
	cmd.Short = "Take a run from a file, or make a definition of a file of another product"
	cmd.Long = `Take a run from a file that refrain export or refrain run --record has written into
a store, with all its events. It has the ID that it had, or the one of --as. A file
that was changed, or that is not whole, is refused. "-" reads standard input. A run
that was cut off can be resumed here.

With --from, and of any other file: ` + strings.ToLower(cmd.Long[:1]) + cmd.Long[1:]
	cmd.Example = `  refrain import run.jsonl
  refrain import run.jsonl --as r_copy --store sqlite:other.db
` + cmd.Example
	storeFlag(cmd.Flags(), &f.store)
	cmd.Flags().StringVar(&f.as, "as", "", "`ID` that a run gets here")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("from") || args[0] != "-" && !cmd.Flags().Changed("as") && !holdsRun(args[0]) {
			return definition(cmd, args)
		}
		return runImport(cmd.Context(), e, f, args[0])
	}
	return cmd
}

// holdsRun reports whether a file begins as one with a run does: with a JSON
// object on its first line that is an event, or the head of an export.
func holdsRun(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	line, err := readLine(bufio.NewReaderSize(f, 1<<16))
	var first struct{ Type, InvocationID string }
	return (err == nil || errors.Is(err, io.EOF)) && json.Unmarshal(line, &first) == nil && (first.Type == "run" || first.InvocationID != "")
}

// runImport takes a run from a file into the store.
func runImport(ctx context.Context, e *env, f importFlags, name string) error {
	log, err := openLog(e, name)
	if err != nil {
		return err
	}
	run := &oneRun{file: log, events: log.events}
	if log.head != nil {
		run.id, run.initial = log.head.ID, log.head.State
	}
	if err := run.sound(); err != nil {
		return &exitError{exitFailed, fmt.Errorf("%s: %w; nothing was imported", name, err)}
	}
	switch {
	case f.as != "":
		run.id = f.as
	case run.id == "":
		run.id = "r_" + uuid.NewString()[:8] // a record does not say
	}
	if err := checkRunID(run.id); err != nil {
		if f.as == "" {
			err = fmt.Errorf("%s: %w; give it one with --as", name, err)
		}
		return &exitError{exitUsage, err}
	}
	if err := prepareFolder(e, f.store); err != nil {
		return err
	}
	store, closeStore, err := openStore(ctx, e, f.store)
	if err != nil {
		return err
	}
	defer closeStore()
	switch err := run.save(ctx, store); {
	case errors.Is(err, session.ErrExists):
		return &exitError{exitFailed, fmt.Errorf("there is a run %s already; import it with another ID by --as, or remove that one with refrain rm", run.id)}
	case err != nil:
		return &exitError{exitFailed, fmt.Errorf("import %s: %w", name, err)}
	}
	fmt.Fprintf(e.stderr, "%s: %d events\n", name, len(run.events))
	if _, err := fmt.Fprintln(e.stdout, run.id); err != nil {
		return &exitError{exitFailed, err}
	}
	return nil
}

// sound says why a log is not to be trusted, or is not whole.
func (r *oneRun) sound() error {
	v, bad, err := r.verified()
	switch {
	case err != nil:
		return err
	case v.Flaw != nil && (v.Flaw.Line > 0 || bad == 0): // or else the seals say more
		return fmt.Errorf("the log was changed, or is not whole: %s", v.Flaw)
	case r.events[0].Seq != 1:
		return fmt.Errorf("the log begins with event %d: it is not the whole session; refrain export writes that", r.events[0].Seq)
	}
	for _, l := range v.Loops {
		if l.Problem != "" {
			return fmt.Errorf("the log was changed: %s: %s", l.Loop, l.Problem)
		}
	}
	for _, run := range v.Runs {
		if run.Problem != "" {
			return fmt.Errorf("the log was changed: run %s: %s", run.Run, run.Problem)
		}
	}
	return nil
}

// save makes the session, and appends all events to it at once. If that fails it
// leaves nothing behind; if the process dies, at most an empty session, which another
// import takes.
func (r *oneRun) save(ctx context.Context, store session.Service) (err error) {
	state := maps.Clone(r.initial)
	maps.DeleteFunc(state, func(key string, _ any) bool { return !session.OwnKey(key) })
	create := &session.CreateRequest{AppName: appName, UserID: userName, SessionID: r.id, State: state}
	made, err := store.Create(ctx, create)
	if errors.Is(err, session.ErrExists) && removeEmpty(ctx, store, r.id) {
		made, err = store.Create(ctx, create)
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			gone := &session.DeleteRequest{AppName: appName, UserID: userName, SessionID: r.id}
			err = errors.Join(err, store.Delete(context.WithoutCancel(ctx), gone))
		}
	}()
	if leaser, ok := store.(session.Leaser); ok { // so that nobody resumes what is not whole
		lease, err := acquire(ctx, leaser, r.id, 10*time.Minute)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, leaser.Release(context.WithoutCancel(ctx), lease)) }()
	}
	shared := sharedState(made.Session)
	if err := session.AppendAll(ctx, store, made.Session, slices.Values(r.events)); err != nil {
		return err
	}
	return restoreShared(ctx, store, shared, sharedState(made.Session))
}

// removeEmpty removes a session without events that nobody drives: a process died
// before it had written anything of a run. It reports whether it did.
func removeEmpty(ctx context.Context, store session.Service, id string) bool {
	leaser, ok := store.(session.Leaser)
	if !ok {
		return false
	}
	lease, err := acquire(ctx, leaser, id, time.Minute)
	if err != nil {
		return false
	}
	defer leaser.Release(context.WithoutCancel(ctx), lease) // goes with the session
	got, err := store.Get(ctx, &session.GetRequest{AppName: appName, UserID: userName, SessionID: id, NumRecentEvents: 1})
	if err != nil || got.Session.Events().Len() > 0 {
		return false
	}
	return store.Delete(ctx, &session.DeleteRequest{AppName: appName, UserID: userName, SessionID: id}) == nil
}

// sharedState are the keys that other sessions share.
func sharedState(s session.Session) map[string]any {
	all := maps.Collect(s.State().All())
	own := session.OwnState(s.State())
	maps.DeleteFunc(all, func(key string, _ any) bool { _, is := own[key]; return is })
	return all
}

// restoreShared gives the keys that other sessions share the values that they had
// before an old log wrote them. It takes an event, which is in a session of its
// own.
func restoreShared(ctx context.Context, store session.Service, before, after map[string]any) error {
	delta := maps.Clone(before)
	for key := range after {
		if _, was := before[key]; !was {
			delta[key] = nil
		}
	}
	if len(after) == 0 {
		return nil
	}
	made, err := store.Create(ctx, &session.CreateRequest{AppName: appName, UserID: userName, SessionID: "import_" + uuid.NewString()[:8]})
	if err != nil {
		return err
	}
	ev := session.NewEvent(ctx, "import")
	ev.Author, ev.Actions.StateDelta = "user", delta
	err = store.AppendEvent(ctx, made.Session, ev)
	gone := &session.DeleteRequest{AppName: appName, UserID: userName, SessionID: made.Session.ID()}
	return errors.Join(err, store.Delete(context.WithoutCancel(ctx), gone))
}
