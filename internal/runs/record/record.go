// SPDX-License-Identifier: Apache-2.0

// Package record keeps a JSON value beside a run or a schedule, in a session of its own, so that neither the log of a run nor
// an export of it contains the value.
//
//	all := record.Records[outbox]{Service: service, AppName: "refrain-notify", UserID: "user", Key: "outbox"}
//	err := all.Change(ctx, run, func(o *outbox) error {
//		o.Done = 12
//		return nil
//	})
package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/refrain-dev/refrain/internal/values/sleep"
	"github.com/refrain-dev/refrain/session"
)

// The ends of the names of applications with records about runs, which go when their runs are removed.
const (
	NotifyApp = "-notify" // who is notified of a run, and of what
	PushApp   = "-push"   // the clients of A2A that follow a task
)

// Records are the values of one user, by the IDs of what they are about, such as runs. Several processes may change them at the
// same time.
type Records[T any] struct {
	Service session.Service
	// AppName is the application of the sessions, which is not that of runs.
	AppName, UserID string
	// Key is the state key of a value. It is also the invocation ID of the events that change it.
	Key string
	// MostEvents is how many events a session may have before Change makes it anew; 0 means no limit. A process that dies between
	// the deletion and the creation loses the value.
	MostEvents int64
}

// mostTries is how often Change tries, with waits that add up to about 5 seconds.
const mostTries = 100

// ErrSame is the result of a function for [Records.Change] that has changed nothing.
var ErrSame = errors.New("nothing has changed")

// Read returns the value of an ID; the zero value and false if there is none.
func (r Records[T]) Read(ctx context.Context, id string) (*T, bool, error) {
	stored, v, err := r.read(ctx, id)
	return v, stored != nil, err
}

func (r Records[T]) read(ctx context.Context, id string) (session.Session, *T, error) {
	v := new(T)
	got, err := r.Service.Get(ctx, &session.GetRequest{AppName: r.AppName, UserID: r.UserID, SessionID: id, NumRecentEvents: 1})
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil, v, nil
	case err != nil:
		return nil, nil, err
	}
	return got.Session, v, r.decode(got.Session, v)
}

// decode decodes the value in a session into v. It leaves v unchanged if the session has none.
func (r Records[T]) decode(s session.Session, v *T) error {
	val, err := s.State().Get(r.Key)
	if text, ok := val.(string); ok && err == nil {
		return json.Unmarshal([]byte(text), v)
	}
	return nil
}

// Change reads the value of an ID, calls the function change on it and stores the result. If another process has changed the
// value meanwhile, it starts again with the new value, up to 100 times; the error then matches session.ErrConflict,
// session.ErrExists or session.ErrNotFound. It stores nothing if the function returns [ErrSame], and returns other errors of the function.
func (r Records[T]) Change(ctx context.Context, id string, change func(*T) error) error {
	var conflict error
	for try := range mostTries {
		if err := sleep.For(ctx, time.Duration(try)*time.Millisecond); err != nil {
			return err
		}
		stored, v, err := r.read(ctx, id)
		if err != nil {
			return err
		}
		switch err := change(v); {
		case errors.Is(err, ErrSame):
			return nil
		case err != nil:
			return err
		}
		err = r.write(ctx, stored, id, v)
		if conflict = err; !errors.Is(err, session.ErrConflict) && !errors.Is(err, session.ErrExists) && !errors.Is(err, session.ErrNotFound) {
			return err
		}
	}
	return fmt.Errorf("the record of %s was changed by others during %d attempts: %w", id, mostTries, conflict)
}

// write stores a value. stored is the session that has the value so far; nil if there is none.
func (r Records[T]) write(ctx context.Context, stored session.Session, id string, v *T) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	state := map[string]any{r.Key: string(text)}
	if stored != nil && (r.MostEvents == 0 || session.ViewOf(stored).LastSeq() < r.MostEvents) {
		return r.Service.AppendEvent(ctx, stored, &session.Event{InvocationID: r.Key, Author: "user",
			Actions: session.EventActions{StateDelta: state}})
	}
	if stored != nil {
		if err := r.Delete(ctx, id); err != nil {
			return err
		}
	}
	_, err = r.Service.Create(ctx, &session.CreateRequest{AppName: r.AppName, UserID: r.UserID, SessionID: id, State: state})
	return err
}

// All returns the values by their IDs. It leaves out values that cannot be decoded.
func (r Records[T]) All(ctx context.Context) (map[string]*T, error) {
	listed, err := r.Service.List(ctx, &session.ListRequest{AppName: r.AppName, UserID: r.UserID})
	if err != nil {
		return nil, err
	}
	all := make(map[string]*T, len(listed.Sessions))
	for _, one := range listed.Sessions {
		if v := new(T); r.decode(one, v) == nil {
			all[one.ID()] = v
		}
	}
	return all, nil
}

// Delete removes the value of an ID.
func (r Records[T]) Delete(ctx context.Context, id string) error {
	return r.Service.Delete(ctx, &session.DeleteRequest{AppName: r.AppName, UserID: r.UserID, SessionID: id})
}
