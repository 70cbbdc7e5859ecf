// SPDX-License-Identifier: Apache-2.0

package supervisor_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// asks is an agent that asks a person, and notes the answer.
func asks(t testing.TB, name string, deadline time.Duration) agent.Agent {
	t.Helper()
	base := new(person)
	b, err := drive.NewBase(agent.Config{Name: name}, base, func(ctx agent.InvocationContext, yield func(*session.Event, error) bool) {
		q := mark.Question{ID: drive.At(ctx).QuestionID(1), Kind: mark.AskText, Text: name + "?"}
		if deadline > 0 {
			q.Deadline, q.Default = time.Now().Add(deadline), []byte(`"by default"`)
		}
		answer, err := drive.At(ctx).Ask(nil, q, yield)
		if err != nil {
			yield(nil, err)
			return
		}
		ev := &session.Event{}
		ev.Actions.StateDelta = map[string]any{name: string(answer.Value)}
		yield(ev, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	base.Base = b
	return base
}

type person struct{ *drive.Base }

func (*person) Traits(bool) drive.Traits { return drive.Traits{Continues: true} }

// asked waits until a run asks something.
func asked(t testing.TB, sup *supervisor.Supervisor, id string) []mark.Question {
	t.Helper()
	for ev, err := range sup.Watch(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Mark == nil || ev.Mark.Kind != mark.KindAsked {
			continue
		}
		open, err := sup.Questions(t.Context(), id)
		if err != nil || len(open) == 0 {
			t.Fatalf("the questions are %v, %v", open, err)
		}
		return open
	}
	t.Fatal("nothing is asked")
	return nil
}

// LOOP 32: a run waits for a person, durably.
func TestWaitForAnswers(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld()
	tree := loop(t, "l", 1, w.step(t, "before"), parallel(t, "both", asks(t, "left", 0), asks(t, "right", 0)), w.step(t, "after"))
	one, two := process(t, store, tree), process(t, store, tree, named("two"))
	run := start(t, one)
	out := wait(t, run)
	if _, ok := errors.AsType[*agent.WaitingError](out.Err); !ok || out.Run.Status != mark.RunWaiting {
		t.Fatalf("got %+v", out)
	}
	open, err := two.Questions(t.Context(), run.ID())
	if err != nil || len(open) == 0 {
		t.Fatalf("got %v, %v", open, err)
	}
	// A branch may come to its question only when the other has its answer.
	for len(open) > 0 {
		if open, err = two.Answer(t.Context(), run.ID(), mark.Answer{ID: open[0].ID, Value: []byte(`"` + open[0].Text + `"`)}); err != nil {
			t.Fatal(err)
		}
		if len(open) == 0 {
			if got := session.RunOf(view(t, store, run.ID())).Status; got != mark.RunIsPaused {
				t.Errorf("with all answers the run is %s", got)
			}
			wait(t, resume(t, two, run.ID()))
			if open, err = two.Questions(t.Context(), run.ID()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := session.RunOf(view(t, store, run.ID())); got.Status != mark.RunCompleted {
		t.Fatalf("the run is %+v", got)
	}
	want := map[string]any{"before": "x", "after": "x", "left": `"left?"`, "right": `"right?"`}
	if diff := cmp.Diff(want, final(t, store, run.ID())); diff != "" || w.total() != 2 {
		t.Errorf("%d steps ran; the state (-want +got):\n%s", w.total(), diff)
	}
	if _, err := one.Answer(t.Context(), run.ID(), mark.Answer{ID: "q-1"}); !errors.Is(err, supervisor.ErrNoQuestion) {
		t.Errorf("an answer to nobody: %v", err)
	}
}

// An answer that comes while a step beside is under way is kept, and the run goes on
// with it by itself.
func TestAnswerWhileOthersWork(t *testing.T) {
	store := session.InMemoryService()
	w := newWorld("slow")
	ready := make(chan struct{})
	tree := parallel(t, "both", when(t, ready, asks(t, "left", 0)), w.step(t, "slow"))
	one, two := process(t, store, tree), process(t, store, tree, named("two"))
	run := start(t, one)
	<-w.seen
	close(ready)
	open := asked(t, two, run.ID())
	if _, err := two.Answer(t.Context(), run.ID(), mark.Answer{ID: open[0].ID, Value: []byte(`"1"`)}); err != nil {
		t.Fatal(err)
	}
	close(w.gate["slow"])
	completed(t, run)
	if got := final(t, store, run.ID())["left"]; got != `"1"` {
		t.Errorf("got the answer %v", got)
	}
}

// An answer that a driver has noted is not lost when that dies.
func TestAnswerOutlivesTheDriver(t *testing.T) {
	store := session.InMemoryService()
	dying := &mortal{service: store.(service)}
	w := newWorld("slow")
	ready := make(chan struct{})
	tree := parallel(t, "both", when(t, ready, asks(t, "left", 0)), w.step(t, "slow"))
	one := process(t, dying, tree)
	two := process(t, store, tree, named("two"), func(c *supervisor.Config) { c.Dead = func(string) bool { return dying.dead.Load() } })
	run := start(t, one)
	<-w.seen
	close(ready)
	open := asked(t, two, run.ID())
	if _, err := two.Answer(t.Context(), run.ID(), mark.Answer{ID: open[0].ID, Value: []byte(`"1"`)}); err != nil {
		t.Fatal(err)
	}
	dying.dead.Store(true)
	close(w.gate["slow"])
	wait(t, run)
	completed(t, resume(t, two, run.ID()))
	if got := final(t, store, run.ID())["left"]; got != `"1"` {
		t.Errorf("got the answer %v", got)
	}
}

// LOOP 32: when there is no more time the default counts, whoever is there then.
func TestDeadline(t *testing.T) {
	for _, restart := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := session.InMemoryService()
			sup := process(t, store, asks(t, "left", time.Hour))
			run := start(t, sup)
			if out := wait(t, run); out.Run.Status != mark.RunWaiting || time.Until(out.Run.Deadline) != time.Hour {
				t.Fatalf("got %+v", out)
			}
			if restart {
				if err := sup.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				sup = process(t, store, asks(t, "left", time.Hour))
				if got, err := sup.Recover(t.Context()); err != nil || len(got) > 0 {
					t.Errorf("got %v, %v", got, err)
				}
			}
			time.Sleep(59 * time.Minute)
			if got := session.RunOf(view(t, store, run.ID())).Status; got != mark.RunWaiting {
				t.Errorf("before its time the run is %s", got)
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if got := session.RunOf(view(t, store, run.ID())).Status; got != mark.RunCompleted {
				t.Errorf("after its time the run is %s", got)
			}
			if got := final(t, store, run.ID())["left"]; got != `"by default"` {
				t.Errorf("got the answer %v", got)
			}
		})
	}
}

// An answer that does not fit its question is refused, and the question stays open.
func TestAnswerThatDoesNotFit(t *testing.T) {
	store := session.InMemoryService()
	sup := process(t, store, asks(t, "opinion", 0))
	run := start(t, sup)
	wait(t, run)
	q := asked(t, sup, run.ID())[0]
	for _, value := range []string{``, `null`, `1`, `{"a": "b"}`, `"cut`} {
		open, err := sup.Answer(t.Context(), run.ID(), mark.Answer{ID: q.ID, Value: []byte(value)})
		if err == nil || len(open) != 1 || len(asked(t, sup, run.ID())) != 1 {
			t.Errorf("the answer %s: %v, open are %v", value, err, open)
		}
	}
	if _, err := sup.Answer(t.Context(), run.ID(), mark.Answer{ID: q.ID, Value: []byte(`"fine"`)}); err != nil {
		t.Fatal(err)
	}
	completed(t, resume(t, sup, run.ID()))
}
