// SPDX-License-Identifier: Apache-2.0

package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/refrain-dev/refrain/internal/eval/stats"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// world draws cases that pass with a probability of their own, of which most pass nearly always or nearly never: Beta(a, b).
type world struct {
	*rand.Rand
	a, b float64
}

// usual is the world of the documentation: on average, two of three runs pass.
func usual(seed uint64) world { return world{rand.New(rand.NewPCG(seed, 1)), 1.2, 0.6} }

// rate draws the probability of a case by Jöhnk's method.
func (w world) rate() float64 {
	for {
		x, y := math.Pow(w.Float64(), 1/w.a), math.Pow(w.Float64(), 1/w.b)
		if 0 < x+y && x+y <= 1 {
			return x / (x + y)
		}
	}
}

// runs draws n runs.
func (w world) runs(n int, rate float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		if w.Float64() < rate {
			values[i] = 1
		}
	}
	return values
}

// share returns in how many of the draws something holds.
func share(draws int, holds func() bool) float64 {
	n := 0
	for range draws {
		if holds() {
			n++
		}
	}
	return float64(n) / float64(draws)
}

func decided(c stats.Comparison) bool { return c.Verdict != stats.Undecided }

// Equal versions get a false verdict in at most 5% of the comparisons, and in 1% more by the luck of these draws.
func TestFalseVerdicts(t *testing.T) {
	longtest.WithoutRace(t)
	for _, repeats := range []int{1, 3} {
		for _, n := range []int{5, 8, 12, 30} {
			w := usual(uint64(n))
			got := share(2000, func() bool {
				obs := make([]stats.Observation, n)
				for i := range obs {
					rate := w.rate()
					obs[i] = stats.Observation{A: w.runs(repeats, rate), B: w.runs(repeats, rate)}
				}
				return decided(stats.Compare(obs, stats.Options{}))
			})
			if got > 0.06 || n < stats.Least && got > 0 || n == 30 && got < 0.01 {
				t.Errorf("%d cases, %d repeats: %.1f%% false verdicts", n, repeats, 100*got)
			}
		}
	}
}

// The same with groups whose cases behave alike, of equal and of very different sizes.
func TestFalseVerdictsWithGroups(t *testing.T) {
	longtest.WithoutRace(t)
	for _, sizes := range [][]int{
		{5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, {20, 2, 2, 2, 2, 2, 2, 2, 2, 2}, {8, 7, 6, 5, 4, 3, 2, 1}, {10, 10, 10, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
	} {
		w := usual(uint64(len(sizes)))
		ignored := 0.0
		got := share(1500, func() bool {
			var obs, alone []stats.Observation
			for g, size := range sizes {
				a, b := w.rate(), w.rate()
				for range size {
					o := stats.Observation{A: w.runs(3, a), B: w.runs(3, b)}
					alone = append(alone, o)
					o.Group = fmt.Sprint("g", g)
					obs = append(obs, o)
				}
			}
			if decided(stats.Compare(alone, stats.Options{})) {
				ignored++
			}
			return decided(stats.Compare(obs, stats.Options{}))
		})
		if got > 0.06 {
			t.Errorf("groups of %v: %.1f%% false verdicts", sizes, 100*got)
		}
		if ignored/1500 < 0.2 {
			t.Errorf("groups of %v: without groups, only %.1f%% false verdicts: the draws show nothing", sizes, 100*ignored/1500)
		}
	}
}

// Ending at the first look that decides keeps to the same limit, and finds a true difference early.
func TestEarlyStop(t *testing.T) {
	longtest.WithoutRace(t)
	for _, n := range []int{10, 20, 60} {
		w := usual(uint64(n))
		draws, plain := 1500, 0.0
		got := share(draws, func() bool {
			obs := make([]stats.Observation, n)
			for i := range obs {
				rate := w.rate()
				obs[i] = stats.Observation{A: w.runs(3, rate), B: w.runs(3, rate)}
			}
			naive := false
			for _, l := range stats.Looks(n) {
				at5 := stats.Compare(obs[:l.Cases], stats.Options{})
				naive = naive || decided(at5)
				if decided(at5) && decided(stats.Compare(obs[:l.Cases], stats.Options{Alpha: l.Alpha})) { // which is stricter
					plain++
					return true
				}
			}
			if naive {
				plain++
			}
			return false
		})
		if got > 0.06 {
			t.Errorf("%d cases: %.1f%% false verdicts", n, 100*got)
		}
		if plain /= float64(draws); n == 60 && plain < 0.07 {
			t.Errorf("five looks at 5%% each have only %.1f%% false verdicts: the draws show nothing", 100*plain)
		}
	}
	w := usual(1)
	cases := 0
	got := share(300, func() bool {
		var obs []stats.Observation
		for range 60 {
			rate := w.rate()
			obs = append(obs, stats.Observation{A: w.runs(3, lift(rate)), B: w.runs(3, rate)})
		}
		for _, l := range stats.Looks(60) {
			if c := stats.Compare(obs[:l.Cases], stats.Options{Alpha: l.Alpha}); decided(c) {
				cases += l.Cases
				return c.Verdict == stats.Better
			}
		}
		cases += 60
		return false
	})
	if got < 0.97 || cases > 300*40 {
		t.Errorf("a difference of 0.2 is found in %.1f%%, with %d cases on average", 100*got, cases/300)
	}
}

// lift makes a case pass 5.75 times as likely in odds, which is 0.2 on average in the usual world.
func lift(rate float64) float64 { return 5.75 * rate / (1 + 4.75*rate) }

func TestPower(t *testing.T) {
	w := usual(21)
	difference, reach := 0.0, 0.0
	got := share(1000, func() bool {
		obs := make([]stats.Observation, 21)
		for i := range obs {
			rate := w.rate()
			difference += (lift(rate) - rate) / 21
			obs[i] = stats.Observation{A: w.runs(3, lift(rate)), B: w.runs(3, rate)}
		}
		c := stats.Compare(obs, stats.Options{})
		reach += c.Detectable() / 1000
		return c.Verdict == stats.Better
	})
	if difference /= 1000; math.Abs(difference-0.2) > 0.005 {
		t.Errorf("the draws differ by %.3f", difference)
	}
	if got < 0.75 {
		t.Errorf("21 cases with 3 repeats find a difference of 0.2 in %.1f%%", 100*got)
	}
	if math.Abs(reach-0.2) > 0.03 {
		t.Errorf("they say that they see %.3f", reach)
	}
}

// Intervals contain the truth in 95% of the draws or more, also where nearly all cases pass, or none.
func TestCoverage(t *testing.T) {
	longtest.WithoutRace(t)
	for _, ab := range [][2]float64{{1.2, 0.6}, {9, 0.5}, {0.3, 0.3}, {0.5, 9}} {
		for _, n := range []int{5, 12, 30} {
			w := world{rand.New(rand.NewPCG(uint64(n), 7)), ab[0], ab[1]}
			truth := ab[0] / (ab[0] + ab[1])
			difference, draws := 0, 300
			got := share(draws, func() bool {
				obs := make([]stats.Observation, n)
				for i := range obs {
					obs[i] = stats.Observation{A: w.runs(3, w.rate()), B: w.runs(3, w.rate())}
				}
				if c := stats.Compare(obs, stats.Options{}); c.Low <= 0 && 0 <= c.High {
					difference++
				}
				e := stats.Mean(obs, stats.Options{})
				return e.Low <= truth && truth <= e.High
			})
			if got < 0.93 {
				t.Errorf("%d cases of Beta%v: the mean's interval contains it in %.1f%%", n, ab, 100*got)
			}
			if got := float64(difference) / float64(draws); got < 0.93 {
				t.Errorf("%d cases of Beta%v: the difference's interval contains 0 in %.1f%%", n, ab, 100*got)
			}
		}
	}
}

// A version against itself has as many better and worse cases as is said.
func TestChanceIsTheNumberOfCasesThatMove(t *testing.T) {
	for repeats, want := range map[int]float64{1: 4.3, 3: 7} { // of 30 cases: the documentation
		w := usual(3)
		better, worse, chance := 0.0, 0.0, 0.0
		for range 500 {
			obs := make([]stats.Observation, 30)
			for i := range obs {
				rate := w.rate()
				obs[i] = stats.Observation{A: w.runs(repeats, rate), B: w.runs(repeats, rate)}
			}
			c := stats.Compare(obs, stats.Options{})
			better, worse, chance = better+float64(c.Better)/500, worse+float64(c.Worse)/500, chance+c.Chance/500
		}
		if math.Abs(better-want) > 0.3 || math.Abs(worse-want) > 0.3 || math.Abs(chance-(better+worse)/2) > 0.1 {
			t.Errorf("%d repeats: %.2f better, %.2f worse, %.2f by chance, want %v", repeats, better, worse, chance, want)
		}
	}
}

func TestManyCases(t *testing.T) {
	w := usual(9)
	obs := make([]stats.Observation, 20_000)
	for i := range obs {
		rate := w.rate()
		obs[i] = stats.Observation{Group: fmt.Sprint(i / 2), A: w.runs(2, lift(rate)), B: w.runs(2, rate)}
	}
	c := stats.Compare(obs, stats.Options{})
	if c.Verdict != stats.Better || c.High-c.Low > 0.015 || c.Units != 10_000 || c.Needed(0.2) < 20 || c.Needed(0.2) > 60 {
		t.Errorf("%s %v … %v, %d units, a difference of 0.2 takes %d cases", c.Verdict, c.Low, c.High, c.Units, c.Needed(0.2))
	}
}

// Versions that differ by the margin are called the same in at most 5%, also where few cases differ, all in one direction.
func TestFalseSame(t *testing.T) {
	longtest.WithoutRace(t)
	for _, tt := range []struct {
		margin float64
		n      int
	}{{0.02, 200}, {0.05, 60}, {0.05, 100}, {0.1, 60}, {0.1, 100}, {0.2, 40}} {
		w := usual(uint64(tt.n))
		covered, draws := 0, 1000
		got := share(draws, func() bool {
			obs := make([]stats.Observation, tt.n)
			for i := range obs {
				obs[i] = stats.Observation{A: w.runs(1, tt.margin), B: []float64{0}}
			}
			c := stats.Compare(obs, stats.Options{Margin: tt.margin})
			if c.Low <= tt.margin && tt.margin <= c.High {
				covered++
			}
			return c.Verdict == stats.Same
		})
		if covered := float64(covered) / float64(draws); got > 0.06 || covered < 0.94 {
			t.Errorf("margin %v, %d cases: %.1f%% are the same, and %.1f%% of the intervals contain it", tt.margin, tt.n, 100*got, 100*covered)
		}
	}
}
