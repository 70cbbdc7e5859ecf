// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/google/uuid"

	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/store"
)

// Sound verifies the log. It returns an error if the log was changed or is incomplete, or if it does not begin with the first
// event of its session.
func (r *Run) Sound() (*Verified, error) {
	v, err := r.Verified()
	if err != nil {
		return nil, err
	}
	switch _, bad := v.Seals(); {
	case v.Flaw != nil && (v.Flaw.Line > 0 || bad == 0 || r.File != nil && r.File.Masked() > 0): // or else the seals say more
		return nil, fmt.Errorf("the log was changed, or is incomplete: %s", v.Flaw)
	case r.First().Seq != 1:
		return nil, fmt.Errorf("the log begins with event %d: it is not the whole session; export all of it with "+
			"refrain export", r.First().Seq)
	}
	for _, l := range v.Loops {
		if l.Problem != "" {
			return nil, fmt.Errorf("the log was changed: %s: %s", l.Loop, l.Problem)
		}
	}
	for i, run := range v.Runs {
		if run.Problem != "" {
			return nil, fmt.Errorf("the log was changed: %s: %s", v.Named(i), run.Problem)
		}
	}
	if len(v.State) > 0 {
		return nil, fmt.Errorf("the log was changed: its state: %s", v.State[0])
	}
	return v, nil
}

// Save creates the session key with all events of the log. It reads the log event by event. The keys that sessions share
// (app: and user:) have the same values afterwards as before. If the log writes such keys, Save restores them from a
// temporary session. It returns [session.ErrExists] if the session exists.
func (r *Run) Save(ctx context.Context, svc session.Service, key lease.Key) (err error) {
	state := maps.Clone(r.Initial)
	maps.DeleteFunc(state, func(key string, _ any) bool { return !statekey.Own(key) })
	req := &session.CreateRequest{AppName: key.AppName, UserID: key.UserID, SessionID: key.SessionID, State: state}
	shared := false
	for ev := range r.All() {
		if shared = writesShared(ev); shared {
			break
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	if !shared {
		return store.StartLog(ctx, svc, req, r.checked)
	}
	beside, err := svc.Create(ctx, &session.CreateRequest{AppName: key.AppName, UserID: key.UserID,
		SessionID: "import_" + uuid.NewString()[:8]})
	if err != nil {
		return err
	}
	defer func() {
		gone := &session.DeleteRequest{AppName: key.AppName, UserID: key.UserID, SessionID: beside.Session.ID()}
		err = errors.Join(err, svc.Delete(context.WithoutCancel(ctx), gone))
	}()
	before := sharedState(beside.Session)
	if err := store.StartLog(ctx, svc, req, r.checked); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if err := restoreShared(ctx, svc, beside.Session, before); err != nil {
		return errors.Join(err, svc.Delete(ctx, &session.DeleteRequest{AppName: key.AppName, UserID: key.UserID,
			SessionID: key.SessionID}))
	}
	return nil
}

// checked yields the log with all texts, and then the error if the log could not be read to its end.
func (r *Run) checked(yield func(*session.Event, error) bool) {
	for ev := range r.Events() {
		if !yield(ev, nil) {
			return
		}
	}
	if err := r.Err(); err != nil {
		yield(nil, err)
	}
}

// writesShared reports whether an event writes a key that sessions share.
func writesShared(ev *session.Event) bool {
	for key := range ev.Actions.StateDelta {
		if statekey.Shared(key) {
			return true
		}
	}
	return false
}

// sharedState returns the keys of a session that other sessions share, with their values.
func sharedState(s session.Session) map[string]any {
	all := maps.Collect(s.State().All())
	maps.DeleteFunc(all, func(key string, _ any) bool { return !statekey.Shared(key) })
	return all
}

// restoreShared sets the keys that sessions share to the values in before, which they had before the old log was stored. It
// appends an event to the session beside, because only an event can change the keys.
func restoreShared(ctx context.Context, store session.Service, beside session.Session, before map[string]any) error {
	now, err := store.Get(ctx, &session.GetRequest{AppName: beside.AppName(), UserID: beside.UserID(),
		SessionID: beside.ID()})
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
