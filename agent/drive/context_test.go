// SPDX-License-Identifier: Apache-2.0

package drive_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

type key struct{}

// E6
func TestInvocationContextKnowsItsAgentAndRun(t *testing.T) {
	view := session.NewView(session.ViewConfig{AppName: "app", UserID: "ana", SessionID: "s1"})
	asked := genai.NewContentFromText("Hello", genai.RoleUser)
	cfg := &agent.RunConfig{StreamingMode: agent.StreamingModeSSE}
	var leaf, root agent.Agent
	leaf = custom(t, "leaf", func(ctx agent.InvocationContext, _ yield) {
		if ctx.Agent() != leaf || ctx.Session() != session.Session(view) || ctx.UserContent() != asked || ctx.RunConfig() != cfg {
			t.Errorf("got %v, %v, %v, %v", ctx.Agent(), ctx.Session(), ctx.UserContent(), ctx.RunConfig())
		}
		if ctx.InvocationID() != "e-1" || ctx.Branch() != "" || ctx.Value(key{}) != "v" || ctx.Ended() {
			t.Errorf("got %q, %q, %v, %t", ctx.InvocationID(), ctx.Branch(), ctx.Value(key{}), ctx.Ended())
		}
		if drive.At(ctx).Address() != "root/leaf" || drive.At(ctx).Loop() != nil || drive.At(ctx).Marks() {
			t.Errorf("got %q, %v, %t", drive.At(ctx).Address(), drive.At(ctx).Loop(), drive.At(ctx).Marks())
		}
	})
	root = custom(t, "root", func(ctx agent.InvocationContext, yield yield) {
		leaf.Run(ctx)(yield)
		if ctx.Agent() != root {
			t.Errorf("got %v", ctx.Agent())
		}
	}, leaf)
	ctx := context.WithValue(t.Context(), key{}, "v")
	if _, errs := collect(root.Run(drive.NewInvocation(ctx, drive.Invocation{ID: "e-1", Session: view, UserContent: asked,
		RunConfig: cfg}))); len(errs) > 0 {
		t.Error(errs)
	}
	if drive.NewInvocation(ctx, drive.Invocation{}).RunConfig() == nil {
		t.Error("without a RunConfig there are its defaults")
	}
}

// wrapped is a context as a program around ours may make it.
type wrapped struct {
	agent.InvocationContext
	id string
}

func (w wrapped) InvocationID() string { return w.id }

// unconfigured is a context that has no configuration of the run, as one in a test may be.
type unconfigured struct{ agent.InvocationContext }

func (unconfigured) RunConfig() *agent.RunConfig { return nil }

// E6, T20: what a sub-agent gets is the context that it is run with, whoever
// made it, and the tree and its addresses go on below it.
func TestContextsOfOnesOwn(t *testing.T) {
	leaf := custom(t, "leaf", func(ctx agent.InvocationContext, yield yield) {
		ev := says(ctx.InvocationID())
		if v, _ := ctx.Value(key{}).(string); v != "" {
			ev.Content.Parts[0].Text += " " + v
		}
		yield(ev, nil)
	})
	for _, tt := range []struct {
		name string
		own  func(agent.InvocationContext) agent.InvocationContext
		want string
	}{
		{"as it is", func(ctx agent.InvocationContext) agent.InvocationContext { return ctx }, "e-1"},
		{"WithContext", func(ctx agent.InvocationContext) agent.InvocationContext {
			return ctx.WithContext(context.WithValue(ctx, key{}, "v"))
		}, "e-1 v"},
		{"a struct around it", func(ctx agent.InvocationContext) agent.InvocationContext { return wrapped{ctx, "mine"} }, "mine"},
		{"a struct around a struct", func(ctx agent.InvocationContext) agent.InvocationContext {
			return wrapped{wrapped{ctx, "inner"}, "outer"}
		}, "outer"},
		{"WithContext of a callback's", func(ctx agent.InvocationContext) agent.InvocationContext {
			return agent.NewCallbackContext(ctx, nil).WithContext(context.WithValue(ctx, key{}, "w"))
		}, "e-1 w"},
		{"without a RunConfig", func(ctx agent.InvocationContext) agent.InvocationContext { return unconfigured{ctx} }, "e-1"},
		{"a callback's", func(ctx agent.InvocationContext) agent.InvocationContext { return agent.NewCallbackContext(ctx, nil) }, "e-1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := custom(t, "root", func(ctx agent.InvocationContext, yield yield) {
				own := tt.own(ctx)
				if drive.At(own).Address() != "root" {
					t.Errorf("the context's address got lost: %q", drive.At(own).Address())
				}
				for range 2 {
					for ev, err := range leaf.Run(own) {
						if !yield(ev, err) {
							return
						}
					}
				}
				leaf.Run(ctx)(yield)
			}, leaf)
			events, errs := collect(root.Run(invocation(t.Context())))
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			if got := events[0].Text(); got != tt.want {
				t.Errorf("the sub-agent got %q, want %q", got, tt.want)
			}
			if diff := cmp.Diff([]session.Address{"root/leaf", "root/leaf#2", "root/leaf#3"}, addresses(events)); diff != "" {
				t.Errorf("addresses, which never repeat (-want +got):\n%s", diff)
			}
		})
	}
}

// T20, F4
func TestWithContextCancelsOnlyWhatRunsUnderIt(t *testing.T) {
	slow := custom(t, "slow", func(ctx agent.InvocationContext, _ yield) { <-ctx.Done() })
	root := custom(t, "root", func(ctx agent.InvocationContext, yield yield) {
		short, cancel := context.WithTimeoutCause(ctx, time.Millisecond, errBoom)
		defer cancel()
		for _, err := range slow.Run(ctx.WithContext(short)) {
			if err != errBoom {
				t.Errorf("got %v, want the cause", err)
			}
		}
		yield(says("went on"), nil)
	}, slow)
	events, errs := collect(root.Run(invocation(t.Context())))
	if len(errs) > 0 || len(events) != 1 {
		t.Errorf("got %v, %v", events, errs)
	}
}

// E5: EndInvocation is about one agent.
func TestEndInvocationDoesNotEndOthers(t *testing.T) {
	ender := custom(t, "ender", func(ctx agent.InvocationContext, yield yield) {
		ctx.EndInvocation()
		if !ctx.Ended() || !ctx.WithContext(ctx).Ended() {
			t.Error("Ended does not say so")
		}
		yield(says("bye"), nil)
	})
	other := speaker(t, "other", "still here")
	root := custom(t, "root", func(ctx agent.InvocationContext, yield yield) {
		for _, sub := range []agent.Agent{ender, other} {
			sub.Run(ctx)(yield)
		}
		if ctx.Ended() {
			t.Error("a sub-agent ended its parent")
		}
	}, ender, other)
	events, _ := collect(root.Run(invocation(t.Context())))
	if diff := cmp.Diff([]string{"ender: bye", "other: still here"}, texts(events)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// D9, O7: a step's own iteration: keys are its loop's.
func TestStateOfAStepHasItsIterationKeys(t *testing.T) {
	view := session.NewView(session.ViewConfig{})
	ctx := drive.NewInvocation(t.Context(), drive.Invocation{Session: view})
	a := custom(t, "a", func(ctx agent.InvocationContext, yield yield) {
		ev := &session.Event{}
		state := agent.NewCallbackContext(ctx, &ev.Actions).State()
		if err := state.Set("iteration:k", drive.At(ctx).Loop().Iteration); err != nil {
			t.Error(err)
		}
		yield(ev, nil)
		if v, err := drive.At(ctx).State().Get("iteration:k"); v != float64(drive.At(ctx).Loop().Iteration) {
			t.Errorf("got %v, %v", v, err)
		}
	})
	l := &drive.Loop{Name: "refine", Address: "refine", Iteration: 1, IterationAddress: "refine[1]"}
	drive.NewStep(ctx, drive.StepConfig{Agent: a, Loop: l}).Run(func(ev *session.Event) bool { view.Apply(ev); return true })
	if v, err := view.StateAt("refine[1]/b").Get("iteration:k"); v != 1.0 {
		t.Errorf("the next step of the iteration got %v, %v", v, err)
	}
	if v, err := view.StateAt("refine[2]/b").Get("iteration:k"); err == nil {
		t.Errorf("the next iteration got %v", v)
	}
}

// A29, B6, B7, D6, T29, LOOP 26: what each name of a template stands for.
func TestLookup(t *testing.T) {
	view := session.NewView(session.ViewConfig{State: map[string]any{"draft": "Once", "app:motto": "more", "empty": ""}})
	base := drive.Invocation{Session: view, UserContent: genai.NewContentFromText("Hello", genai.RoleUser), Artifacts: &files{}}
	inLoop := func(l drive.Loop) *drive.Loop {
		l.Name, l.Address, l.IterationAddress = "refine", "refine", "refine[1]"
		return &l
	}
	bounded := inLoop(drive.Loop{
		Iteration: 2, Plan: &loop.Plan{MaxIterations: 3}, Started: time.Now().Add(-90 * time.Second),
		Results: drive.Results{Score: new(6.5), BestScore: new(8.0), Prev: map[string]any{"draft": "Twice"},
			Best: map[string]any{"draft": "Thrice", "score": "a key"}},
	})
	first := inLoop(drive.Loop{Iteration: 1})
	last := inLoop(drive.Loop{Iteration: 3, Plan: &loop.Plan{MaxIterations: 3}})
	over := inLoop(drive.Loop{Iteration: 4, Plan: &loop.Plan{MaxIterations: 3}})
	for _, tt := range []struct {
		loop *drive.Loop
		name string
		want any // nil: no value
	}{
		{nil, "draft", "Once"},
		{nil, "app:motto", "more"},
		{nil, "empty", ""},
		{nil, "user_input", "Hello"},
		{nil, "artifact.text.md", "# Text"},
		{nil, "artifact.data.md", "# Data"},
		{nil, "artifact.none.md", nil},
		{nil, "iteration", nil},
		{nil, "score", nil},
		{nil, "prev.draft", nil},
		{nil, "nobody", nil},
		{bounded, "draft", "Once"},
		{bounded, "user_input", "Hello"},
		{bounded, "iteration", 2},
		{bounded, "max_iterations", 3},
		{bounded, "remaining_iterations", 1},
		{bounded, "is_first_iteration", false},
		{bounded, "is_last_iteration", false},
		{bounded, "score", 6.5},
		{bounded, "best.score", 8.0},
		{bounded, "prev.draft", "Twice"},
		{bounded, "best.draft", "Thrice"},
		{bounded, "prev.nobody", nil},
		{bounded, "elapsed", "1m30s"},
		{bounded, "nobody", nil},
		{first, "is_first_iteration", true},
		{first, "is_last_iteration", false},
		{first, "max_iterations", nil},
		{first, "remaining_iterations", nil},
		{first, "score", nil},
		{first, "best.score", nil},
		{first, "prev.draft", nil},
		{first, "elapsed", nil},
		{last, "is_last_iteration", true},
		{last, "remaining_iterations", 0},
		{over, "is_last_iteration", true},
		{over, "remaining_iterations", 0},
	} {
		var got any
		var ok bool
		a := custom(t, "a", func(ctx agent.InvocationContext, _ yield) { got, ok = drive.At(ctx).Lookup(tt.name) })
		drive.NewStep(drive.NewInvocation(t.Context(), base), drive.StepConfig{Agent: a,
			Loop: tt.loop}).Run(func(*session.Event) bool { return true })
		if ok != (tt.want != nil) || ok && got != tt.want {
			t.Errorf("in loop %+v: %q is %v (%t), want %v", tt.loop, tt.name, got, ok, tt.want)
		}
	}
}

// Each built-in name has a value where there is one, and its first word is known as taken.
func TestBuiltInNames(t *testing.T) {
	view := session.NewView(session.ViewConfig{})
	base := drive.Invocation{Session: view, UserContent: genai.NewContentFromText("Hello", genai.RoleUser),
		RunConfig: &agent.RunConfig{Budget: &budget.Limits{Calls: 3}}}
	l := &drive.Loop{
		Name: "refine", Address: "refine", IterationAddress: "refine[1]", Iteration: 2, Plan: &loop.Plan{MaxIterations: 3}, Started: time.Now(),
		Results: drive.Results{Score: new(6.5), BestScore: new(8.0), Rejected: &drive.RejectedIteration{Reason: "too short"}},
	}
	a := custom(t, "a", func(ctx agent.InvocationContext, _ yield) {
		for _, name := range drive.BuiltIn {
			if _, ok := drive.At(ctx).Lookup(name); !ok {
				t.Errorf("%q has no value", name)
			}
			if head, _, dotted := strings.Cut(name, "."); dotted && !slices.Contains(drive.BuiltInHeads, head) {
				t.Errorf("%q is not among the first words", head)
			}
		}
	})
	drive.NewStep(drive.NewInvocation(t.Context(), base), drive.StepConfig{Agent: a, Loop: l}).Run(func(*session.Event) bool { return true })
}

// D9: what is no text, and what cannot be read, does not become a prompt.
func TestLookupOfArtifactsThatAreNoText(t *testing.T) {
	view := session.NewView(session.ViewConfig{AppName: "app", UserID: "u", SessionID: "s", State: map[string]any{}})
	ctx := drive.NewInvocation(t.Context(), drive.Invocation{Session: view, Artifacts: &files{}})
	for name, want := range map[string]string{
		"picture.png": `artifact "picture.png" cannot be inserted into a text, because its type is image/png; save it as text`,
		"broken.md":   `artifact "broken.md": boom`,
	} {
		v, ok := drive.At(ctx).Lookup("artifact." + name)
		if err, is := v.(error); !ok || !is || err.Error() != want {
			t.Errorf("%s: %v, want the error %q", name, v, want)
		}
	}
}

// What was not asked and not stored has no value.
func TestLookupWithoutServices(t *testing.T) {
	ctx := drive.NewInvocation(t.Context(), drive.Invocation{Session: session.NewView(session.ViewConfig{})})
	for _, name := range []string{"user_input", "artifact.text.md"} {
		if got, ok := drive.At(ctx).Lookup(name); ok {
			t.Errorf("%q is %v", name, got)
		}
	}
}

// C20
func TestLoopWithin(t *testing.T) {
	inner := &drive.Loop{Name: "inner", Outer: &drive.Loop{Name: "outer"}}
	for name, want := range map[string]bool{"inner": true, "outer": true, "other": false} {
		if got := inner.IsInside(name); got != want {
			t.Errorf("Within(%q) = %t", name, got)
		}
	}
	if (*drive.Loop)(nil).IsInside("inner") {
		t.Error("no loop is within nothing")
	}
}
