// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/budget"
)

// LOOP 17: a share of every limit is kept for the finalizer, at least one call.
func TestHoldKeepsAShare(t *testing.T) {
	for _, tt := range []struct {
		calls, tokens int64 // limits
		share         float64
		wantC, wantT  int64 // what is left to others
	}{
		{100, 1000, 0.1, 90, 900},
		{5, 1001, 0.1, 4, 900},
		{2, 1, 0.1, 1, 1},
		{1, 10, 0.1, 1, 9}, // the last call is kept for nobody
		{10, 10, 0, 10, 10},
		{10, 10, 0.75, 2, 2},
		{10, 10, 1, 0, 0},
		{10, 10, 7, 0, 0},
	} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			b := budget.New(budget.Limits{Calls: tt.calls, Tokens: tt.tokens, Cost: new(float64(tt.tokens))}, prices)
			h := b.Hold(tt.share)
			want := budget.Remaining{Calls: new(tt.wantC), Tokens: new(tt.wantT)}
			got := b.Remaining()
			got.Cost = nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			h.Release()
			h.Release()
			want = budget.Remaining{Calls: new(tt.calls), Tokens: new(tt.tokens), Cost: new(float64(tt.tokens))}
			if diff := cmp.Diff(want, b.Remaining()); diff != "" {
				t.Errorf("when it is given back (-want +got):\n%s", diff)
			}
		})
	}
}

// LOOP 17, LOOP 23: a loop keeps its share of the budgets above it too, so that
// branches at its side cannot take what its finalizer needs; nor can they take
// it in the moment when the loop ends.
func TestOnlyTheLastCallFindsRoomInAHold(t *testing.T) {
	run := budget.New(budget.Limits{Calls: 10, Tokens: 1000}, nil)
	loop, branch := run.Child(budget.Limits{}), run.Child(budget.Limits{})
	hold := loop.Hold(0.2)
	for range 8 {
		use(t, branch, "x", 100, 0)
	}
	refused(t, branch, budget.Request{})
	refused(t, loop, budget.Request{})
	last := hold.Budget().Child(budget.Limits{}) // the finalizer may be an agent with others under it
	use(t, last, "x", 50, 0)
	refused(t, branch, budget.Request{})
	use(t, last, "x", 150, 0)
	refused(t, last, budget.Request{})
	hold.Release()
	refused(t, branch, budget.Request{})
	if got := loop.Used(); got.Calls != 2 || got.InputTokens != 200 {
		t.Errorf("the loop has used %+v", got)
	}
}

// LOOP 17: a finalizer may itself be a loop with a finalizer.
func TestHoldWithinAHold(t *testing.T) {
	run := budget.New(budget.Limits{Calls: 100}, nil)
	outer := run.Hold(0.5) // 50
	for range 50 {
		use(t, run, "x", 0, 0)
	}
	refused(t, run, budget.Request{})
	inner := outer.Budget().Child(budget.Limits{}).Hold(0.1) // 10 of them
	for range 40 {
		use(t, outer.Budget(), "x", 0, 0)
	}
	refused(t, outer.Budget(), budget.Request{})
	for range 10 {
		use(t, inner.Budget(), "x", 0, 0)
	}
	refused(t, inner.Budget(), budget.Request{})
	inner.Release()
	outer.Release()
	refused(t, run, budget.Request{})
}

// LOOP 17: many loops at one time do not keep everything among them.
func TestHoldsLeaveRoom(t *testing.T) {
	run := budget.New(budget.Limits{Calls: 8, Tokens: 1000}, nil)
	for i := range 50 {
		defer run.Hold(0.3).Release()
		if left := *run.Remaining().Tokens; i < 5 && left != []int64{700, 400, 200, 100, 50}[i] {
			t.Errorf("with %d loops %d tokens are left to others", i+1, left)
		}
	}
	use(t, run, "x", 1, 0)
}
