// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/internal/history/progress/verify"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
	"github.com/refrain-dev/refrain/supervisor"
)

// seals matches the seal of a loop, which in a fork is another one.
var seals = regexp.MustCompile(`chain:[0-9a-f]{64}`)

// lasting is a log up to an event, as JSON, without seals and without what a session says of its run.
func lasting(t *testing.T, store session.Service, id string, to int64) (all []string) {
	t.Helper()
	for ev := range view(t, store, id).Log().All() {
		if ev.Seq > to {
			break
		}
		c := *ev
		c.Actions.StateDelta = nil
		text, err := json.Marshal(&c)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range ev.Actions.StateDelta {
			if k != mark.KeyRun {
				text = append(text, k...)
				value, _ := json.Marshal(v)
				text = append(text, value...)
			}
		}
		all = append(all, seals.ReplaceAllString(string(text), "chain"))
	}
	return all
}

// LOOP 31: a fork is the run up to its checkpoint, and then goes its own way; the
// old one is left alone.
func TestFork(t *testing.T) {
	for name, store := range map[string]session.Service{"memory": session.InMemoryService(), "sqlite": database(t)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			sup := process(t, store, w.nested(t))
			old := start(t, sup)
			completed(t, old)
			before := lasting(t, store, old.ID(), 1000)
			for _, tt := range []struct {
				at    supervisor.Checkpoint
				again int // steps that run in the fork
			}{
				{supervisor.Checkpoint{Iteration: 1}, 14},
				{supervisor.Checkpoint{}, 0},
				{supervisor.Checkpoint{Seq: 1}, 28},
				{supervisor.Checkpoint{First: true}, 28},
				{supervisor.Checkpoint{First: true, Loop: "outer[2]/middle[1]/inner"}, 13},
				{supervisor.Checkpoint{Loop: "outer[2]/middle[1]/inner", Iteration: 1}, 10},
			} {
				id, err := sup.Fork(t.Context(), old.ID(), tt.at)
				if err != nil {
					t.Fatal(err)
				}
				run := session.RunOf(view(t, store, id))
				if run.Status != mark.RunIsPaused || run.Parent == nil || run.Parent.SessionID != old.ID() {
					t.Fatalf("the fork is %+v", run)
				}
				if diff := cmp.Diff(lasting(t, store, old.ID(), run.Parent.Seq), lasting(t, store, id, run.Parent.Seq)); diff != "" {
					t.Errorf("the log up to %+v (-old +new):\n%s", tt.at, diff)
				}
				ran := w.total()
				completed(t, resume(t, sup, id))
				if n := w.total() - ran; n != tt.again {
					t.Errorf("behind %+v %d steps ran, want %d", tt.at, n, tt.again)
				}
				if diff := cmp.Diff(final(t, store, old.ID()), final(t, store, id)); diff != "" {
					t.Errorf("the state (-old +new):\n%s", diff)
				}
				if run := session.RunOf(view(t, store, id)); run.Parent == nil || run.Status != mark.RunCompleted {
					t.Errorf("in the end the fork is %+v", run)
				}
			}
			if diff := cmp.Diff(before, lasting(t, store, old.ID(), 1000)); diff != "" {
				t.Errorf("the old log (-before +after):\n%s", diff)
			}
			for _, at := range []supervisor.Checkpoint{{Iteration: 3}, {Seq: 100000}, {Seq: -1}, {Loop: "none"}} {
				if _, err := sup.Fork(t.Context(), old.ID(), at); !errors.Is(err, supervisor.ErrNoCheckpoint) {
					t.Errorf("fork behind %+v: got %v", at, err)
				}
			}
		})
	}
}

// A fork that its caller refuses is not stored.
func TestForkIf(t *testing.T) {
	store := session.InMemoryService()
	sup := process(t, store, newWorld().nested(t))
	run := start(t, sup)
	completed(t, run)
	no := errors.New("no")
	var given []*session.Event
	_, err := sup.ForkIf(t.Context(), run.ID(), supervisor.Checkpoint{Seq: 5}, func(events []*session.Event) error {
		given = events
		return no
	})
	all, listed := sup.List(t.Context())
	if !errors.Is(err, no) || len(given) != 5 || given[4].Seq != 5 || listed != nil || len(all) != 1 {
		t.Errorf("got %v for %d events; now there are %d runs, %v", err, len(given), len(all), listed)
	}
}

// A run that was cut off in the middle of an iteration is forked behind the one
// before.
func TestForkOfAPausedRun(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld("check")
	sup := process(t, store, w.nested(t))
	run := start(t, sup)
	w.gate["check"] <- struct{}{}
	<-w.seen
	<-w.seen // in the second iteration
	if err := sup.PauseNow(t.Context(), run.ID(), ""); err != nil {
		t.Fatal(err)
	}
	wait(t, run)
	id, err := sup.Fork(t.Context(), run.ID(), supervisor.Checkpoint{})
	if err != nil {
		t.Fatal(err)
	}
	w.gate["check"] = nil
	ran := w.total()
	completed(t, resume(t, sup, id))
	if n := w.total() - ran; n != 14 {
		t.Errorf("%d steps ran, want those of an iteration, 14", n)
	}
}

// The files of a run are its fork's too, as they were then; what sessions share is
// not changed a second time.
func TestForkTakesFilesAlong(t *testing.T) {
	store, files := session.InMemoryService(), artifact.InMemoryService()
	write := custom(t, "write", func(ctx agent.InvocationContext, yield yield) {
		saved, err := ctx.Artifacts().Save(ctx, "draft.md", genai.NewPartFromText("text of "+string(drive.At(ctx).Address())))
		if err != nil {
			yield(nil, err)
			return
		}
		ev := &session.Event{}
		ev.Actions.ArtifactDelta = map[string]int64{"draft.md": saved.Version}
		ev.Actions.StateDelta = map[string]any{"app:last": string(drive.At(ctx).Address()), "mine": saved.Version}
		yield(ev, nil)
	})
	sup := process(t, store, loop(t, "l", 3, write), func(c *supervisor.Config) { c.ArtifactService = files })
	run := start(t, sup)
	completed(t, run)
	id, err := sup.Fork(t.Context(), run.ID(), supervisor.Checkpoint{Iteration: 2})
	if err != nil {
		t.Fatal(err)
	}
	got, err := files.Versions(t.Context(), &artifact.VersionsRequest{AppName: "app", UserID: "ana", SessionID: id, FileName: "draft.md"})
	if err != nil || !slices.Equal(got.Versions, []int64{2, 1}) {
		t.Fatalf("got versions %v, %v", got, err)
	}
	file, err := files.Load(t.Context(), &artifact.LoadRequest{AppName: "app", UserID: "ana", SessionID: id, FileName: "draft.md"})
	if err != nil || file.Part.Text != "text of l[2]/write" {
		t.Errorf("got %v, %v", file, err)
	}
	if last, _ := view(t, store, id).State().Get("app:last"); last != "l[3]/write" {
		t.Errorf("what all sessions share is now %v", last)
	}
	completed(t, resume(t, sup, id))
}

func TestForkOfNothing(t *testing.T) {
	sup := process(t, session.InMemoryService(), newWorld().nested(t))
	if _, err := sup.Fork(t.Context(), "r_none", supervisor.Checkpoint{}); !errors.Is(err, supervisor.ErrNotFound) || !strings.Contains(err.Error(), `"r_none"`) {
		t.Errorf("got %v", err)
	}
}

// A fork's log is not its old run's: the seals over what was changed on the way are made
// anew, but for one that did not fit before. G9, 12g
func TestForkIsSealed(t *testing.T) {
	write := custom(t, "write", func(ctx agent.InvocationContext, yield yield) {
		ev := &session.Event{}
		ev.Actions.StateDelta = map[string]any{"app:last": string(drive.At(ctx).Address()), "user:n": 1, "mine": 1}
		yield(ev, nil)
	})
	root := loop(t, "outer", 2, loop(t, "inner", 2, write))
	svc := session.InMemoryService()
	sup := process(t, svc, root)
	old := request()
	old.SessionID = "old"
	for range 2 {
		run, err := sup.Start(t.Context(), old)
		if err != nil {
			t.Fatal(err)
		}
		completed(t, run)
	}
	log := view(t, svc, "old").Log()
	for _, at := range []supervisor.Checkpoint{{Iteration: 1}, {Iteration: 2}, {Seq: int64(log.Len())}, {Seq: int64(log.Len()) - 1}} {
		id, err := sup.Fork(t.Context(), "old", at)
		if err != nil {
			t.Fatal(err)
		}
		sound(t, svc)
		if at.Seq == int64(log.Len()) {
			continue // it has come to its end
		}
		completed(t, resume(t, sup, id))
		again, err := sup.Fork(t.Context(), id, supervisor.Checkpoint{Iteration: 2})
		if err != nil {
			t.Fatal(err)
		}
		completed(t, resume(t, sup, again))
	}
	sound(t, svc)

	// What was changed in the old run is seen in its fork.
	changed := session.InMemoryService()
	var evs []*session.Event
	for ev := range log.All() {
		c := *ev
		if c.Address == "outer[1]/inner[1]/write" && c.Actions.StateDelta["mine"] != nil {
			c.Actions.StateDelta = map[string]any{"app:last": "x", "mine": 1}
		}
		evs = append(evs, &c)
	}
	_, err := store.Start(t.Context(), changed, &session.StartRequest{
		CreateRequest: session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "old"}, Events: evs,
	})
	if err != nil {
		t.Fatal(err)
	}
	forger, err := supervisor.New(supervisor.Config{
		Service: changed, AppName: "app", UserID: "ana",
		Build: func(context.Context, mark.RunStarted) (*supervisor.Program, error) {
			return &supervisor.Program{Agent: root}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer forger.Close(t.Context())
	id, err := forger.Fork(t.Context(), "old", supervisor.Checkpoint{Iteration: 2})
	if err != nil {
		t.Fatal(err)
	}
	copied := slices.Collect(view(t, changed, id).Log().All())
	bad := 0
	for _, seal := range verify.Of(slices.Values(copied)).Loops() {
		if seal.Problem != "" {
			bad++
		}
	}
	if ends := verify.Of(slices.Values(copied)).Runs(); bad != 5 || ends[0].Problem == "" { // both inner loops of each run, and the outer one of the first
		t.Errorf("%d loops of the fork do not agree with their records, want 5; ends: %+v", bad, ends)
	}
}
