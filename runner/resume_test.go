// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

var errGone = errors.New("the disk is gone")

// breakOff runs the agent until an event comes of which is holds: that one is not
// stored any more. It returns the run's ID.
func breakOff(t *testing.T, svc session.Service, root agent.Agent, is func(*session.Event) bool) string {
	t.Helper()
	gone := false
	broken := &failing{Service: svc, onAppend: func(ev *session.Event) error {
		if gone = gone || is(ev); gone {
			return errGone
		}
		return nil
	}}
	if _, err := collect(t, ask(t.Context(), newRunner(t, durable(root, broken)), "go")); !errors.Is(err, errGone) {
		t.Fatalf("got error %v, want %v", err, errGone)
	}
	evs := get(t, svc).Events()
	return evs.At(evs.Len() - 1).InvocationID
}

// ends is a step's last mark.
func ends(at session.Address) func(*session.Event) bool {
	return func(ev *session.Event) bool {
		return ev.Address == at && ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished
	}
}

// resume takes up a run and returns what it yields, without marks.
func resume(t *testing.T, svc session.Service, root agent.Agent, id string) (said []string, err error) {
	t.Helper()
	r := newRunner(t, durable(root, svc))
	for ev, e := range r.Resume(t.Context(), "ana", "s1", id, agent.RunConfig{}) {
		if err = e; ev != nil && ev.Mark == nil {
			said = append(said, line(ev))
		}
	}
	return said, err
}

// LOOP 30: of a step that was cut off, its next attempt counts: neither the state
// nor whoever looks at the session sees the first, then and later. The log has it.
func TestResumeSupersedesWhatWasCutOff(t *testing.T) {
	svc := session.InMemoryService()
	attempt := 0
	leaf := custom(t, "leaf", func(_ agent.InvocationContext, yield yield) {
		attempt++
		ev := says("first try")
		ev.Actions.StateDelta = map[string]any{"draft": "first", "old": nil, "extra": 1.0}
		if attempt > 1 {
			ev = says("second try")
			ev.Actions.StateDelta = map[string]any{"draft": "second"}
		}
		yield(ev, nil)
	})
	var seen []string
	var state map[string]any
	looks := custom(t, "looks", func(ctx agent.InvocationContext, yield yield) {
		seen, state = nil, statekey.OwnState(ctx.Session().State())
		for ev := range ctx.Session().Events().All() {
			if ev.Mark == nil {
				seen = append(seen, line(ev))
			}
		}
	})
	root := sequence(t, "root", custom(t, "before", func(_ agent.InvocationContext, yield yield) { yield(sets("old", "kept"), nil) }),
		leaf, looks)
	id := breakOff(t, svc, root, ends("root/leaf"))
	said, err := resume(t, svc, root, id)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, want []string) {
		t.Helper()
		if diff := cmp.Diff(want, seen); diff != "" {
			t.Errorf("what an agent sees %s (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff(map[string]any{"draft": "second", "old": "kept"}, state); diff != "" {
			t.Errorf("the state %s (-want +got):\n%s", what, diff)
		}
	}
	if diff := cmp.Diff([]string{"leaf: second try"}, said); diff != "" {
		t.Errorf("what Resume yields (-want +got):\n%s", diff)
	}
	check("in the same run", []string{"user: go", "before: ", "leaf: second try"})
	if _, err := collect(t, ask(t.Context(), newRunner(t, durable(looks, svc)), "again")); err != nil {
		t.Fatal(err)
	}
	check("in the next run", []string{"user: go", "before: ", "leaf: second try", "user: again"})
	var all []string
	for ev := range get(t, svc).(*session.View).Log().All() {
		if ev.Mark == nil {
			all = append(all, line(ev))
		}
	}
	if !slices.Contains(all, "leaf: first try") {
		t.Errorf("the log has lost the first attempt: %q", all)
	}
}

// Agents in a resumed run see the session as it was at their time.
func TestReplayShowsTheSessionAsItWas(t *testing.T) {
	svc := session.InMemoryService()
	var seen [][]string
	root := custom(t, "root", func(ctx agent.InvocationContext, yield yield) {
		for _, text := range []string{"one", "two", "three"} {
			var now []string
			for ev := range ctx.Session().Events().All() {
				now = append(now, ev.Text())
			}
			v, _ := ctx.Session().State().Get("k")
			now = append(now, "k=", text)
			if v != nil {
				now = append(now, v.(string))
			}
			seen = append(seen, now)
			ev := says(text)
			ev.Actions.StateDelta = map[string]any{"k": text}
			if !yield(ev, nil) {
				return
			}
			for ev, err := range drive.Run(ctx, speaker(t, "child", "child of "+text)) {
				if !yield(ev, err) {
					return
				}
			}
		}
	})
	id := breakOff(t, svc, root, ends("root/child#3"))
	first := seen
	seen = nil
	if _, err := resume(t, svc, root, id); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, seen); diff != "" {
		t.Errorf("what the agent sees (-first +again):\n%s", diff)
	}
}

// What cannot be resumed says why, and nothing is stored.
func TestResumeRefuses(t *testing.T) {
	root := func() agent.Agent { return sequence(t, "root", speaker(t, "a", "one"), speaker(t, "b", "two")) }
	broken := custom(t, "broken", func(_ agent.InvocationContext, yield yield) { yield(nil, errors.New("no good")) })
	run := func(t *testing.T, cfg runner.Config) (session.Service, string) {
		svc := session.InMemoryService()
		cfg.SessionService, cfg.AutoCreateSession = svc, true
		_, _ = collect(t, ask(t.Context(), newRunner(t, cfg), "go"))
		return svc, get(t, svc).Events().At(0).InvocationID
	}
	for name, tt := range map[string]struct {
		ran     runner.Config
		id      string
		resumes bool
		want    error
		text    string
	}{
		"a run that is over": {ran: runner.Config{Agent: root(), Durable: true}, resumes: true, want: runner.ErrFinished},
		"a run that has failed": {ran: runner.Config{Agent: broken, Durable: true}, resumes: true, want: runner.ErrFinished,
			text: "no good"},
		"a run that nobody knows": {ran: runner.Config{Agent: root(), Durable: true}, resumes: true, id: "e-1",
			want: runner.ErrRunNotFound, text: `"e-1"`},
		"a run without marks":              {ran: runner.Config{Agent: root()}, resumes: true, want: runner.ErrNotDurable},
		"by a runner that writes no marks": {ran: runner.Config{Agent: root(), Durable: true}, want: runner.ErrNotDurable},
	} {
		t.Run(name, func(t *testing.T) {
			svc, id := run(t, tt.ran)
			if tt.id != "" {
				id = tt.id
			}
			before := stored(t, svc)
			r := newRunner(t, runner.Config{Agent: tt.ran.Agent, SessionService: svc, Durable: tt.resumes})
			said, err := collect(t, r.Resume(t.Context(), "ana", "s1", id, agent.RunConfig{}))
			if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) || len(said) > 0 {
				t.Errorf("got %q and error %v, want error %v that says %q", said, err, tt.want, tt.text)
			}
			if diff := cmp.Diff(before, stored(t, svc)); diff != "" {
				t.Errorf("the log was changed:\n%s", diff)
			}
		})
	}
	r := newRunner(t, durable(root(), session.InMemoryService()))
	if _, err := collect(t, r.Resume(t.Context(), "ana", "s1", "e-1", agent.RunConfig{})); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("without a session: got error %v, want %v", err, session.ErrNotFound)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStop)
	if _, err := collect(t, r.Resume(ctx, "ana", "s1", "e-1", agent.RunConfig{})); err != errStop {
		t.Errorf("canceled before: got error %v, want the cause", err)
	}
}

// An empty ID resumes the session's newest run that has not ended.
func TestResumeNewest(t *testing.T) {
	svc := session.InMemoryService()
	root := func() agent.Agent { return sequence(t, "root", speaker(t, "a", "one"), speaker(t, "b", "two")) }
	refused := func(want error) {
		t.Helper()
		if _, err := resume(t, svc, root(), ""); !errors.Is(err, want) {
			t.Errorf("got error %v, want %v", err, want)
		}
	}
	if _, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1"}); err != nil {
		t.Fatal(err)
	}
	refused(runner.ErrRunNotFound)
	if _, err := collect(t, ask(t.Context(), newRunner(t, runner.Config{Agent: root(), SessionService: svc}), "go")); err != nil {
		t.Fatal(err)
	}
	refused(runner.ErrNotDurable)
	if _, err := collect(t, ask(t.Context(), newRunner(t, durable(root(), svc)), "go")); err != nil {
		t.Fatal(err)
	}
	refused(runner.ErrFinished)
	breakOff(t, svc, root(), ends("root/a"))
	breakOff(t, svc, root(), ends("root/b"))
	for _, want := range [][]string{{"b: two"}, {"a: one", "b: two"}} { // the newer one first
		said, err := resume(t, svc, root(), "")
		if diff := cmp.Diff(want, said); diff != "" || err != nil {
			t.Errorf("error %v (-want +got):\n%s", err, diff)
		}
	}
	refused(runner.ErrFinished)
}

// Another tree, or one that does not do the same again, is noticed where it first
// differs; the error has both versions, and of the run nothing more is stored than
// that it was tried.
func TestResumeNoticesAnotherTree(t *testing.T) {
	loopOf := func(most uint, subs ...agent.Agent) agent.Agent {
		a, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "loop", SubAgents: subs}, MaxIterations: most})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	own := func(text string, most int, subs ...agent.Agent) agent.Agent {
		return custom(t, "own", func(ctx agent.InvocationContext, yield yield) {
			if !yield(says(text), nil) {
				return
			}
			for _, sub := range subs[:most] {
				for ev, err := range drive.Run(ctx, sub) {
					if !yield(ev, err) {
						return
					}
				}
			}
		})
	}
	a, b, c := speaker(t, "a", "one"), speaker(t, "b", "two"), speaker(t, "c", "three")
	for name, tt := range map[string]struct {
		was, is agent.Agent
		at      session.Address
		texts   []string
	}{
		"another root": {sequence(t, "root", a, b), sequence(t, "other", a, b), "root", []string{`no agent "root"`}},
		"a step is gone": {sequence(t, "root", a, b), sequence(t, "root", b), "root/a", []string{"step_started of root/a",
			`"root" has no sub-agent "a"`}},
		"a step more": {sequence(t, "root", a, b), sequence(t, "root", c, a, b), "root/a", []string{"step_started of root/a",
			"a run of root/c"}},
		"another order": {sequence(t, "root", a, c, b), sequence(t, "root", c, a, b), "root/a", []string{"a run of root/c"}},
		"order of steps": {sequence(t, "root", a, c, b), sequence(t, "root", c, a, b), "root/a",
			[]string{"a run of root/c, so the order of the sub-agents has changed"}},
		"other rules": {loopOf(3, a, b), loopOf(3, b, a), "loop[1]/a", []string{"step_started of loop[1]/a",
			"a run of loop[1]/b, so the order of the sub-agents has changed"}},
		"other words":        {own("hello", 2, a, b), own("hi", 2, a, b), "own", []string{`"hello"`, `"hi"`}},
		"it does less":       {own("hello", 2, a, b), own("hello", 0, a, b), "own/a", []string{"step_started of own/a", "the end of own"}},
		"from loop to steps": {loopOf(3, a, b), sequence(t, "loop", a, b), "loop", []string{"loop_started"}},
	} {
		t.Run(name, func(t *testing.T) {
			svc := session.InMemoryService()
			id := breakOff(t, svc, tt.was, func(ev *session.Event) bool { return ev.Author == "b" && ev.Text() != "" })
			before := len(stored(t, svc))
			_, err := resume(t, svc, tt.is, id)
			diverged, ok := errors.AsType[*agent.DivergedError](err)
			if !errors.Is(err, runner.ErrDiverged) || !ok {
				t.Fatalf("got error %v, want a *agent.DivergedError", err)
			}
			if diverged.Address != tt.at {
				t.Errorf("got address %s, want %s", diverged.Address, tt.at)
			}
			for _, text := range tt.texts {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("the error does not say %q: %v", text, err)
				}
			}
			for ev := range get(t, svc).(*session.View).Log().All() {
				if int(ev.Seq) > before && ev.Mark.Kind != mark.KindRunResumed {
					t.Errorf("stored: %s", brief([]*session.Event{ev}))
				}
			}
			if _, err := resume(t, svc, tt.was, id); err != nil {
				t.Errorf("the tree that it was started with does not go on: %v", err)
			}
		})
	}
}

// The order of steps that have not begun in any iteration may change: the run goes on in the new one. That of others may not.
func TestStepsThatHaveNotBegunMayChangePlaces(t *testing.T) {
	a, b, c := speaker(t, "a", "one"), speaker(t, "b", "two"), speaker(t, "c", "three")
	loopOf := func(subs ...agent.Agent) agent.Agent {
		l, err := loopagent.New(loopagent.Config{AgentConfig: agent.Config{Name: "root", SubAgents: subs}, MaxIterations: 2})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for name, tt := range map[string]struct {
		was, is agent.Agent
		cut     session.Address // where the first step that has not begun would begin
		want    []string        // nil: the run diverges
	}{
		"sequence":             {sequence(t, "root", a, b, c), sequence(t, "root", a, c, b), "root/b", []string{"c: three", "b: two"}},
		"loop":                 {loopOf(a, b, c), loopOf(a, c, b), "root[1]/b", []string{"c: three", "b: two", "a: one", "c: three", "b: two"}},
		"begun in iteration 1": {loopOf(a, b, c), loopOf(a, c, b), "root[2]/b", nil},
	} {
		t.Run(name, func(t *testing.T) {
			svc := session.InMemoryService()
			id := breakOff(t, svc, tt.was, func(ev *session.Event) bool { return ev.Address == tt.cut })
			said, err := resume(t, svc, tt.is, id)
			if diff := cmp.Diff(tt.want, said); errors.Is(err, runner.ErrDiverged) != (tt.want == nil) || err != nil && tt.want != nil ||
				diff != "" {
				t.Errorf("error %v; what it says (-want +got):\n%s", err, diff)
			}
		})
	}
}

// LOOP 33: two that take up one run: the first goes on, the other hears of it.
func TestOnlyOneResumesARun(t *testing.T) {
	svc := session.InMemoryService()
	root := func(hook func()) agent.Agent {
		return sequence(t, "root", speaker(t, "a", "one"), custom(t, "b", func(_ agent.InvocationContext, yield yield) {
			hook()
			yield(says("two"), nil)
		}))
	}
	id := breakOff(t, svc, root(func() {}), ends("root/b"))
	var inner error
	_, err := resume(t, svc, root(func() { _, inner = resume(t, svc, root(func() {}), id) }), id)
	busy, ok := errors.AsType[*runner.BusyError](inner)
	if err != nil || !ok || busy.RunID != id {
		t.Errorf("got errors %v and %v, want that the later one names %s, and none for the first", inner, err, id)
	}
}

// A failure that is in the log is what it was: its step, its kind and its words.
func TestResumedRunFailsAsItDid(t *testing.T) {
	panics := custom(t, "panics", func(agent.InvocationContext, yield) { panic("oops") })
	svc := session.InMemoryService()
	root := sequence(t, "root", sequence(t, "inner", panics), speaker(t, "b", "two"))
	id := breakOff(t, svc, root, ends("root/inner"))
	_, err := resume(t, svc, root, id)
	step, ok := errors.AsType[*agent.StepError](err)
	if !ok || step.Address != "root/inner/panics" {
		t.Errorf("got %#v, want a StepError of root/inner/panics", err)
	}
	if p, ok := errors.AsType[*agent.PanicError](err); !ok || p.Value != "oops" {
		t.Errorf("got %#v, want the panic", err)
	}
	if want := `agent "panics" (root/inner/panics): panic: oops`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// A run that broke off before its first step begins, with its message.
func TestResumeBeforeTheFirstStep(t *testing.T) {
	svc := session.InMemoryService()
	root := custom(t, "root", func(ctx agent.InvocationContext, yield yield) {
		v, _ := ctx.Session().State().Get("k")
		yield(says(ctx.UserContent().Parts[0].Text+" "+v.(string)), nil)
	})
	if _, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s1",
		State: map[string]any{"k": "v"}}); err != nil {
		t.Fatal(err)
	}
	id := breakOff(t, svc, root, func(ev *session.Event) bool { return ev.Mark != nil })
	said, err := resume(t, svc, root, id)
	if diff := cmp.Diff([]string{"root: go v"}, said); diff != "" || err != nil {
		t.Errorf("error %v, said (-want +got):\n%s", err, diff)
	}
}

// A session may have gone on with other runs in between.
func TestResumeAfterAnotherRun(t *testing.T) {
	svc := session.InMemoryService()
	other := custom(t, "other", func(_ agent.InvocationContext, yield yield) { yield(sets("k", "other"), nil) })
	var at, then any
	root := sequence(t, "root",
		custom(t, "a", func(_ agent.InvocationContext, yield yield) { yield(sets("k", "mine"), nil) }),
		custom(t, "own", func(ctx agent.InvocationContext, yield yield) {
			at, _ = ctx.Session().State().Get("k")
			for ev, err := range drive.Run(ctx, speaker(t, "x", "done")) {
				if !yield(ev, err) {
					return
				}
			}
		}),
		custom(t, "b", func(ctx agent.InvocationContext, yield yield) { then, _ = ctx.Session().State().Get("k") }))
	id := breakOff(t, svc, root, ends("root/own"))
	if _, err := collect(t, ask(t.Context(), newRunner(t, durable(other, svc)), "more")); err != nil {
		t.Fatal(err)
	}
	if _, err := resume(t, svc, root, id); err != nil {
		t.Fatal(err)
	}
	if at != "mine" || then != "other" {
		t.Errorf("decided again by %v, want mine; went on with %v, want other", at, then)
	}
}

var _ = genai.RoleUser
