// SPDX-License-Identifier: Apache-2.0

package runlog_test

import (
	"context"
	"testing"

	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
)

// resting is a store in which a run comes to rest while somebody looks who drives it.
type resting struct {
	session.Service
	lease.Leaser
	rest func()
}

func (r *resting) Holder(context.Context, lease.Key) (*lease.HeldError, error) {
	r.rest()
	return nil, nil
}

// A row that says that the run waits has the question, also if it was asked while the row was made.
func TestRowOfARunThatComesToRest(t *testing.T) {
	store := session.InMemoryService()
	made, err := store.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	run := mark.Run{ID: "i", Name: "asking", Status: mark.RunRunning}
	write := func(address session.Address, kind mark.Kind, data any) {
		ev, err := session.NewRunEvent(run, "refrain", kind, data)
		if err != nil {
			t.Fatal(err)
		}
		if ev.InvocationID, ev.Address = "i", address; address != "" {
			ev.Actions.StateDelta = nil
		}
		if err := store.AppendEvent(t.Context(), made.Session, ev); err != nil {
			t.Fatal(err)
		}
	}
	write("", mark.KindRunStarted, mark.RunStarted{Name: "asking"})
	asks := &resting{Service: store, Leaser: store.(lease.Leaser)}
	asks.rest = func() {
		asks.rest = func() {}
		write("asking", mark.KindAsked, mark.Question{ID: "q", Kind: mark.AskText, Text: "Why?"})
		run.Status = mark.RunWaiting
		write("", mark.KindRunPaused, mark.RunPaused{Waits: []string{"q"}})
	}
	row, err := runlog.RowOf(t.Context(), asks, made.Session, nil)
	if err != nil || row.Status != "waiting" || len(row.Waits) != 1 || row.Waits[0].Text != "Why?" {
		t.Errorf("the row is %+v: %v", row, err)
	}
}
