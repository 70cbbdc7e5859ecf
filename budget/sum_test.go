// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/refrain-dev/refrain/budget"
)

// sum asks for a sum in a goroutine of its own.
type sum struct {
	room budget.Reservation
	got  *float64
	err  error
	done bool
}

func askSum(t *testing.T, b *budget.Meter, most *float64) *sum {
	s := new(sum)
	go func() {
		room, got, err := b.ReserveSum(t.Context(), most)
		s.room, s.got, s.err, s.done = room, got, err, true
	}()
	synctest.Wait()
	return s
}

// What one program was told to spend is not told to the next, and is given back when it ends.
func TestSumsOfProgramsAtTheSameTime(t *testing.T) {
	for _, tt := range []struct {
		name  string
		most  *float64
		among int
		want  []float64 // at once, of the first programs
		after float64   // of the next one, when the first has spent 0.5
	}{
		{"each its part", nil, 3, []float64{2, 2, 2}, 1.5},
		{"all to the first", nil, 0, []float64{6}, 5.5},
		{"limits of their own", new(2.5), 3, []float64{2.5, 2.5}, 2.5},
		{"a limit above all", new(9.0), 3, []float64{6}, 5.5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				run := budget.New(budget.Limits{Cost: new(6.0)}, nil)
				branch := func() *budget.Meter { return run.Child(budget.Limits{}).Among(tt.among).Child(budget.Limits{}) }
				var all []*sum
				for i, want := range tt.want {
					s := askSum(t, branch(), tt.most)
					if !s.done || s.err != nil || *s.got != want {
						t.Fatalf("program %d was told %s, %v; want %v", i, show(s.got), s.err, want)
					}
					all = append(all, s)
				}
				next := askSum(t, branch(), tt.most)
				if next.done {
					t.Fatalf("one more was told %s, %v", show(next.got), next.err)
				}
				all[0].room.Commit(budget.Usage{Calls: 3, Cost: new(0.5)})
				synctest.Wait()
				if !next.done || next.err != nil || *next.got < tt.after-1e-8 || *next.got > tt.after {
					t.Fatalf("after the first it was told %s, %v; want %v", show(next.got), next.err, tt.after)
				}
				for _, s := range append(all[1:], next) {
					s.room.Release()
				}
				if left, used := *run.Remaining().Cost, run.Used(); left != 5.5 || used.Calls != 3 {
					t.Errorf("%v are left with %+v used", left, used)
				}
			})
		})
	}
}

func TestSumIsRefused(t *testing.T) {
	run := budget.New(budget.Limits{Cost: new(1.0)}, nil)
	run.Book(budget.Usage{Calls: 1, Cost: new(1.0)})
	if _, _, err := run.ReserveSum(t.Context(), nil); !errors.Is(err, budget.ErrExceeded) {
		t.Errorf("of a budget that is spent: %v", err)
	}
	free := budget.New(budget.Limits{Cost: new(0.0)}, nil)
	if _, got, err := free.ReserveSum(t.Context(), nil); err != nil || got == nil || *got != 0 {
		t.Errorf("of a budget of nothing: %s, %v", show(got), err)
	}
	calls := budget.New(budget.Limits{Calls: 1}, nil)
	room, got, err := calls.ReserveSum(t.Context(), new(2.0))
	if err != nil || *got != 2 {
		t.Fatalf("without a limit of cost: %s, %v", show(got), err)
	}
	if _, _, err := calls.ReserveSum(t.Context(), nil); !errors.Is(err, budget.ErrExceeded) {
		t.Errorf("a second call of one: %v", err)
	}
	room.Commit(budget.Usage{Calls: 4, Cost: new(7.0)})
	if u := calls.Used(); u.Calls != 4 || *u.Cost != 7 {
		t.Errorf("used %+v", u)
	}
}
