// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

var errBoom = errors.New("boom")

// A22
func TestNewRefusesWhatItCannotRun(t *testing.T) {
	svc, a := session.InMemoryService(), speaker(t, "a")
	twin := sequence(t, "s", speaker(t, "a"), sequence(t, "i", speaker(t, "a")))
	for _, tt := range []struct {
		name string
		cfg  runner.Config
		want string
	}{
		{"no app name", runner.Config{Agent: a, SessionService: svc}, "runner needs an AppName; set Config.AppName"},
		{"no agent", runner.Config{AppName: "app", SessionService: svc}, "runner needs an Agent; set Config.Agent"},
		{"no session service", runner.Config{AppName: "app", Agent: a}, "runner needs a SessionService; session.InMemoryService() will do"},
		{"two agents of one name", runner.Config{AppName: "app", Agent: twin, SessionService: svc}, `agent tree of "s": agent names must be unique in the agent tree, found duplicate: "a"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := runner.New(tt.cfg); err == nil || err.Error() != tt.want {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}

// E4, E5
func TestEventIsStoredBeforeItIsYielded(t *testing.T) {
	svc := session.InMemoryService()
	r := newRunner(t, runner.Config{Agent: sequence(t, "s", speaker(t, "a", "one", "two"), speaker(t, "b", "three")), SessionService: svc,
		AutoCreateSession: true})
	want := []string{"user: Hello"}
	for ev, err := range ask(t.Context(), r, "Hello") {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, line(ev))
		if diff := cmp.Diff(want, stored(t, svc)); diff != "" {
			t.Errorf("the log when an event is yielded (-want +got):\n%s", diff)
		}
		if ev.Seq != int64(len(want)) || ev.ID == "" || ev.Timestamp.IsZero() {
			t.Errorf("got Seq %d, ID %q, Timestamp %v", ev.Seq, ev.ID, ev.Timestamp)
		}
	}
	if len(want) != 4 {
		t.Errorf("got %q", want)
	}
}

// E2, E5
func TestPartialEventIsShownAndNotStored(t *testing.T) {
	svc := session.InMemoryService()
	a := custom(t, "a", func(_ agent.InvocationContext, yield yield) {
		piece := says("hel")
		piece.Partial = true
		_ = yield(piece, nil) && yield(says("hello"), nil)
	})
	said, err := collect(t, ask(t.Context(), newRunner(t, runner.Config{Agent: a, SessionService: svc, AutoCreateSession: true}), ""))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a: hel", "a: hello"}, said); diff != "" {
		t.Errorf("yielded (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a: hello"}, stored(t, svc)); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

// A19, A20, D6
func TestUserMessageComesWithAStateDelta(t *testing.T) {
	svc := session.InMemoryService()
	var seen []any
	a := custom(t, "a", func(ctx agent.InvocationContext, yield yield) {
		topic, _ := ctx.Session().State().Get("topic")
		note, _ := ctx.Session().State().Get("temp:note")
		seen = []any{topic, note, ctx.UserContent().Parts[0].Text, ctx.Session().Events().Len()}
		yield(says("done"), nil)
	})
	delta := map[string]any{"topic": "cats", "temp:note": "psst"}
	var said []*session.Event
	r := newRunner(t, runner.Config{Agent: a, SessionService: svc, AutoCreateSession: true})
	for ev, err := range ask(t.Context(), r, "Hello", runner.WithStateDelta(delta)) {
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, ev)
	}
	if diff := cmp.Diff([]any{"cats", "psst", "Hello", 1}, seen); diff != "" {
		t.Errorf("what the agent sees (-want +got):\n%s", diff)
	}
	user := get(t, svc).Events().At(0)
	if diff := cmp.Diff(map[string]any{"topic": "cats"}, user.Actions.StateDelta); diff != "" {
		t.Errorf("the stored delta (-want +got):\n%s", diff)
	}
	if user.Author != "user" || user.Text() != "Hello" || len(said) != 1 || user.InvocationID != said[0].InvocationID {
		t.Errorf("got the user's event %+v", user)
	}
	if topic, _ := get(t, svc).State().Get("topic"); topic != "cats" {
		t.Errorf("got topic %v", topic)
	}
}

// E4: what a caller does with its map afterwards changes no history.
func TestStateDeltaIsCopied(t *testing.T) {
	svc := session.InMemoryService()
	r := newRunner(t, runner.Config{Agent: speaker(t, "a"), SessionService: svc, AutoCreateSession: true})
	delta := map[string]any{"topic": "cats"}
	if _, err := collect(t, ask(t.Context(), r, "Hello", runner.WithStateDelta(delta))); err != nil {
		t.Fatal(err)
	}
	delta["topic"] = "dogs"
	if got := get(t, svc).Events().At(0).Actions.StateDelta["topic"]; got != "cats" {
		t.Errorf("got topic %v in the log", got)
	}
}

// E5
func TestWithoutAMessageThereIsNoUserEvent(t *testing.T) {
	svc := session.InMemoryService()
	r := newRunner(t, runner.Config{Agent: speaker(t, "a", "one"), SessionService: svc, AutoCreateSession: true})
	if _, err := collect(t, ask(t.Context(), r, "")); err != nil {
		t.Fatal(err)
	}
	if _, err := collect(t, ask(t.Context(), r, "", runner.WithStateDelta(map[string]any{"k": 1}))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a: one", "user: ", "a: one"}, stored(t, svc)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// E1: nothing happens until the run is ranged over.
func TestRunIsLazy(t *testing.T) {
	svc := session.InMemoryService()
	r := newRunner(t, runner.Config{Agent: speaker(t, "a", "one"), SessionService: svc, AutoCreateSession: true})
	ask(t.Context(), r, "Hello")
	if _, err := svc.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"}); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("got error %v, want no session yet", err)
	}
}

// T20
func TestCanceledBetweenAnyTwoEvents(t *testing.T) {
	words := []string{"a: one", "a: two", "b: three", "c: four"}
	for n := range len(words) + 1 {
		for _, durable := range []bool{false, true} {
			t.Run(fmt.Sprintf("after %d, durable %t", n, durable), func(t *testing.T) {
				svc := session.InMemoryService()
				tree := sequence(t, "s", speaker(t, "a", "one", "two"), sequence(t, "i", speaker(t, "b", "three")), speaker(t, "c", "four"))
				r := newRunner(t, runner.Config{Agent: tree, SessionService: svc, AutoCreateSession: true, Durable: durable})
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if n == 0 {
					cancel(errBoom)
				}
				said, errs := []string{}, []error{}
				for ev, err := range ask(ctx, r, "Hello") {
					if err != nil {
						errs = append(errs, err)
						continue
					}
					if len(errs) > 0 {
						t.Errorf("an event after the error: %s", line(ev))
					}
					if ev.Mark != nil {
						continue
					}
					if said = append(said, line(ev)); len(said) == n {
						cancel(errBoom)
					}
				}
				if diff := cmp.Diff(words[:n], said); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if len(errs) != 1 || errs[0] != errBoom {
					t.Errorf("got errors %v, want exactly context.Cause", errs)
				}
			})
		}
	}
}

// T20: an event that is under way when the run is canceled is kept.
func TestWhatWasSaidIsStoredThoughTheRunIsCanceled(t *testing.T) {
	svc := session.InMemoryService()
	ctx, cancel := context.WithCancel(t.Context())
	a := custom(t, "a", func(_ agent.InvocationContext, yield yield) {
		cancel()
		yield(says("one"), nil)
	})
	said, err := collect(t, ask(ctx, newRunner(t, runner.Config{Agent: a, SessionService: contextual{svc}, AutoCreateSession: true}), ""))
	if err != context.Canceled || len(said) != 1 {
		t.Errorf("got %q, %v", said, err)
	}
	if diff := cmp.Diff([]string{"a: one"}, stored(t, svc)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// contextual refuses to work under a canceled context, as a database does.
type contextual struct{ session.Service }

func (c contextual) AppendEvent(ctx context.Context, s session.Session, ev *session.Event) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return c.Service.AppendEvent(ctx, s, ev)
}

// G2, T18
func TestErrorEndsTheRunAndIsLast(t *testing.T) {
	svc := session.InMemoryService()
	bad := custom(t, "bad", func(_ agent.InvocationContext, yield yield) {
		_ = yield(says("trying"), nil) && yield(nil, errBoom)
		yield(says("never"), nil)
	})
	r := newRunner(t, runner.Config{Agent: sequence(t, "s", bad, speaker(t, "next", "never")), SessionService: svc, AutoCreateSession: true})
	said, err := collect(t, ask(t.Context(), r, ""))
	step, ok := err.(*agent.StepError)
	if !ok || step.Address != "s/bad" || !errors.Is(err, errBoom) {
		t.Errorf("got error %v", err)
	}
	for what, got := range map[string][]string{"yielded": said, "stored": stored(t, svc)} {
		if diff := cmp.Diff([]string{"bad: trying"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// T19
func TestConsumerThatLeavesEndsTheRun(t *testing.T) {
	svc := session.InMemoryService()
	r := newRunner(t, runner.Config{Agent: sequence(t, "s", speaker(t, "a", "one", "two"), speaker(t, "b", "three")), SessionService: svc,
		AutoCreateSession: true})
	for range ask(t.Context(), r, "Hello") {
		break
	}
	if diff := cmp.Diff([]string{"user: Hello", "a: one"}, stored(t, svc)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	func() {
		defer func() {
			if v := recover(); v != "mine" {
				t.Errorf("got panic %v", v)
			}
		}()
		for range ask(t.Context(), r, "") {
			panic("mine")
		}
	}()
}

// E4: an event that is said twice is two events.
func TestSameEventTwiceIsStoredTwice(t *testing.T) {
	svc := session.InMemoryService()
	kept := says("as I said")
	a := custom(t, "a", func(_ agent.InvocationContext, yield yield) {
		for range 2 {
			if !yield(kept, nil) {
				return
			}
		}
	})
	r := newRunner(t, runner.Config{Agent: a, SessionService: svc, AutoCreateSession: true})
	for range 2 {
		if _, err := collect(t, ask(t.Context(), r, "")); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for ev := range get(t, svc).Events().All() {
		if ev.Seq != int64(len(seen))+1 || seen[ev.ID] {
			t.Errorf("got Seq %d and ID %q at place %d", ev.Seq, ev.ID, len(seen)+1)
		}
		seen[ev.ID] = true
	}
	if len(seen) != 4 {
		t.Errorf("got %d events, want 4", len(seen))
	}
}

// G9
func TestOnlyADurableRunWritesMarks(t *testing.T) {
	for _, durable := range []bool{false, true} {
		svc := session.InMemoryService()
		r := newRunner(t, runner.Config{Agent: sequence(t, "s", speaker(t, "a", "one")), SessionService: svc, AutoCreateSession: true, Durable: durable})
		var yielded []string
		for ev, err := range ask(t.Context(), r, "Hello") {
			if err != nil {
				t.Fatal(err)
			}
			yielded = append(yielded, describe(ev))
		}
		want := []string{"s/a says one"}
		if durable {
			want = []string{"s step_started", "s/a step_started", "s/a says one", "s/a step_finished", "s step_finished"}
		}
		if diff := cmp.Diff(want, yielded); diff != "" {
			t.Errorf("durable %t: yielded (-want +got):\n%s", durable, diff)
		}
		logged := []string{}
		for ev := range get(t, svc).Events().All() {
			logged = append(logged, describe(ev))
		}
		if diff := cmp.Diff(append([]string{" says Hello"}, want...), logged); diff != "" {
			t.Errorf("durable %t: stored (-want +got):\n%s", durable, diff)
		}
	}
}

func describe(ev *session.Event) string {
	if ev.Mark != nil {
		return fmt.Sprint(ev.Address, " ", ev.Mark.Kind)
	}
	return fmt.Sprint(ev.Address, " says ", ev.Text())
}

// E5: one runner serves many sessions at once.
func TestRunsInDifferentSessionsDoNotDisturbEachOther(t *testing.T) {
	svc := session.InMemoryService()
	r := newRunner(t, runner.Config{Agent: sequence(t, "s", speaker(t, "a", "one", "two"), speaker(t, "b", "three")), SessionService: svc,
		AutoCreateSession: true})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			said, err := collect(t, r.Run(t.Context(), "ana", fmt.Sprint("s", i), nil, agent.RunConfig{}))
			if err != nil || len(said) != 3 {
				t.Errorf("session s%d: %q, %v", i, said, err)
			}
		})
	}
	wg.Wait()
}
