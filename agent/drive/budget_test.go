// SPDX-License-Identifier: Apache-2.0

package drive_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
)

// caller is an agent that makes calls of so many tokens, and notes the errors.
func caller(t testing.TB, name string, errs map[string]error, tokens ...int64) agent.Agent {
	t.Helper()
	return custom(t, name, func(ctx agent.InvocationContext, _ yield) {
		for _, n := range tokens {
			room, err := drive.At(ctx).Budget().Reserve(budget.Request{Model: "m", InputTokens: n})
			if err != nil {
				errs[name] = err
				return
			}
			room.Commit(budget.Usage{InputTokens: n})
		}
	})
}

func withBudget(ctx context.Context, l budget.Limits) agent.InvocationContext {
	return drive.NewInvocation(ctx, drive.Invocation{
		ID: "e-1", Session: session.NewView(session.ViewConfig{}),
		RunConfig: &agent.RunConfig{Budget: &l, Prices: budget.Prices{"m": {Input: 2, Output: 2}}},
	})
}

// LOOP 23, F10: all agents of a run share its budget, under whatever context.
func TestBudgetIsShared(t *testing.T) {
	errs := make(map[string]error)
	one, two, three := caller(t, "one", errs, 400), caller(t, "two", errs, 400), caller(t, "three", errs, 300)
	inner := custom(t, "inner", func(ctx agent.InvocationContext, yield yield) {
		drive.Run(ctx.WithContext(context.WithValue(ctx, t, 1)), two)(yield)
	}, two)
	root := custom(t, "root", func(ctx agent.InvocationContext, yield yield) {
		drive.Run(ctx, one)(yield)
		drive.Run(foreignContext{ctx}, inner)(yield)
		drive.Run(agent.NewCallbackContext(ctx, nil), three)(yield)
	}, one, inner, three)
	ctx := withBudget(t.Context(), budget.Limits{Tokens: 1000})
	if _, all := collect(drive.Run(ctx, root)); len(all) > 0 {
		t.Fatal(all)
	}
	if len(errs) != 1 || !errors.Is(errs["three"], budget.ErrExceeded) {
		t.Errorf("three alone is beyond the budget: %v", errs)
	}
	want := budget.Usage{Calls: 2, InputTokens: 800, Cost: new(0.0016)}
	if diff := cmp.Diff(want, drive.At(ctx).Budget().Used()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// LOOP 23: a step under a budget of its own counts in it, with all below, each
// time that it runs.
func TestStepUnderABudgetOfItsOwn(t *testing.T) {
	errs := make(map[string]error)
	leaf := caller(t, "leaf", errs, 100)
	sub := custom(t, "sub", func(ctx agent.InvocationContext, yield yield) { drive.Run(foreignContext{ctx}, leaf)(yield) }, leaf)
	ctx := withBudget(t.Context(), budget.Limits{Calls: 10})
	run := drive.At(ctx).Budget()
	own := run.Child(budget.Limits{Tokens: 250}).Named("refine")
	step := drive.NewStep(ctx, drive.StepConfig{Agent: sub, Budget: own})
	for i := range 3 {
		before := own.Used()
		if res := step.Run(func(*session.Event) bool { return true }); res.Err != nil {
			t.Fatal(res.Err)
		}
		if got := own.Used().Sub(before).InputTokens; i < 2 && got != 100 {
			t.Errorf("run %d used %d tokens", i+1, got)
		}
	}
	if e, ok := errors.AsType[*budget.ExceededError](errs["leaf"]); !ok || e.Budget != "refine" {
		t.Errorf("got %v", errs["leaf"])
	}
	if diff := cmp.Diff(run.Used(), own.Used()); diff != "" || own.Used().Calls != 2 {
		t.Errorf("used %+v; (-run +own):\n%s", own.Used(), diff)
	}
}

// LOOP 23: there is always a budget.
func TestBudgetOfAnyContext(t *testing.T) {
	for name, ctx := range map[string]agent.InvocationContext{
		"a run":         invocation(t.Context()),
		"foreign":       foreignContext{invocation(t.Context())},
		"outside a run": strangeContext{},
	} {
		b := drive.At(ctx).Budget()
		if b == nil {
			t.Fatalf("%s: none", name)
		}
		if room, err := b.Reserve(budget.Request{InputTokens: 1 << 40}); err != nil {
			t.Errorf("%s: %v", name, err)
		} else {
			room.Release()
		}
	}
}

// strangeContext is not one of ours, nor around one.
type strangeContext struct{ agent.InvocationContext }

func (strangeContext) Value(any) any { return nil }
