// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/budget"
)

func reserve(t *testing.T, b *budget.Meter, r budget.Request) *budget.Reservation {
	t.Helper()
	room, err := b.Reserve(r)
	if err != nil {
		t.Fatal(err)
	}
	return &room
}

// use makes a call under b.
func use(t *testing.T, b *budget.Meter, model string, in, out int64) {
	t.Helper()
	reserve(t, b, budget.Request{Model: model, InputTokens: in, OutputTokens: out}).Commit(budget.Usage{InputTokens: in, OutputTokens: out})
}

// refused demands that a call does not fit.
func refused(t *testing.T, b *budget.Meter, r budget.Request) *budget.ExceededError {
	t.Helper()
	_, err := b.Reserve(r)
	e, ok := errors.AsType[*budget.ExceededError](err)
	if !ok || !errors.Is(err, budget.ErrExceeded) {
		t.Fatalf("%+v: got error %v, want an *ExceededError", r, err)
	}
	return e
}

// LOOP 23: a call is let through if it fits in every budget, and only then, with
// as much output as fits. The calls here come one by one, against a model.
func TestReserveIsExact(t *testing.T) {
	type level struct {
		limits                     budget.Limits
		calls, tokens, billionths  int64 // used or reserved
		limitCalls, limitT, limitB int64
	}
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var b *budget.Meter
		var levels []*level
		for range 1 + rng.IntN(3) {
			l := &level{limitCalls: 1 << 40, limitT: 1 << 40, limitB: 1 << 60}
			if rng.IntN(2) == 0 {
				l.limits.Calls = 1 + rng.Int64N(9)
				l.limitCalls = l.limits.Calls
			}
			if rng.IntN(2) == 0 {
				l.limits.Tokens = 1 + rng.Int64N(2000)
				l.limitT = l.limits.Tokens
			}
			if rng.IntN(2) == 0 {
				l.limitB = rng.Int64N(20_000_000)
				l.limits.Cost = new(float64(l.limitB) / 1e9)
			}
			if levels = append(levels, l); b == nil {
				b = budget.New(l.limits, prices)
			} else {
				b = b.Child(l.limits)
			}
		}
		for range 12 {
			in, out := rng.Int64N(300), rng.Int64N(300)
			req := budget.Request{Model: "a", InputTokens: in, OutputTokens: out, MinOutputTokens: rng.Int64N(100)}
			least, want := out, int64(-1)
			if req.MinOutputTokens > 0 {
				least = min(out, req.MinOutputTokens)
			}
			for n := out; n >= least && want < 0; n-- {
				want = n
				for _, l := range levels {
					if l.calls+1 > l.limitCalls || l.tokens+in+n > l.limitT || l.billionths+3000*in+15000*n > l.limitB {
						want = -1
					}
				}
			}
			room, err := b.Reserve(req)
			if (err == nil) != (want >= 0) || err == nil && room.OutputTokens != want {
				t.Fatalf("seed %d: %+v: got %d tokens, %v; want %d", seed, req, room.OutputTokens, err, want)
			}
			if err != nil {
				continue
			}
			switch out := rng.Int64N(want + 1); rng.IntN(3) {
			case 0:
				want = out
				room.Commit(budget.Usage{InputTokens: in, OutputTokens: out})
			case 1:
				room.Release()
				continue
			}
			for _, l := range levels {
				l.calls++
				l.tokens += in + want
				l.billionths += 3000*in + 15000*want
			}
		}
	}
}

// LOOP 23: what a child uses counts above, and is bounded there too.
func TestChildSharesItsParentsBudget(t *testing.T) {
	run := budget.New(budget.Limits{Tokens: 1000}, nil)
	one, two := run.Child(budget.Limits{Tokens: 600}), run.Child(budget.Limits{})
	use(t, one, "x", 300, 100)
	refused(t, one, budget.Request{InputTokens: 201})
	use(t, two, "x", 500, 0)
	refused(t, one, budget.Request{InputTokens: 101})
	use(t, one, "x", 100, 0)
	for b, want := range map[*budget.Meter]budget.Usage{
		run: {Calls: 3, InputTokens: 900, OutputTokens: 100},
		one: {Calls: 2, InputTokens: 400, OutputTokens: 100},
		two: {Calls: 1, InputTokens: 500},
	} {
		if diff := cmp.Diff(want, b.Used()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(budget.Remaining{Tokens: new(int64(0))}, one.Remaining()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// LOOP 23: the zero value counts and lets everything through.
func TestZeroBudget(t *testing.T) {
	var b budget.Meter
	use(t, b.Child(budget.Limits{}), "x", 1<<40, 1)
	want := budget.Usage{Calls: 1, InputTokens: 1 << 40, OutputTokens: 1}
	if diff := cmp.Diff(want, b.Used()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if b.Metered() || b.Err() != nil {
		t.Error("it is limited")
	}
	if diff := cmp.Diff(budget.Remaining{}, b.Remaining()); diff != "" {
		t.Error(diff)
	}
}

// LOOP 23: an error says what is spent, on what, and what to do.
func TestExceededError(t *testing.T) {
	for _, tt := range []struct {
		name  string
		limit budget.Limits
		want  string
	}{
		{"", budget.Limits{Tokens: 10_000}, "budget of 10000 tokens is spent (9800 used, 500 asked): raise it with --budget-tokens, budget.tokens or agent.RunConfig.Budget"},
		{"refine", budget.Limits{Tokens: 10_000}, `budget of 10000 tokens of "refine" is spent (9800 used, 500 asked): raise its budget.tokens`},
		{"", budget.Limits{Calls: 1}, "budget of 1 calls is spent (1 used, 1 asked): raise it with --budget-calls, budget.calls or agent.RunConfig.Budget"},
		{"refine", budget.Limits{Cost: new(0.03)}, `budget of 0.03 (cost) of "refine" is spent (0.0294 used, 0.0015 asked): raise its budget.cost`},
	} {
		b := budget.New(budget.Limits{}, prices).Child(tt.limit).Named(tt.name)
		use(t, b, "a", 9800, 0)
		if err := refused(t, b, budget.Request{Model: "a", InputTokens: 500}); err.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
	b := budget.New(budget.Limits{Tokens: 1000}, nil)
	defer b.Hold(0.1).Release()
	defer reserve(t, b, budget.Request{InputTokens: 500}).Release()
	want := "budget of 1000 tokens is spent (0 used, 500 reserved by running calls, 100 kept for the end, 401 asked): raise it with --budget-tokens, budget.tokens or agent.RunConfig.Budget"
	if err := refused(t, b, budget.Request{InputTokens: 401}); err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	want = "budget of 1000 tokens is too small for the call (0 used, 500 reserved by running calls, 100 kept for the end, 1001 asked): raise it with --budget-tokens, budget.tokens or agent.RunConfig.Budget"
	if err := refused(t, b, budget.Request{InputTokens: 1001}); err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// LOOP 23: limits below zero, as of a subtraction, let nothing through.
func TestNegativeLimitsLetNothingThrough(t *testing.T) {
	for _, l := range []budget.Limits{{Calls: -1}, {Tokens: -1 << 63}, {Cost: new(-0.5)}} {
		refused(t, budget.New(l, prices), budget.Request{Model: "a", InputTokens: 1})
	}
}

// LOOP 23: a call that used more than was reserved counts in full; the next one
// does not fit.
func TestOverrunIsBooked(t *testing.T) {
	b := budget.New(budget.Limits{Tokens: 100}, nil)
	reserve(t, b, budget.Request{InputTokens: 10, OutputTokens: 50}).Commit(budget.Usage{InputTokens: 10, OutputTokens: 300})
	if got := b.Used().Tokens(); got != 310 {
		t.Errorf("used %d tokens", got)
	}
	refused(t, b, budget.Request{InputTokens: 1})
	if err := b.Err(); !errors.Is(err, budget.ErrExceeded) {
		t.Errorf("got %v", err)
	}
}

// LOOP 23: whoever is about to begin something can ask whether there is room.
func TestErrSaysWhetherThereIsRoom(t *testing.T) {
	run := budget.New(budget.Limits{Tokens: 1000}, nil)
	b := run.Child(budget.Limits{Calls: 4})
	if err := b.Err(); err != nil {
		t.Fatal(err)
	}
	hold := b.Hold(0.5)
	refused(t, b, budget.Request{InputTokens: 600})
	if err := b.Err(); err == nil {
		t.Error("a call like the one refused would be refused")
	}
	if hold.Release(); b.Err() != nil {
		t.Errorf("there is room again: %v", b.Err())
	}
	refused(t, b, budget.Request{InputTokens: 1001})
	use(t, b, "x", 10, 0)
	if err := b.Err(); err != nil {
		t.Errorf("a smaller call went through: %v", err)
	}
	for range 3 {
		use(t, b, "x", 1, 0)
	}
	if err := b.Err(); err == nil || run.Err() != nil {
		t.Errorf("four calls were made: %v; above: %v", err, run.Err())
	}
}

// LOOP 23: estimates are needed where tokens or cost are limited, here or above.
func TestMetered(t *testing.T) {
	for _, l := range []budget.Limits{{Tokens: 1}, {Cost: new(0.0)}} {
		if b := budget.New(l, nil); !b.Metered() || !b.Child(budget.Limits{}).Metered() || !b.Hold(0).Budget().Metered() {
			t.Errorf("%+v does not ask for estimates", l)
		}
	}
	b := budget.New(budget.Limits{Calls: 1}, prices)
	if b.Metered() || !b.Child(budget.Limits{Tokens: 1}).Metered() || b.Metered() {
		t.Error("a budget is metered for its own limits and for those above")
	}
}

// LOOP 31: what a run used before it was resumed counts against its limits.
func TestBook(t *testing.T) {
	b := budget.New(budget.Limits{Cost: new(1.0)}, prices)
	b.Book(budget.Usage{Calls: 3, InputTokens: 10, Cost: new(0.75)})
	if diff := cmp.Diff(budget.Remaining{Cost: new(0.25)}, b.Remaining()); diff != "" {
		t.Error(diff)
	}
	b.Book(budget.Usage{Calls: 1, InputTokens: 10})
	_, err := b.Reserve(budget.Request{Model: "a"})
	if _, ok := errors.AsType[*budget.UnknownPriceError](err); !ok {
		t.Errorf("nobody knows what was spent: %v", err)
	}
}

// LOOP 23: what is booked ahead is booked again in the budgets below, and counts once.
func TestBookAhead(t *testing.T) {
	run := budget.New(budget.Limits{Calls: 10, Tokens: 1000}, nil)
	loop := run.Child(budget.Limits{})
	one, two := loop.Child(budget.Limits{}), loop.Child(budget.Limits{})
	loop.BookAhead(budget.Usage{Calls: 8, InputTokens: 700, Estimated: true, EstimatedTokens: 100})
	one.Book(budget.Usage{Calls: 3, InputTokens: 300})
	use(t, two, "x", 100, 0)
	refused(t, one, budget.Request{InputTokens: 201})
	two.Book(budget.Usage{Calls: 6, InputTokens: 500}) // one call and 100 tokens more than ahead
	for name, b := range map[string]*budget.Meter{"loop": loop, "run": run} {
		if u := b.Used(); u.Calls != 10 || u.InputTokens != 900 || u.EstimatedTokens != 100 {
			t.Errorf("the %s has used %+v", name, u)
		}
	}
	if u := one.Used(); u.Calls != 3 || u.InputTokens != 300 {
		t.Errorf("one has used %+v", u)
	}
}

// What a budget has booked ahead can be booked again beside it, when that budget is no longer in use.
func TestEndAhead(t *testing.T) {
	run := budget.New(budget.Limits{Calls: 10}, nil)
	loop := run.Child(budget.Limits{})
	slice := loop.Child(budget.Limits{Calls: 3})
	slice.BookAhead(budget.Usage{Calls: 7})
	slice.Child(budget.Limits{}).Book(budget.Usage{Calls: 3})
	slice.EndAhead()
	slice.EndAhead()
	own := loop.Child(budget.Limits{})
	own.Book(budget.Usage{Calls: 4})
	use(t, own, "x", 100, 0)
	for name, want := range map[string]struct {
		b     *budget.Meter
		calls int64
	}{"run": {run, 8}, "loop": {loop, 8}, "own": {own, 5}} {
		if u := want.b.Used(); u.Calls != want.calls {
			t.Errorf("the %s has used %+v, want %d calls", name, u, want.calls)
		}
	}
}

// A budget that runs share has one budget for each run. What a resumed run books again is counted there already; what it
// used in another process is not.
func TestRunsOfASharedBudget(t *testing.T) {
	all := budget.New(budget.Limits{Calls: 10}, nil)
	one := all.Run("one")
	if all.Run("one") != one || all.Run("two") == one {
		t.Error("the budget of a run is not its own")
	}
	use(t, one.Child(budget.Limits{}), "x", 100, 10)
	use(t, one.Child(budget.Limits{}), "x", 100, 10)
	earlier := budget.Usage{Calls: 3, InputTokens: 300, OutputTokens: 30} // the third call in another process
	one.Recount(earlier)
	again := one.Child(budget.Limits{})
	again.BookAhead(earlier)
	again.Child(budget.Limits{}).Book(earlier)
	use(t, again, "x", 50, 0)
	for name, b := range map[string]*budget.Meter{"the run": one, "all": all, "the resumed part": again} {
		if u := b.Used(); u.Calls != 4 || u.InputTokens != 350 || u.OutputTokens != 30 {
			t.Errorf("%s used %+v", name, u)
		}
	}
}
