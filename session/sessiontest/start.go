// SPDX-License-Identifier: Apache-2.0

package sessiontest

import (
	"errors"
	"iter"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/store"
)

// begin is a request for a session of ana's that begins with events.
func begin(id string, evs ...*session.Event) *session.StartRequest {
	return &session.StartRequest{CreateRequest: session.CreateRequest{AppName: app, UserID: ana, SessionID: id},
		Events: evs}
}

// start makes a session with its events: what comes of it is what making it and appending
// to it would. What store.Start does with a service that is no store.Starter is no
// other.
func (s *suite) start() {
	req := begin("s1", sets(map[string]any{"a": 1, "old": nil, "temp:t": 1, "user:k": 2}), says("piece"), says("one"))
	req.State = map[string]any{"old": 1, "kept": 1, "user:k": 1, "temp:x": 1}
	req.Events[1].Partial, req.Events[2].ID, req.Events[2].Timestamp = true, "my-id", noon
	resp, err := store.Start(s.Context(), s.svc, req)
	s.must(err, "Start")
	if resp.Lease != nil {
		s.Errorf("a start without an owner gives no lease, got %+v", resp.Lease)
	}
	for i, want := range []int64{1, 0, 2} {
		if ev := req.Events[i]; ev.Seq != want || want > 0 && (ev.ID == "" || ev.Timestamp.IsZero()) {
			s.Errorf("event %d has Seq %d, ID %q and Timestamp %v: want Seq %d, and all filled in", i+1, ev.Seq, ev.ID,
				ev.Timestamp, want)
		}
	}
	if ev := req.Events[2]; ev.ID != "my-id" || !ev.Timestamp.Equal(noon) {
		s.Errorf("an ID and a Timestamp that are set are kept, got %q and %v", ev.ID, ev.Timestamp)
	}
	s.wantTexts(resp.Session, []string{"", "one"}, "whoever starts a session sees its events")
	s.wantState(resp.Session, map[string]any{"a": 1, "kept": 1, "user:k": 2, "temp:t": 1}, "and its state")
	got := s.get("s1")
	s.wantTexts(got, []string{"", "one"}, "the events that a session begins with are stored")
	s.wantState(got, map[string]any{"a": 1, "kept": 1, "user:k": 2},
		"the state is what the session was made with, and what the deltas come to")
	if ev := s.append(resp.Session, says("two")); ev.Seq != 3 {
		s.Errorf("the next event has Seq 3, got %d", ev.Seq)
	}
	s.wantErr(s.svc.AppendEvent(s.Context(), got, says("late")), session.ErrConflict,
		"whoever has not seen that one is stale")
	resp, err = store.Start(s.Context(), s.svc, begin(" ", says("one")))
	if err != nil || resp.Session.ID() == "" {
		s.Fatalf("Start without an ID makes one up, got %+v, %v", resp, err)
	}
	s.wantTexts(s.get(resp.Session.ID()), []string{"one"}, "a session without a given ID")
}

// startLeased: the session is the owner's from the beginning.
func (s *suite) startLeased() {
	leaser, ok := s.svc.(lease.Leaser)
	if !ok {
		s.Skipf("%T is no lease.Leaser", s.svc)
	}
	req := begin("s1", says("one"))
	req.Owner, req.TTL = "one", time.Hour
	resp, err := store.Start(s.Context(), s.svc, req)
	s.must(err, "Start")
	key := lease.Key{AppName: app, UserID: ana, SessionID: "s1"}
	if l := resp.Lease; l == nil || l.Key != key || l.Owner != "one" || l.Token == 0 ||
		time.Until(l.Until) < time.Minute {
		s.Fatalf("Start gives the owner a lease, got %+v", resp.Lease)
	}
	_, err = leaser.Acquire(s.Context(), key, "two", time.Hour)
	if held, ok := errors.AsType[*lease.HeldError](err); !ok || held.Owner != "one" || held.Token != resp.Lease.Token {
		s.Errorf("nobody else gets the lease, got error %v", err)
	}
	ctx := lease.With(s.Context(), resp.Lease)
	s.works(s.svc.AppendEvent(ctx, resp.Session, says("two")), "the owner appends")
	if _, err := leaser.Renew(s.Context(), resp.Lease, time.Hour); err != nil {
		s.Errorf("the owner renews its lease: %v", err)
	}
	s.works(leaser.Release(s.Context(), resp.Lease), "the owner releases its lease")
	s.wantErr(s.svc.AppendEvent(ctx, resp.Session, says("late")), lease.ErrLost, "a lease that was released")
}

// startExisting: a session that is there is left alone.
func (s *suite) startExisting() {
	made := s.make("s1", map[string]any{"k": 1})
	s.append(made, says("first"))
	req := begin("s1", sets(map[string]any{"k": 2, "app:k": 2}))
	req.State = map[string]any{"k": 3, "app:k": 3}
	_, err := store.Start(s.Context(), s.svc, req)
	s.wantErr(err, session.ErrExists, "Start of a session that is there")
	if ev := req.Events[0]; ev.Seq != 0 || ev.ID != "" {
		s.Errorf("the event is as it was, got Seq %d and ID %q", ev.Seq, ev.ID)
	}
	s.wantTexts(s.get("s1"), []string{"first"}, "a session that is there keeps its events")
	s.wantState(s.get("s1"), map[string]any{"k": 1}, "a session that is there keeps its state")
}

// startRefused: there is no session then.
func (s *suite) startRefused() {
	refused := func(what string, want error, req *session.StartRequest) {
		s.Helper()
		_, err := store.Start(s.Context(), s.svc, req)
		s.wantErr(err, want, "Start "+what)
		_, err = s.svc.Get(s.Context(), &session.GetRequest{AppName: app, UserID: ana, SessionID: "s1"})
		s.wantErr(err, session.ErrNotFound, "Start "+what+" leaves no session")
	}
	refused("without a request", session.ErrInvalid, nil)
	refused("without an event", session.ErrInvalid, begin("s1"))
	partial := begin("s1", says("piece"))
	partial.Events[0].Partial = true
	refused("with nothing but a partial event", session.ErrInvalid, partial)
	refused("with an event that is nil", session.ErrInvalid, begin("s1", says("one"), nil))
	gap := begin("s1", says("one"), says("two"))
	gap.Events[1].Seq = 7
	refused("with a gap", session.ErrConflict, gap)
	nobody := begin("s1", says("one"))
	nobody.UserID = ""
	refused("without a user", session.ErrInvalid, nobody)
	endless := begin("s1", says("one"))
	endless.Owner = "one"
	refused("with a lease that has no end", session.ErrInvalid, endless)
	refused("with an event that has no JSON", session.ErrNotJSON,
		begin("s1", says("one"), sets(map[string]any{"k": math.Inf(1)})))
	if _, err := store.Start(s.Context(), s.svc, begin("s1", says("one"))); err != nil {
		s.Errorf("what was refused can be started: %v", err)
	}
}

// startLog: a session is made of a log that is read event by event, as Start makes it.
func (s *suite) startLog() {
	log := func(err error, evs ...*session.Event) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			for _, ev := range evs {
				if !yield(ev, nil) {
					return
				}
			}
			if err != nil {
				yield(nil, err)
			}
		}
	}
	start := func(id string, evs iter.Seq2[*session.Event, error]) error {
		return store.StartLog(s.Context(), s.svc, &session.CreateRequest{AppName: app, UserID: ana, SessionID: id,
			State: map[string]any{"old": 1, "kept": 1}}, evs)
	}
	long := strings.Repeat("long ", 10_000)
	evs := []*session.Event{sets(map[string]any{"a": 1, "old": nil, "user:k": 2, "temp:t": 1}), says("piece"), says(long),
		sets(map[string]any{"a": 3, "text": long})}
	evs[1].Partial, evs[2].ID, evs[2].Timestamp = true, "my-id", noon
	s.must(start("s1", log(nil, evs...)), "StartLog")
	got := s.get("s1")
	s.wantTexts(got, []string{"", long, ""}, "the events of a log are stored")
	s.wantState(got, map[string]any{"a": 3, "kept": 1, "user:k": 2, "text": long}, "and the state that they come to")
	if ev := got.Events().At(1); ev.Seq != 2 || ev.ID != "my-id" || !ev.Timestamp.Equal(noon) {
		s.Errorf("the event has Seq %d, ID %q and Timestamp %v", ev.Seq, ev.ID, ev.Timestamp)
	}
	if ev := s.append(got, says("two")); ev.Seq != 4 {
		s.Errorf("the next event has Seq 4, got %d", ev.Seq)
	}
	s.wantErr(start("s1", log(nil, says("one"))), session.ErrExists, "StartLog of a session that is there")
	broken := errors.New("broken")
	gap := says("two")
	gap.Seq = 7
	for what, one := range map[string]struct {
		want error
		evs  iter.Seq2[*session.Event, error]
	}{
		"with an error in the log":        {broken, log(broken, says("one"))},
		"without an event":                {session.ErrInvalid, log(nil)},
		"with a gap":                      {session.ErrConflict, log(nil, says("one"), gap)},
		"with an event that has no JSON":  {session.ErrNotJSON, log(nil, says("one"), sets(map[string]any{"k": math.Inf(1)}))},
		"with an event that is not there": {session.ErrInvalid, log(nil, nil)},
	} {
		s.wantErr(start("s2", one.evs), one.want, "StartLog "+what)
		_, err := s.svc.Get(s.Context(), &session.GetRequest{AppName: app, UserID: ana, SessionID: "s2"})
		s.wantErr(err, session.ErrNotFound, "StartLog "+what+" leaves no session")
	}
}

// startBeside: of several who start one session one wins, and nobody finds it without its
// event.
func (s *suite) startBeside() {
	if _, ok := s.svc.(store.Starter); !ok {
		s.Skipf("%T is no store.Starter", s.svc)
	}
	const rounds, writers = 10, 4
	for i := range rounds {
		id := string(rune('a' + i))
		var wg sync.WaitGroup
		var won atomic.Int64
		for range writers {
			wg.Go(func() {
				_, err := store.Start(s.Context(), s.svc, begin(id, says("one")))
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, session.ErrExists):
					s.Errorf("Start: %v", err)
				}
			})
			wg.Go(func() {
				got, err := s.svc.Get(s.Context(), &session.GetRequest{AppName: app, UserID: ana, SessionID: id})
				if err == nil && got.Session.Events().Len() != 1 {
					s.Errorf("a session that was started is found with %d events, want 1", got.Session.Events().Len())
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			s.Errorf("%d of %d were told that they have started session %q, want 1", won.Load(), writers, id)
		}
	}
}
