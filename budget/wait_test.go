// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/refrain-dev/refrain/budget"
)

// waiting is a call that asks for room in a goroutine of its own.
type waiting struct {
	done atomic.Bool // the rest is set before
	room budget.Reservation
	err  error
	took time.Duration
}

func wait(ctx context.Context, b *budget.Meter, r budget.Request) *waiting {
	w := new(waiting)
	go func() {
		began := time.Now()
		w.room, w.err = b.ReserveWait(ctx, r)
		w.took = time.Since(began)
		w.done.Store(true)
	}()
	synctest.Wait()
	return w
}

// LOOP 23: a reservation that would fit but for calls under way waits for them, and
// is not cut down by them.
func TestReservationWaitsForCallsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := budget.New(budget.Limits{Tokens: 1000}, nil)
		one, two := run.Child(budget.Limits{}), run.Child(budget.Limits{Tokens: 900})
		big := budget.Request{InputTokens: 100, OutputTokens: 500, MinOutputTokens: 10}
		first := reserve(t, one, big)
		w := wait(t.Context(), two, big)
		if w.done.Load() {
			t.Fatalf("it was reserved at once: %d tokens, %v", w.room.OutputTokens, w.err)
		}
		first.Commit(budget.Usage{InputTokens: 100, OutputTokens: 1})
		synctest.Wait()
		if !w.done.Load() || w.err != nil || w.room.OutputTokens != 500 {
			t.Fatalf("%v, %v: %d tokens", w.done.Load(), w.err, w.room.OutputTokens)
		}
		w.room.Commit(budget.Usage{InputTokens: 100, OutputTokens: 300})
		if got := run.Used().Tokens(); got != 501 {
			t.Errorf("%d tokens were used", got)
		}
	})
}

// LOOP 23: a call that does not fit with nothing under way is refused at once; where
// nothing is under way it is cut down to what there is.
func TestReservationThatCannotFitDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := budget.New(budget.Limits{Tokens: 1000, Calls: 3}, nil)
		use(t, run, "x", 600, 0)
		under := reserve(t, run, budget.Request{InputTokens: 300})
		if w := wait(t.Context(), run, budget.Request{InputTokens: 401}); !w.done.Load() || !errors.Is(w.err, budget.ErrExceeded) {
			t.Errorf("got %+v, want it refused", w)
		}
		under.Commit(budget.Usage{InputTokens: 200})
		cut := wait(t.Context(), run, budget.Request{InputTokens: 50, OutputTokens: 500, MinOutputTokens: 10})
		if !cut.done.Load() || cut.room.OutputTokens != 150 {
			t.Errorf("got %+v, want 150 tokens of output", cut)
		}
		// That a call was made counts, however it ends.
		if w := wait(t.Context(), run, budget.Request{}); !w.done.Load() || !errors.Is(w.err, budget.ErrExceeded) {
			t.Errorf("got %+v, want the fourth call refused", w)
		}
	})
}

// LOOP 23: a wait ends with its context.
func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := budget.New(budget.Limits{Tokens: 1000}, nil)
		under := reserve(t, run, budget.Request{InputTokens: 800})
		cause := errors.New("the step's time is over")
		ctx, cancel := context.WithCancelCause(t.Context())
		w := wait(ctx, run, budget.Request{InputTokens: 800})
		cancel(cause)
		synctest.Wait()
		if !w.done.Load() || !errors.Is(w.err, cause) {
			t.Errorf("got %+v", w)
		}
		under.Release()
		if left := *run.Remaining().Tokens; left != 1000 {
			t.Errorf("%d tokens are left", left)
		}
	})
}

// LOOP 23: a call that may never end is settled by what is known of it, and holds up
// nobody; what it turns out to have used takes the place of that.
func TestSettledCallIsBooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := budget.New(budget.Limits{Tokens: 1000}, prices)
		hung := reserve(t, run, budget.Request{Model: "a", InputTokens: 100, OutputTokens: 800})
		w := wait(t.Context(), run, budget.Request{Model: "a", InputTokens: 100, OutputTokens: 700})
		hung.Settle(budget.Usage{InputTokens: 100, OutputTokens: 50, Estimated: true})
		synctest.Wait()
		if !w.done.Load() || w.err != nil {
			t.Fatalf("got %+v, want room when the other is settled", w)
		}
		w.room.Commit(budget.Usage{InputTokens: 100, OutputTokens: 100})
		if u := run.Used(); u.Tokens() != 350 || u.Calls != 2 || !u.Estimated || u.EstimatedTokens != 150 {
			t.Errorf("used %+v", u)
		}
		if e := refused(t, run, budget.Request{Model: "a", InputTokens: 651}); e.Used != 350 || e.Estimated != 150 || e.Reserved != 0 {
			t.Errorf("the error tells %+v", e)
		}
		hung.Commit(budget.Usage{InputTokens: 90, OutputTokens: 10})
		hung.Settle(budget.Usage{InputTokens: 1e6})
		if u := run.Used(); u.Tokens() != 300 || u.Calls != 2 || u.Estimated || u.Cost == nil || *u.Cost != 0.00222 {
			t.Errorf("used %+v, cost %s", u, show(u.Cost))
		}
	})
}

// LOOP 23: what a waiting call waits for may be itself: a call whose caller is busy
// is not waited for without end.
func TestParkedCallIsNotWaitedForWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := budget.New(budget.Limits{Tokens: 1000}, nil)
		outer := reserve(t, run, budget.Request{InputTokens: 800})
		outer.Park(true)
		w := wait(t.Context(), run, budget.Request{InputTokens: 800})
		if w.done.Load() {
			t.Fatal("it did not wait: the other's event may just be stored")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if e, ok := errors.AsType[*budget.ExceededError](w.err); !ok || e.Reserved != 800 || w.took > 15*time.Second {
			t.Errorf("got %v after %v, want it refused", w.err, w.took)
		}
		again := wait(t.Context(), run, budget.Request{InputTokens: 800})
		outer.Park(false) // now it goes on, and may take its time
		time.Sleep(time.Minute)
		outer.Commit(budget.Usage{InputTokens: 10})
		synctest.Wait()
		if !again.done.Load() || again.err != nil {
			t.Errorf("got %+v", again)
		}
	})
}

// LOOP 23: whatever branches reserve, settle, park and give up, each gets room or is
// refused because nothing under way is in its way; no limit is exceeded by what was
// reserved, and nothing stays.
func TestBranchesThatWait(t *testing.T) {
	for seed := range uint64(300) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 8))
			limit := 1 + rng.Int64N(3000)
			run := budget.New(budget.Limits{Tokens: limit, Cost: new(float64(limit) * 9e-6)}, prices)
			var wg sync.WaitGroup
			for i := range 2 + rng.IntN(5) {
				rng, b := rand.New(rand.NewPCG(seed, uint64(i))), run.Child(budget.Limits{})
				wg.Go(func() {
					for range 5 {
						room, err := b.ReserveWait(t.Context(), budget.Request{
							Model: "a", InputTokens: rng.Int64N(300), OutputTokens: 1 + rng.Int64N(600), MinOutputTokens: rng.Int64N(50),
						})
						if err != nil {
							return
						}
						room.Park(rng.IntN(3) == 0)
						time.Sleep(time.Duration(rng.IntN(30)) * time.Second)
						used := budget.Usage{InputTokens: room.InputTokens, OutputTokens: rng.Int64N(room.OutputTokens + 1)}
						switch rng.IntN(3) {
						case 0:
							room.Settle(room.Estimate())
							time.Sleep(time.Duration(rng.IntN(30)) * time.Second)
						case 1:
							room.Release()
						}
						room.Commit(used)
						if got := run.Used().Tokens(); got > limit {
							t.Errorf("seed %d: %d tokens of %d", seed, got, limit)
						}
					}
				})
			}
			wg.Wait()
			if left := *run.Remaining().Tokens; left != limit-run.Used().Tokens() {
				t.Errorf("seed %d: %d tokens are left of %d, with %d used", seed, left, limit, run.Used().Tokens())
			}
		})
	}
}
