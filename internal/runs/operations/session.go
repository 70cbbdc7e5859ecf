// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/store"
	"github.com/refrain-dev/refrain/supervisor"
)

// room counts the sessions in which nothing has run. It counts those of the store only when the sessions since the last count
// could have filled the room.
type room struct {
	mu   sync.Mutex
	left int // sessions that surely fit
}

// CreateSession makes a session in which nothing has run, for a client. It begins with the events.
func (r *Runs) CreateSession(ctx context.Context, id string, state map[string]any,
	events []*session.Event) (made session.Session, err error) {
	weight := session.StateSize(state)
	for _, ev := range events {
		weight += int64(ev.Weight())
	}
	if r.LogLimit > 0 && weight > r.LogLimit {
		return nil, problem.New(http.StatusRequestEntityTooLarge, "too_large", "The session would be too large",
			"its events would have about %d bytes, and %s is %d: send fewer", weight, cmp.Or(r.LogLimitName, "its limit"), r.LogLimit)
	}
	err = r.Change(ctx, "create session", func() (string, error) {
		if err := r.fits(session.StateSize(state)); err != nil {
			return "", err
		}
		if err := r.roomForSession(ctx); err != nil {
			return "", err
		}
		got, err := r.Service.Create(ctx, &session.CreateRequest{AppName: r.AppName, UserID: r.UserID, SessionID: id, State: state})
		if err != nil {
			return id, err
		}
		made = got.Session
		if len(events) == 0 {
			return id, nil
		}
		if err = store.AppendAll(ctx, r.Service, made, slices.Values(events)); err == nil {
			err = r.fits(session.StateSize(maps.Collect(made.State().All())))
		}
		if err != nil { // a part of them is of no use
			_ = r.Service.Delete(context.WithoutCancel(ctx), &session.DeleteRequest{AppName: r.AppName, UserID: r.UserID, SessionID: id})
		}
		return id, err
	})
	return made, err
}

// fits returns the problem of a state that a client makes too large.
func (r *Runs) fits(size int64) error {
	if r.StateLimit == 0 || size <= r.StateLimit {
		return nil
	}
	return problem.New(http.StatusRequestEntityTooLarge, "too_large", "The state would be too large",
		"it would have %d bytes, and the limit (--state-limit) is %d: send less, or set keys that nobody reads to null", size, r.StateLimit)
}

func (r *Runs) roomForSession(ctx context.Context) error {
	if r.MaxSessions == 0 {
		return nil
	}
	r.sessions.mu.Lock()
	defer r.sessions.mu.Unlock()
	if r.sessions.left == 0 {
		got, err := r.Service.List(ctx, &session.ListRequest{AppName: r.AppName, UserID: r.UserID, Brief: true})
		if err != nil {
			return err
		}
		empty := 0
		for _, one := range got.Sessions {
			if session.RunOf(one) == nil {
				empty++
			}
		}
		if r.sessions.left = r.MaxSessions - empty; r.sessions.left <= 0 {
			r.sessions.left = 0
			return problem.New(http.StatusTooManyRequests, "too_many_sessions", "Too many sessions have no run",
				"there are %d in which nothing has run, and the limit (--max-sessions) is %d: run something in them, or delete some",
				empty, r.MaxSessions).With("Retry-After", "60")
		}
	}
	r.sessions.left--
	return nil
}

// ChangeState changes the state of a session whose run nobody drives, for a client.
func (r *Runs) ChangeState(ctx context.Context, one session.Session, delta map[string]any) error {
	ev := session.NewEvent(ctx, changePrefix+supervisor.NewID())
	ev.Author, ev.Actions.StateDelta = "user", delta
	return r.change(ctx, "change state", one.ID(), func() error {
		view := session.ViewOf(one)
		if change := view.Change(ev); change.After > change.Before {
			if err := r.fits(change.After); err != nil {
				return err
			}
		}
		if err := r.fitsLog(view, ev); err != nil {
			return err
		}
		return r.Service.AppendEvent(ctx, one, ev)
	})
}

// changePrefix begins the invocation ID of a change of the state by a client.
const changePrefix = "p-"

// fitsLog returns the problem of a change that would make the changes of a session by clients too large.
func (r *Runs) fitsLog(view *session.View, ev *session.Event) error {
	if r.LogLimit == 0 {
		return nil
	}
	size := int64(ev.Weight())
	for old := range view.Log().Outline() {
		if strings.HasPrefix(old.InvocationID, changePrefix) {
			size += int64(old.Weight()) + old.Omitted
		}
	}
	if err := view.Err(); err != nil || size <= r.LogLimit {
		return err
	}
	return problem.New(http.StatusRequestEntityTooLarge, "too_large", "The log of the session would be too large",
		"the changes of its state would have %d bytes, and %s is %d: go on in another session",
		size, cmp.Or(r.LogLimitName, "its limit"), r.LogLimit)
}
