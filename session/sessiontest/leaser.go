// SPDX-License-Identifier: Apache-2.0

package sessiontest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
)

// TestLeaser checks that a service keeps the promises of lease.Leaser. Each
// subtest opens a service of its own, which must be empty.
func TestLeaser(t *testing.T, open func(t *testing.T) session.Service) {
	tests := []struct {
		name string
		run  func(*leaseSuite)
	}{
		{"one holder", (*leaseSuite).oneHolder},
		{"release", (*leaseSuite).release},
		{"expiry", (*leaseSuite).expiry},
		{"renewal", (*leaseSuite).renewal},
		{"renewal of a lost lease", (*leaseSuite).renewLost},
		{"appends are fenced", (*leaseSuite).fence},
		{"appends to other sessions", (*leaseSuite).otherSessions},
		{"taking over", (*leaseSuite).takeOver},
		{"who holds it", (*leaseSuite).holder},
		{"deleted session", (*leaseSuite).deleted},
		{"incomplete requests", (*leaseSuite).incomplete},
		{"many at once", (*leaseSuite).atOnce},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			svc := open(t)
			l, ok := svc.(lease.Leaser)
			if !ok {
				t.Fatalf("%T is no lease.Leaser", svc)
			}
			tt.run(&leaseSuite{suite{T: t, svc: svc}, l})
		})
	}
}

// leaseSuite is one subtest with its service.
type leaseSuite struct {
	suite
	leaser lease.Leaser
}

// s1 is a session of ana's.
var s1 = lease.Key{AppName: app, UserID: ana, SessionID: "s1"}

func (s *leaseSuite) acquire(owner string, ttl time.Duration) *lease.Lease {
	s.Helper()
	l, err := s.leaser.Acquire(s.Context(), s1, owner, ttl)
	if err != nil {
		s.Fatalf("Acquire of a lease that nobody has, by %s: %v", owner, err)
	}
	return l
}

// refused demands a HeldError that names the holder.
func (s *leaseSuite) refused(err error, l *lease.Lease, rule string) *lease.HeldError {
	s.Helper()
	held, ok := errors.AsType[*lease.HeldError](err)
	if !ok {
		s.Fatalf("%s: got error %v, want a *lease.HeldError", rule, err)
	}
	if held.Owner != l.Owner || held.Key != l.Key || held.Token != l.Token {
		s.Errorf("%s: the error names the holder: got %+v, want what is in %+v", rule, held, l)
	}
	if !held.Since.Before(held.Until) {
		s.Errorf("%s: the error says since when and until when: got %v and %v", rule, held.Since, held.Until)
	}
	return held
}

// eventually tries until it works: for five seconds and a hundred times, which takes longer where
// a try does.
func (s *leaseSuite) eventually(what string, try func() error) {
	s.Helper()
	end := time.Now().Add(5 * time.Second)
	for tries := 1; ; tries++ {
		err := try()
		if err == nil {
			return
		}
		if time.Sleep(5 * time.Millisecond); tries >= 100 && time.Now().After(end) {
			s.Fatalf("%s: still %v", what, err)
		}
	}
}

func (s *leaseSuite) oneHolder() {
	s.make("s1", nil)
	l := s.acquire("pid 1", time.Hour)
	if l.Key != s1 || l.Owner != "pid 1" || l.Token == 0 {
		s.Errorf("a lease says whose and which it is, got %+v", l)
	}
	if d := time.Until(l.Until); d < 50*time.Minute || d > 70*time.Minute {
		s.Errorf("a lease for an hour ends in an hour, got %v", l.Until)
	}
	for _, owner := range []string{"pid 2", "pid 1"} {
		_, err := s.leaser.Acquire(s.Context(), s1, owner, time.Hour)
		held := s.refused(err, l, "Acquire of a lease that is held, by "+owner)
		if d := held.Until.Sub(l.Until).Abs(); d > time.Millisecond {
			s.Errorf("the error says until when: got %v, want %v", held.Until, l.Until)
		}
	}
	s.makeFor(app, bob, "s1", nil)
	if _, err := s.leaser.Acquire(s.Context(), lease.Key{AppName: app, UserID: bob, SessionID: "s1"}, "pid 2",
		time.Hour); err != nil {
		s.Errorf("a lease is one session's: of another one Acquire says %v", err)
	}
}

func (s *leaseSuite) release() {
	s.make("s1", nil)
	first := s.acquire("pid 1", time.Hour)
	s.must(s.leaser.Release(s.Context(), first), "Release")
	second := s.acquire("pid 2", time.Hour)
	if second.Token == first.Token {
		s.Errorf("no two leases have one token, got %d twice", first.Token)
	}
	if err := s.leaser.Release(s.Context(), first); err != nil {
		s.Errorf("Release of a lease that was released before is no error, got %v", err)
	}
	_, err := s.leaser.Acquire(s.Context(), s1, "pid 3", time.Hour)
	s.refused(err, second, "Release of an old lease does not end the new one")
}

func (s *leaseSuite) expiry() {
	s.make("s1", nil)
	var start time.Time
	ttl := 200 * time.Millisecond
	for ; ; ttl *= 4 {
		start = time.Now()
		first := s.acquire("pid 1", ttl)
		early, err := s.leaser.Acquire(s.Context(), s1, "pid 2", time.Hour)
		if err != nil || ttl > time.Minute || time.Since(start) < ttl {
			s.refused(err, first, "Acquire before the lease ends")
			break
		}
		if err := s.leaser.Release(s.Context(), early); err != nil { // the machine was slow: the lease had ended
			s.Fatal(err)
		}
	}
	s.eventually("Acquire after the lease's end", func() error {
		_, err := s.leaser.Acquire(s.Context(), s1, "pid 2", time.Hour)
		return err
	})
	if d := time.Since(start); d < ttl-50*time.Millisecond {
		s.Errorf("a lease for %v was taken after %v", ttl, d)
	}
}

func (s *leaseSuite) renewal() {
	s.make("s1", nil)
	l := s.acquire("pid 1", time.Millisecond)
	renewed, err := s.leaser.Renew(s.Context(), l, time.Hour)
	s.must(err, "Renew of a lease that nobody else took, expired or not")
	if renewed.Token != l.Token || renewed.Key != l.Key || renewed.Owner != l.Owner || !renewed.Until.After(l.Until) {
		s.Errorf("a renewed lease is the same with a later end: got %+v of %+v", renewed, l)
	}
	_, err = s.leaser.Acquire(s.Context(), s1, "pid 2", time.Hour)
	held := s.refused(err, renewed, "Acquire of a lease that was renewed")
	if d := held.Until.Sub(renewed.Until).Abs(); d > time.Millisecond {
		s.Errorf("the error knows the new end: got %v, want %v", held.Until, renewed.Until)
	}
	if _, err := s.leaser.Renew(s.Context(), l, time.Hour); err != nil {
		s.Errorf("Renew takes the lease of before a renewal as well: %v", err)
	}
	s.works(s.leaser.Release(s.Context(), l), "Release takes the lease of before a renewal as well")
	s.acquire("pid 2", time.Hour)
}

func (s *leaseSuite) renewLost() {
	s.make("s1", nil)
	first := s.acquire("pid 1", time.Millisecond)
	var second *lease.Lease
	s.eventually("Acquire after the lease's end", func() (err error) {
		second, err = s.leaser.Acquire(s.Context(), s1, "pid 2", time.Hour)
		return err
	})
	_, err := s.leaser.Renew(s.Context(), first, time.Hour)
	s.wantErr(err, lease.ErrLost, "Renew of a lease that somebody else has now")
	s.refused(err, second, "Renew of a lease that somebody else has now")
	s.must(s.leaser.Release(s.Context(), second))
	for _, l := range []*lease.Lease{first, second} {
		_, err := s.leaser.Renew(s.Context(), l, time.Hour)
		s.wantErr(err, lease.ErrLost, "Renew of a lease that was released")
	}
}

func (s *leaseSuite) fence() {
	writer := s.make("s1", nil)
	first := s.acquire("pid 1", time.Millisecond)
	mine := context.WithoutCancel(lease.With(s.Context(), first)) // as a runner does
	s.must(s.svc.AppendEvent(mine, writer, says("one")), "AppendEvent through a lease that nobody else took, expired or not")
	var second *lease.Lease
	s.eventually("Acquire after the lease's end", func() (err error) {
		second, err = s.leaser.Acquire(s.Context(), s1, "pid 2", time.Hour)
		return err
	})
	late := says("late")
	late.Actions.StateDelta = map[string]any{"k": 1, "app:k": 1}
	err := s.svc.AppendEvent(mine, writer, late)
	s.wantErr(err, lease.ErrLost, "AppendEvent through a lease that somebody else has now")
	s.refused(err, second, "AppendEvent through a lease that somebody else has now")
	if late.Seq != 0 || late.ID != "" {
		s.Errorf("an event that was refused is unchanged: got Seq %d, ID %q", late.Seq, late.ID)
	}
	s.wantTexts(writer, []string{"one"}, "a refused event is not in the session that it was appended to")

	theirs := lease.With(s.Context(), second)
	next := s.get("s1")
	s.wantState(next, map[string]any{}, "a refused event's delta is not stored")
	s.must(s.svc.AppendEvent(theirs, next, says("two")), "AppendEvent through the lease")
	s.append(next, says("three")) // without a lease only the sequence number counts
	s.must(s.leaser.Release(s.Context(), second))
	err = s.svc.AppendEvent(theirs, next, says("late"))
	s.wantErr(err, lease.ErrLost, "AppendEvent through a lease that was released")
	s.wantTexts(s.get("s1"), []string{"one", "two", "three"}, "a refused event is not stored")
}

func (s *leaseSuite) otherSessions() {
	s.make("s1", nil)
	other := s.make("s2", nil)
	l := s.acquire("pid 1", time.Hour)
	s.must(s.leaser.Release(s.Context(), l))
	s.works(s.svc.AppendEvent(lease.With(s.Context(), l), other, says("one")), "a lease, lost or not, has nothing to do with other sessions")
}

func (s *leaseSuite) takeOver() {
	s.make("s1", nil)
	first := s.acquire("pid 1", time.Hour)
	_, err := s.leaser.Acquire(s.Context(), s1, "pid 2", time.Hour)
	held := s.refused(err, first, "Acquire of a lease that is held")
	second, err := s.leaser.TakeOver(s.Context(), held, "pid 2", time.Hour)
	s.must(err, "TakeOver of a lease that is held")
	if second.Key != s1 || second.Owner != "pid 2" {
		s.Errorf("a lease that was taken over says whose it is, got %+v", second)
	}
	_, err = s.leaser.TakeOver(s.Context(), held, "pid 3", time.Hour)
	s.refused(err, second, "TakeOver of a lease that changed hands since")
	_, err = s.leaser.Renew(s.Context(), first, time.Hour)
	s.wantErr(err, lease.ErrLost, "Renew of a lease that was taken over")
}

func (s *leaseSuite) holder() {
	s.make("s1", nil)
	nobody := func(rule string) {
		s.Helper()
		if held, err := s.leaser.Holder(s.Context(), s1); err != nil || held != nil {
			s.Errorf("%s: Holder says nil, got %+v and error %v", rule, held, err)
		}
	}
	held := func(l *lease.Lease, rule string) {
		s.Helper()
		got, err := s.leaser.Holder(s.Context(), s1)
		if err != nil || got == nil {
			s.Fatalf("%s: got %+v and error %v", rule, got, err)
		}
		s.refused(got, l, rule)
		if d := got.Until.Sub(l.Until).Abs(); d > time.Millisecond {
			s.Errorf("%s: Holder says until when: got %v, want %v", rule, got.Until, l.Until)
		}
	}
	nobody("a lease that was never taken")
	first := s.acquire("pid 1", time.Hour)
	held(first, "a lease that is held")
	held(first, "to look takes nothing")
	renewed, err := s.leaser.Renew(s.Context(), first, 2*time.Hour)
	s.must(err)
	held(renewed, "a lease that was renewed")
	s.must(s.leaser.Release(s.Context(), first))
	nobody("a lease that was released")
	s.acquire("pid 2", 100*time.Millisecond)
	s.eventually("Holder after the lease's end", func() error {
		switch held, err := s.leaser.Holder(s.Context(), s1); {
		case err != nil:
			return err
		case held != nil:
			return held
		}
		return nil
	})
	_, err = s.leaser.Holder(s.Context(), lease.Key{AppName: app, UserID: ana, SessionID: "s2"})
	s.wantErr(err, session.ErrNotFound, "Holder of a session that is not there")
	_, err = s.leaser.Holder(s.Context(), lease.Key{})
	s.wantErr(err, session.ErrInvalid, "Holder needs a key")
}

func (s *leaseSuite) deleted() {
	s.make("s1", nil)
	l := s.acquire("pid 1", time.Hour)
	s.remove("s1")
	_, err := s.leaser.Acquire(s.Context(), s1, "pid 2", time.Hour)
	s.wantErr(err, session.ErrNotFound, "Acquire of a session that is not there")
	_, err = s.leaser.Renew(s.Context(), l, time.Hour)
	s.wantErr(err, session.ErrNotFound, "Renew of the lease of a session that is not there")
	if err := s.leaser.Release(s.Context(), l); err != nil {
		s.Errorf("Release of the lease of a session that is not there is no error, got %v", err)
	}
	again := s.make("s1", nil)
	err = s.svc.AppendEvent(lease.With(s.Context(), l), again, says("late"))
	s.wantErr(err, lease.ErrLost, "a session that was created anew is not held: AppendEvent through the old lease")
	s.acquire("pid 2", time.Hour)
}

func (s *leaseSuite) incomplete() {
	s.make("s1", nil)
	for _, tt := range []struct {
		key   lease.Key
		owner string
		ttl   time.Duration
	}{{lease.Key{}, "pid 1", time.Hour}, {s1, "", time.Hour}, {s1, "pid 1", 0}, {s1, "pid 1", -1}} {
		_, err := s.leaser.Acquire(s.Context(), tt.key, tt.owner, tt.ttl)
		s.wantErr(err, session.ErrInvalid, "Acquire needs a key, an owner and a time to live")
	}
	_, err := s.leaser.TakeOver(s.Context(), nil, "pid 1", time.Hour)
	s.wantErr(err, session.ErrInvalid, "TakeOver needs the error of a refused Acquire")
	_, err = s.leaser.Renew(s.Context(), nil, time.Hour)
	s.wantErr(err, session.ErrInvalid, "Renew needs a lease")
	_, err = s.leaser.Renew(s.Context(), s.acquire("pid 1", time.Hour), 0)
	s.wantErr(err, session.ErrInvalid, "Renew needs a time to live")
	s.wantErr(s.leaser.Release(s.Context(), nil), session.ErrInvalid, "Release needs a lease")
}

func (s *leaseSuite) atOnce() {
	s.make("s1", nil)
	var won atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_, err := s.leaser.Acquire(s.Context(), s1, "somebody", time.Hour)
			if err == nil {
				won.Add(1)
			} else if _, ok := errors.AsType[*lease.HeldError](err); !ok {
				s.Errorf("of several who acquire at once, all but one get a *lease.HeldError: %v", err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		s.Errorf("of several who acquire at once one gets the lease, got %d", won.Load())
	}
}
