// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/store"
)

// twoWrites is a service of somebody else's, which can make a session and append to it,
// and give leases.
type twoWrites struct {
	session.Service
	lease.Leaser
	fails error // of the append
}

func (s *twoWrites) AppendEvent(ctx context.Context, of session.Session, ev *session.Event) error {
	if s.fails != nil {
		return s.fails
	}
	return s.Service.AppendEvent(ctx, of, ev)
}

// LOOP 30: a service that cannot start a session in one is left without it when the event
// cannot be appended.
func TestStartInTwoWrites(t *testing.T) {
	inner := session.InMemoryService()
	svc := &twoWrites{Service: inner, Leaser: inner.(lease.Leaser), fails: errors.New("disk full")}
	req := &session.StartRequest{
		CreateRequest: session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1"},
		Events:        []*session.Event{{Author: "a"}}, Owner: "one", TTL: time.Hour,
	}
	if _, err := store.Start(t.Context(), svc, req); !errors.Is(err, svc.fails) {
		t.Errorf("start: got %v, want %v", err, svc.fails)
	}
	get := &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"}
	if _, err := inner.Get(t.Context(), get); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("what could not be started is there: %v", err)
	}
	svc.fails = nil
	resp, err := store.Start(t.Context(), svc, req)
	if err != nil || resp.Lease == nil || resp.Session.Events().Len() != 1 {
		t.Fatalf("start: %+v, %v", resp, err)
	}
	if _, err := store.Start(t.Context(), svc, req); !errors.Is(err, session.ErrExists) {
		t.Errorf("start again: got %v, want %v", err, session.ErrExists)
	}
	if got, err := inner.Get(t.Context(), get); err != nil || got.Session.Events().Len() != 1 {
		t.Errorf("the session that was there: %v", err)
	}
	noLeases := struct{ session.Service }{inner}
	if _, err := store.Start(t.Context(), noLeases, req); !errors.Is(err, session.ErrInvalid) {
		t.Errorf("a lease of a service that gives none: got %v, want %v", err, session.ErrInvalid)
	}
}
