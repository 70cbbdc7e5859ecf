// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"slices"
	"testing"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/store"
)

// counting is a service that counts the calls with which events come.
type counting struct {
	session.Service
	calls []int
}

func (c *counting) AppendEvents(ctx context.Context, s session.Session, evs []*session.Event) error {
	c.calls = append(c.calls, len(evs))
	return c.Service.(store.BulkAppender).AppendEvents(ctx, s, evs)
}

// LOOP 30: what is copied is there as a whole or not at all; a service that can take but
// one event at a time is given one at a time.
func TestAppendAllIsOneAppend(t *testing.T) {
	c := &counting{Service: session.InMemoryService()}
	one := struct{ session.Service }{session.InMemoryService()}
	for _, svc := range []session.Service{c, one} {
		made, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
		if err != nil {
			t.Fatal(err)
		}
		var evs []*session.Event
		for range 600 {
			evs = append(evs, &session.Event{Author: "a"})
		}
		if err := store.AppendAll(t.Context(), svc, made.Session, slices.Values(evs)); err != nil {
			t.Fatal(err)
		}
		if n := made.Session.Events().Len(); n != 600 || evs[599].Seq != 600 {
			t.Errorf("%d events, the last with Seq %d", n, evs[599].Seq)
		}
	}
	if want := []int{600}; !slices.Equal(c.calls, want) {
		t.Errorf("events came %v at a time, want %v", c.calls, want)
	}
}
