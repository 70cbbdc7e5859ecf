// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// However many watch a run, what they are told is made once for a change, and once for all changes of
// a moment.
func TestAChangeIsComputedOnce(t *testing.T) {
	f := &feed{changed: make(chan struct{}), folds: folds{whole: new(runlog.Wholes)}}
	made := 0
	all := func(old time.Duration) {
		var wait sync.WaitGroup
		for range 200 {
			wait.Go(func() {
				got, err := f.render(renderKey{"view", "en"}, old, func() any { made++; return made })
				if err != nil || len(got.text) == 0 {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	}
	change := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.notify()
	}
	for i, step := range []struct {
		old  time.Duration
		want int
	}{{0, 1}, {0, 2}, {time.Hour, 2}, {time.Hour, 2}, {0, 3}} {
		if i > 0 {
			change()
		}
		if all(step.old); made != step.want {
			t.Errorf("after %d changes it was made %d times, want %d", i, made, step.want)
		}
	}
}

// reading counts the sessions that are fetched.
type reading struct {
	session.Service
	gets atomic.Int64
}

func (r *reading) Get(ctx context.Context, req *session.GetRequest) (*session.GetResponse, error) {
	r.gets.Add(1)
	return r.Service.Get(ctx, req)
}

// The list of runs is made once for all who ask the same, and reads the runs that have changed alone.
func TestTheListReadsWhatHasChanged(t *testing.T) {
	const runs = 30
	svc := &reading{Service: session.InMemoryService()}
	say := func(i int) {
		t.Helper()
		key := session.GetRequest{AppName: "app", UserID: "ana", SessionID: fmt.Sprint("r", i)}
		got, err := svc.Service.Get(t.Context(), &key)
		if err != nil {
			t.Fatal(err)
		}
		ev, err := session.NewRunEvent(mark.Run{ID: "e", Name: "x", Status: mark.RunCompleted}, "runner", mark.KindRunEnded, mark.RunEnded{})
		if err == nil {
			err = svc.AppendEvent(t.Context(), got.Session, ev)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range runs {
		if _, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: fmt.Sprint("r", i)}); err != nil {
			t.Fatal(err)
		}
		say(i)
	}
	b := newBoard(&Server{runs: &operations.Runs{Config: operations.Config{Service: svc, AppName: "app", UserID: "ana"}}})
	read := func() int64 {
		t.Helper()
		all, err := runlog.List(t.Context(), svc, "app", "ana")
		if err != nil {
			t.Fatal(err)
		}
		b.all, b.listedAt, b.news, b.version = all, time.Now(), make(chan struct{}), b.version+1
		before := svc.gets.Load()
		var wait sync.WaitGroup
		for range 200 {
			wait.Go(func() {
				if text, _, _, err := b.page(t.Context(), "", &filter{limit: 50}); err != nil || len(text) == 0 {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		return svc.gets.Load() - before
	}
	if n := read(); n != runs {
		t.Errorf("the first list fetched %d sessions of %d", n, runs)
	}
	if n := read(); n != 0 {
		t.Errorf("the same list fetched %d sessions again", n)
	}
	say(7)
	if n := read(); n != 1 {
		t.Errorf("after one run has changed %d sessions were fetched", n)
	}
}
