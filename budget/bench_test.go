// SPDX-License-Identifier: Apache-2.0

package budget_test

import (
	"testing"

	"github.com/refrain-dev/refrain/budget"
)

func chain(l budget.Limits, p budget.Prices) *budget.Meter {
	return budget.New(l, p).Child(l).Child(l)
}

var wide = budget.Limits{Calls: 1 << 40, Tokens: 1 << 50, Cost: new(1e8)}

func callOnce(b *budget.Meter) {
	room, err := b.Reserve(budget.Request{Model: "a", InputTokens: 900, OutputTokens: 4096, MinOutputTokens: 64})
	if err != nil {
		panic(err)
	}
	room.Commit(budget.Usage{InputTokens: 850, OutputTokens: 200})
}

// A call allocates nothing.
func TestCallsAllocateNothing(t *testing.T) {
	for name, b := range map[string]*budget.Meter{"no limits": chain(budget.Limits{}, nil), "all limits": chain(wide, prices)} {
		if n := testing.AllocsPerRun(1000, func() { callOnce(b) }); n != 0 {
			t.Errorf("%s: a call makes %v allocations", name, n)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	for _, tt := range []struct {
		name string
		*budget.Meter
	}{
		{"unlimited", new(budget.Meter)},
		{"chain of 3, calls", chain(budget.Limits{Calls: 1 << 40}, nil)},
		{"chain of 3, all", chain(wide, prices)},
	} {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				callOnce(tt.Meter)
			}
		})
	}
}

// Branches of one run meet at its root.
func BenchmarkCallInBranches(b *testing.B) {
	root := budget.New(wide, prices)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		own := root.Child(wide).Child(wide)
		for pb.Next() {
			callOnce(own)
		}
	})
}

func BenchmarkUsed(b *testing.B) {
	own := chain(wide, prices)
	callOnce(own)
	b.ReportAllocs()
	for b.Loop() {
		_ = own.Used()
	}
}
