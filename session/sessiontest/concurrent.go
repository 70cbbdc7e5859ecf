// SPDX-License-Identifier: Apache-2.0

package sessiontest

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/refrain-dev/refrain/session"
)

func (s *suite) manySessions() {
	const sessions, appends = 8, 25
	held := make([]session.Session, sessions)
	for i := range held {
		held[i] = s.make("s"+strconv.Itoa(i), nil)
	}
	var wg sync.WaitGroup
	for i, one := range held {
		wg.Go(func() {
			for n := range appends {
				ev := sets(map[string]any{"n": n + 1, "app:" + strconv.Itoa(i): n + 1, "user:last": i, "app:last": i})
				if err := s.svc.AppendEvent(s.Context(), one, ev); err != nil {
					s.Errorf("writers of different sessions do not disturb one another: session %q, event %d: %v",
						one.ID(), n+1, err)
					return
				}
			}
		})
		wg.Go(func() {
			for range appends / 5 {
				if _, err := s.svc.List(s.Context(), &session.ListRequest{AppName: app}); err != nil {
					s.Errorf("List beside writers: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for i := range held {
		got := s.get("s" + strconv.Itoa(i))
		if n := got.Events().Len(); n != appends {
			s.Errorf("session %q has %d events, want the %d of its writer", got.ID(), n, appends)
		}
		for _, key := range []string{"n", "app:" + strconv.Itoa(i)} {
			if v, err := got.State().Get(key); err != nil || asJSON(s.T, v) != float64(appends) {
				s.Errorf("session %q: no delta is lost among writers: %s is %v (error %v), want %d", got.ID(), key, v,
					err, appends)
			}
		}
	}
}

func (s *suite) oneSession() {
	const writers, each = 4, 10
	s.make("s1", nil)
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for done := 0; done < each; {
				resp, err := s.svc.Get(s.Context(), &session.GetRequest{AppName: app, UserID: ana, SessionID: "s1"})
				if err != nil {
					s.Errorf("Get beside writers: %v", err)
					return
				}
				switch err := s.svc.AppendEvent(s.Context(), resp.Session, says("x")); {
				case err == nil:
					done++
				case !errors.Is(err, session.ErrConflict):
					s.Errorf("of two writers who append at once, one gets ErrConflict and nothing else: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	evs := s.get("s1").Events()
	if evs.Len() != writers*each {
		s.Errorf("%d appends succeeded, so there are as many events, got %d", writers*each, evs.Len())
	}
	for i := range evs.Len() {
		if seq := evs.At(i).Seq; seq != int64(i)+1 {
			s.Fatalf("Seq counts without gaps or doubles also among writers: event %d has Seq %d", i+1, seq)
		}
	}
}

func (s *suite) readers() {
	const appends = 150
	writer := s.make("s1", map[string]any{"n": 0})
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for !done.Load() {
				s.readOnce(writer)
			}
		})
	}
	defer wg.Wait()
	defer done.Store(true)
	for n := range appends {
		s.append(writer, sets(map[string]any{"n": n + 1}))
	}
}

// readOnce checks one snapshot, and the writer's own session, while it writes.
func (s *suite) readOnce(writer session.Session) {
	resp, err := s.svc.Get(s.Context(), &session.GetRequest{AppName: app, UserID: ana, SessionID: "s1"})
	if err != nil {
		s.Errorf("Get beside a writer: %v", err)
		return
	}
	evs, seq := resp.Session.Events(), int64(0)
	for ev := range evs.All() {
		if seq++; ev.Seq != seq {
			s.Errorf("a snapshot taken beside a writer has a gap: Seq %d at place %d", ev.Seq, seq)
			return
		}
	}
	n, err := resp.Session.State().Get("n")
	if err != nil || asJSON(s.T, n) != float64(evs.Len()) {
		s.Errorf("a snapshot's state belongs to its events: n is %v (error %v) after %d events that count", n, err,
			evs.Len())
	}
	for range writer.Events().All() {
	}
	for range writer.State().All() {
	}
}
