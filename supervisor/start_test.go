// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
	"github.com/refrain-dev/refrain/supervisor"
)

// watched is a store in which somebody looks after each change.
type watched struct {
	service
	look func(did string)
}

func (s *watched) Create(ctx context.Context, req *session.CreateRequest) (*session.CreateResponse, error) {
	defer s.look("create")
	return s.service.Create(ctx, req)
}

func (s *watched) AppendEvent(ctx context.Context, of session.Session, ev *session.Event) error {
	defer s.look("append")
	return s.service.AppendEvent(ctx, of, ev)
}

func (s *watched) Acquire(ctx context.Context, key lease.Key, owner string, ttl time.Duration) (*lease.Lease, error) {
	defer s.look("acquire")
	return s.service.Acquire(ctx, key, owner, ttl)
}

// starts is watched, of a store that makes a session with its first event.
type starts struct {
	watched
	store.Starter
}

func (s *starts) Start(ctx context.Context, req *session.StartRequest) (*session.StartResponse, error) {
	defer s.look("start")
	return s.Starter.Start(ctx, req)
}

// LOOP 30, 12f: there is no moment in which a process can die and leave a session without
// its run, or a run that begins and that anybody else may take up.
func TestStartIsOneWrite(t *testing.T) {
	inner := session.InMemoryService()
	store := &starts{watched{service: inner.(service)}, inner.(store.Starter)}
	var held atomic.Int64
	store.look = func(did string) {
		all, err := inner.List(context.Background(), &session.ListRequest{AppName: "app"})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all.Sessions {
			run := session.RunOf(s)
			if run == nil {
				t.Errorf("after %s there is a session in which nothing has run", did)
				continue
			}
			holder, err := inner.(lease.Leaser).Holder(context.Background(), lease.KeyOf(s))
			if err != nil {
				t.Fatal(err)
			}
			if did == "start" && run.Status == mark.RunRunning && holder == nil {
				t.Errorf("after %s nobody holds the run that begins", did)
			}
			held.Add(1)
		}
	}
	w := newWorld()
	sup := process(t, store, w.nested(t))
	run := start(t, sup)
	completed(t, run)
	given := request()
	given.SessionID = "given"
	named, err := sup.Start(t.Context(), given)
	if err != nil {
		t.Fatal(err)
	}
	completed(t, named)
	if _, err := sup.Fork(t.Context(), run.ID(), supervisor.Checkpoint{}); err != nil {
		t.Fatal(err)
	}
	given.SessionID = "later"
	id, err := sup.Submit(t.Context(), given)
	if err != nil {
		t.Fatal(err)
	}
	completed(t, resume(t, sup, id))
	if held.Load() == 0 {
		t.Error("nobody has looked")
	}
	log := view(t, inner, run.ID()).Log()
	if ev := log.At(0); ev.Mark == nil || ev.Mark.Kind != mark.KindRunStarted || ev.Text() != "go" || log.At(1).Seq != 2 {
		t.Errorf("the log begins with %+v", ev)
	}
}

// A store of somebody else's that makes sessions first, and then appends, does as well; what
// could not be appended leaves no session.
func TestStartInTwoWrites(t *testing.T) {
	inner := session.InMemoryService()
	var mu sync.Mutex
	var did []string
	store := &watched{service: inner.(service), look: func(what string) {
		mu.Lock()
		defer mu.Unlock()
		did = append(did, what)
	}}
	w := newWorld()
	sup := process(t, store, w.nested(t))
	completed(t, start(t, sup))
	mu.Lock()
	defer mu.Unlock()
	if len(did) < 4 || did[0] != "create" || did[1] != "acquire" || did[2] != "append" {
		t.Errorf("the store was asked to %v", did)
	}
	full := &failing{service: inner.(service), err: errors.New("disk full")}
	if _, err := process(t, full, w.nested(t)).Start(t.Context(), request()); !errors.Is(err, full.err) {
		t.Errorf("got %v, want %v", err, full.err)
	}
	all, err := inner.List(t.Context(), &session.ListRequest{AppName: "app"})
	if err != nil || len(all.Sessions) != 1 {
		t.Errorf("%d sessions, want that of the first run; %v", len(all.Sessions), err)
	}
}

// failing is a store that takes no event.
type failing struct {
	service
	err error
}

func (s *failing) AppendEvent(context.Context, session.Session, *session.Event) error { return s.err }

// What a run is told in temp: keys when it begins it knows, although no store keeps them.
func TestRunBeginsWithItsTempKeys(t *testing.T) {
	for name, store := range map[string]session.Service{"memory": session.InMemoryService(), "database": database(t)} {
		t.Run(name, func(t *testing.T) {
			var got any
			root := custom(t, "look", func(ctx agent.InvocationContext, _ yield) { got, _ = drive.At(ctx).State().Get("temp:mood") })
			req := request()
			req.State = map[string]any{"temp:mood": "good", "topic": "cats"}
			run, err := process(t, store, root).Start(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			completed(t, run)
			if got != "good" {
				t.Errorf("temp:mood is %v", got)
			}
			v := view(t, store, run.ID())
			if topic, _ := v.State().Get("topic"); topic != "cats" || v.HasStateInLog() {
				t.Errorf("topic is %v, and the log has the state once more: %v", topic, v.HasStateInLog())
			}
		})
	}
}
