// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// All signs, drawn signs and the binomial distribution agree.
func TestBySigns(t *testing.T) {
	binomial := func(n, minus int) (p float64) {
		for k := range minus + 1 {
			p += math.Exp(choose(n, k)) / math.Pow(2, float64(n))
		}
		return min(1, 2*p)
	}
	for _, tt := range []struct {
		n, minus int
		off      float64
	}{{1, 0, 1e-9}, {6, 0, 1e-9}, {7, 1, 1e-9}, {18, 4, 1e-9}, {30, 9, 0.01}, {100, 40, 0.01}} {
		s := &sample{}
		for i := range tt.n {
			s.sums = append(s.sums, 0.1)
			if i < tt.minus {
				s.sums[i] = -0.1
			}
		}
		if got, want := s.bySigns(), binomial(tt.n, tt.minus); math.Abs(got-want) > tt.off {
			t.Errorf("%d of %d: %v, want %v", tt.minus, tt.n, got, want)
		}
	}
	if got := (&sample{sums: []float64{3, 2, -1}}).bySigns(); got != 0.5 { // ±6 ±4 of 6 4 2 0 0 2 4 6
		t.Errorf("%v, want 0.5", got)
	}
}

// Two versions that are equally good, and differ fully in each case, are called better or worse in at most
// 5% of comparisons, and in 1% more by the luck of these draws, whether one looks once or may end early.
func TestOppositeAnswersOfEqualVersions(t *testing.T) {
	longtest.WithoutRace(t)
	r := rand.New(rand.NewPCG(3, 4))
	const draws = 2000
	for _, n := range []int{6, 7, 8, 9, 12, 21, 30, 60} {
		once, early := 0, 0
		for range draws {
			obs := make([]Observation, n)
			for i := range obs {
				a := float64(r.IntN(2))
				obs[i] = Observation{A: []float64{a}, B: []float64{1 - a}}
			}
			if v := Compare(obs, Options{}).Verdict; v == Better || v == Worse {
				once++
			}
			for _, look := range Looks(n) {
				if v := Compare(obs[:look.Cases], Options{Alpha: look.Alpha}).Verdict; v == Better || v == Worse {
					early++
					break
				}
			}
		}
		t.Logf("%d cases: %.1f%%, with an early end %.1f%%", n, 100*float64(once)/draws, 100*float64(early)/draws)
		if most := draws * 6 / 100; once > most || early > most {
			t.Errorf("%d cases: %d and %d of %d", n, once, early, draws)
		}
	}
}
