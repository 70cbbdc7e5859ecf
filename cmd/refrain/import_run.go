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
	cmd.Short = "Import a run, or a definition of another product"
	cmd.Long = `Import a run with all its events, from a file that refrain export or refrain run
--record has written, into a store. It keeps its ID; --as gives it another one. A file
that was changed or is incomplete is refused. "-" reads stdin. A run that was cut off
can be resumed here.

Any other file, and with --from every file, is converted into a definition. It may be
` + cmd.Long
	cmd.Example = `  refrain import run.jsonl
  refrain import run.jsonl --as r_copy --store sqlite:other.db
` + cmd.Example
	storeFlag(cmd.Flags(), &f.store)
	cmd.Flags().StringVar(&f.as, "as", "", "`ID` of the run in this store (default: the ID that it has)")
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
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return false // what is read from a pipe is gone
	}
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
	v, err := run.sound()
	if err != nil {
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
	for i, seal := range v.Runs {
		if seal.Unsealed != "" {
			fmt.Fprintf(e.stderr, "%s: unsealed: %s: %s\n", name, v.named(i), seal.Unsealed)
		}
	}
	fmt.Fprintf(e.stderr, "%s: %d events\n", name, len(run.events))
	if _, err := fmt.Fprintln(e.stdout, run.id); err != nil {
		return &exitError{exitFailed, err}
	}
	return nil
}

// sound says why a log is not to be trusted, or is not whole.
func (r *oneRun) sound() (*verified, error) {
	v, err := r.verified()
	if err != nil {
		return nil, err
	}
	switch _, bad := v.seals(); {
	case v.Flaw != nil && (v.Flaw.Line > 0 || bad == 0): // or else the seals say more
		return nil, fmt.Errorf("the log was changed, or is not whole: %s", v.Flaw)
	case r.events[0].Seq != 1:
		return nil, fmt.Errorf("the log begins with event %d: it is not the whole session; refrain export writes that", r.events[0].Seq)
	}
	for _, l := range v.Loops {
		if l.Problem != "" {
			return nil, fmt.Errorf("the log was changed: %s: %s", l.Loop, l.Problem)
		}
	}
	for i, run := range v.Runs {
		if run.Problem != "" {
			return nil, fmt.Errorf("the log was changed: %s: %s", v.named(i), run.Problem)
		}
	}
	if len(v.State) > 0 {
		return nil, fmt.Errorf("the log was changed: its state: %s", v.State[0])
	}
	return v, nil
}

// save makes the session, with all events, at once. Keys that other sessions share stay as
// they are.
func (r *oneRun) save(ctx context.Context, store session.Service) (err error) {
	state := maps.Clone(r.initial)
	maps.DeleteFunc(state, func(key string, _ any) bool { return !session.OwnKey(key) })
	req := &session.StartRequest{
		CreateRequest: session.CreateRequest{AppName: appName, UserID: userName, SessionID: r.id, State: state},
		Events:        r.events,
	}
	if !slices.ContainsFunc(r.events, writesShared) {
		_, err := session.Start(ctx, store, req)
		return err
	}
	beside, err := store.Create(ctx, &session.CreateRequest{AppName: appName, UserID: userName, SessionID: "import_" + uuid.NewString()[:8]})
	if err != nil {
		return err
	}
	defer func() {
		gone := &session.DeleteRequest{AppName: appName, UserID: userName, SessionID: beside.Session.ID()}
		err = errors.Join(err, store.Delete(context.WithoutCancel(ctx), gone))
	}()
	before := sharedState(beside.Session)
	if _, err := session.Start(ctx, store, req); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if err := restoreShared(ctx, store, beside.Session, before); err != nil {
		return errors.Join(err, store.Delete(ctx, &session.DeleteRequest{AppName: appName, UserID: userName, SessionID: r.id}))
	}
	return nil
}

func writesShared(ev *session.Event) bool {
	for key := range ev.Actions.StateDelta {
		if isShared(key) {
			return true
		}
	}
	return false
}

// isShared reports whether other sessions have a state key, too.
func isShared(key string) bool {
	return strings.HasPrefix(key, session.KeyPrefixApp) || strings.HasPrefix(key, session.KeyPrefixUser)
}

// sharedState are the keys that other sessions share.
func sharedState(s session.Session) map[string]any {
	all := maps.Collect(s.State().All())
	maps.DeleteFunc(all, func(key string, _ any) bool { return !isShared(key) })
	return all
}

// restoreShared gives the keys that other sessions share the values that they had before
// an old log wrote them. It takes an event, which is in a session of its own.
func restoreShared(ctx context.Context, store session.Service, beside session.Session, before map[string]any) error {
	now, err := store.Get(ctx, &session.GetRequest{AppName: appName, UserID: userName, SessionID: beside.ID()})
	if err != nil {
		return err
	}
	delta := maps.Clone(before)
	for key := range sharedState(now.Session) {
		if _, was := before[key]; !was {
			delta[key] = nil
		}
	}
	ev := session.NewEvent(ctx, "import")
	ev.Author, ev.Actions.StateDelta = "user", delta
	return store.AppendEvent(ctx, now.Session, ev)
}
