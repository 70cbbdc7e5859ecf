// SPDX-License-Identifier: Apache-2.0

package stats_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/refrain-dev/refrain/internal/eval/stats"
)

// pairs makes cases with one value on each side.
func pairs(a, b []float64) []stats.Observation {
	obs := make([]stats.Observation, len(a))
	for i := range a {
		obs[i] = stats.Observation{Case: fmt.Sprint("case-", i+1), A: a[i : i+1], B: b[i : i+1]}
	}
	return obs
}

// same makes n cases with the given values.
func same(n int, a, b []float64) []stats.Observation {
	obs := make([]stats.Observation, n)
	for i := range obs {
		obs[i] = stats.Observation{A: a, B: b}
	}
	return obs
}

func near(got, want float64) bool {
	return got == want || math.Abs(got-want) <= 1e-6*max(1, math.Abs(want)) || math.IsNaN(got) && math.IsNaN(want)
}

func ExampleCompare() {
	old := []float64{0.2, 0.4, 0.4, 0.5, 0.6, 0.6, 0.8, 0.7}
	new := []float64{0.4, 0.5, 0.7, 0.5, 0.9, 0.8, 0.9, 0.8}
	c := stats.Compare(pairs(new, old), stats.Options{})
	fmt.Printf("%s: %+.2f (%+.2f … %+.2f), %d better, %d worse\n", c.Verdict, c.Difference, c.Low, c.High, c.Better, c.Worse)
	fmt.Printf("sees a difference of %.2f; 0.05 takes %d cases\n", c.Detectable(), c.Needed(0.05))
	// Output:
	// better: +0.16 (+0.07 … +0.25), 7 better, 0 worse
	// sees a difference of 0.12; 0.05 takes 38 cases
}

// Student's own table of sleep, 1908: the interval that every textbook has for it.
func TestPairedInterval(t *testing.T) {
	a := []float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	b := []float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0, 2}
	c := stats.Compare(pairs(a, b), stats.Options{Unbounded: true})
	if math.Abs(c.Low-0.7001142) > 1e-7 || math.Abs(c.High-2.4598858) > 1e-7 || math.Abs(c.Difference-1.58) > 1e-12 {
		t.Errorf("%v (%v … %v), want 1.58 (0.7001142 … 2.4598858)", c.Difference, c.Low, c.High)
	}
	if c.Verdict != stats.Better || c.Better != 9 || c.Worse != 0 || c.Units != 10 || c.Differing != 9 {
		t.Errorf("%+v", c)
	}
	less := stats.Compare(pairs(a, b), stats.Options{Unbounded: true, LowerIsBetter: true})
	if less.Verdict != stats.Worse || less.Worse != 9 || less.Difference < 0 {
		t.Errorf("if less is better: %+v", less)
	}
}

// Groups of two equal cases know as much as one case each, and a weight of 2 is that of two cases.
func TestGroupsAndWeights(t *testing.T) {
	a := []float64{1, 0.5, 0.2, 0.9, 0.7, 1, 0.4, 0.8}
	b := []float64{0.6, 0.6, 0.1, 0.3, 0.7, 0.5, 0.1, 0.2}
	want := stats.Compare(pairs(a, b), stats.Options{})
	var doubled, weighted []stats.Observation
	for i, o := range pairs(a, b) {
		o.Group = fmt.Sprint("g", i)
		doubled = append(doubled, o, o)
		o.Group, o.Weight = "", 2
		weighted = append(weighted, o)
	}
	for name, obs := range map[string][]stats.Observation{"grouped": doubled, "weighted": weighted} {
		got := stats.Compare(obs, stats.Options{})
		if !near(got.Difference, want.Difference) || !near(got.Low, want.Low) || !near(got.High, want.High) ||
			got.Units != 8 || got.Verdict != want.Verdict {
			t.Errorf("%s: %+v, want as %+v", name, got, want)
		}
	}
	ignored := append(pairs(a, b), pairs(a, b)...)
	if got := stats.Compare(ignored, stats.Options{}); got.High-got.Low > 0.75*(want.High-want.Low) {
		t.Errorf("16 cases of their own have the interval %v … %v, 8 of them %v … %v", got.Low, got.High, want.Low, want.High)
	}
	heavy := pairs(a, b)
	heavy[1].Weight = 1000
	if got := stats.Compare(heavy, stats.Options{}); got.Verdict != stats.Undecided || got.Difference > -0.09 {
		t.Errorf("one case with nearly all of the weight: %+v", got)
	}
}

func TestVerdicts(t *testing.T) {
	up, down, equal := []float64{1, 1, 1}, []float64{0, 0, 0}, []float64{1, 0, 1}
	for _, tt := range []struct {
		name string
		obs  []stats.Observation
		o    stats.Options
		want stats.Verdict
	}{
		{"five cases in one direction", same(5, up, down), stats.Options{}, stats.Undecided},
		{"six cases in one direction", same(6, up, down), stats.Options{}, stats.Better},
		{"six cases in the other one", same(6, down, up), stats.Options{}, stats.Worse},
		{"six better among 100", append(same(94, up, up), same(6, up, down)...), stats.Options{}, stats.Better},
		{"five better among 100", append(same(95, up, up), same(5, up, down)...), stats.Options{}, stats.Undecided},
		{"no case differs, no margin", same(1000, equal, equal), stats.Options{}, stats.Undecided},
		{"no case of 30 differs", same(30, equal, equal), stats.Options{Margin: 0.05}, stats.Undecided}, // 9% of others might
		{"no case of 60 differs", same(60, equal, equal), stats.Options{Margin: 0.05}, stats.Same},      // as doc/eval.md has it
		{"no case of 150 differs", same(150, equal, equal), stats.Options{Margin: 0.02}, stats.Same},
		{"no case of 140 differs", same(140, equal, equal), stats.Options{Margin: 0.02}, stats.Undecided},
		{"repeats in another order", same(100, []float64{1, 0, 1}, []float64{0, 1, 1}), stats.Options{Margin: 0.04}, stats.Same},
		{"a difference below the margin is none", append(same(1900, up, up), same(20, up, down)...), stats.Options{Margin: 0.02}, stats.Same},
		{"the same with the other margin", append(same(1900, up, up), same(20, up, down)...), stats.Options{Margin: 0.01}, stats.Better},
		{"a constant small shift of few", same(8, []float64{0.6}, []float64{0.5}), stats.Options{}, stats.Undecided},
		{"a constant small shift of many", same(60, []float64{0.6}, []float64{0.5}), stats.Options{}, stats.Better},
	} {
		if c := stats.Compare(tt.obs, tt.o); c.Verdict != tt.want {
			t.Errorf("%s: %s %v (%v … %v)", tt.name, c.Verdict, c.Difference, c.Low, c.High)
		}
	}
}

func TestUnknownValues(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	one := []float64{1}
	for _, tt := range []struct {
		name        string
		obs         []stats.Observation
		cases, left int
		difference  float64
		low, high   float64
	}{
		{"no case", nil, 0, 0, nan, nan, nan},
		{"one case", same(1, one, []float64{0, 0, 1}), 1, 0, 2.0 / 3, 2.0/3 - 0.975, 1},
		{"no values", same(3, nil, one), 0, 3, nan, nan, nan},
		{"only unknown values", same(3, []float64{nan, inf}, one), 0, 3, nan, nan, nan},
		{"an unknown repeat", same(1, []float64{nan, 1}, []float64{0}), 1, 0, 1, 0.025, 1},
		{"weights that are none", []stats.Observation{
			{A: one, B: one, Weight: -1}, {A: one, B: one, Weight: nan}, {A: one, B: one, Weight: inf},
		}, 0, 3, nan, nan, nan},
	} {
		c := stats.Compare(tt.obs, stats.Options{})
		if c.Verdict != stats.Undecided || c.Cases != tt.cases || c.Left != tt.left || !near(c.Difference, tt.difference) ||
			!near(c.Low, tt.low) || !near(c.High, tt.high) {
			t.Errorf("%s: %+v", tt.name, c)
		}
		if c.Detectable() != 0 || c.Needed(0.1) != 0 {
			t.Errorf("%s: could see %v, needs %d", tt.name, c.Detectable(), c.Needed(0.1))
		}
	}
	beyond := pairs([]float64{1e308, -1e308, 1e308, 1, 2, 3, 4}, []float64{-1e308, 1e308, 5, 6, 7, 8, 9})
	huge := stats.Compare(beyond, stats.Options{Unbounded: true})
	if huge.Verdict != stats.Undecided {
		t.Errorf("sums beyond a float: %+v", huge)
	}
	if c := stats.Compare(same(1, one, one), stats.Options{Unbounded: true}); !math.IsInf(c.Low, -1) || !math.IsInf(c.High, 1) {
		t.Errorf("one case without bounds: %+v", c)
	}
}

// What is printed as the number of cases finds the difference: the table of the documentation.
func TestCasesNeeded(t *testing.T) {
	for _, tt := range []struct {
		deviation, difference float64
		want                  int
	}{
		{0.53, 0.2, 58}, {0.53, 0.1, 223}, {0.31, 0.2, 21}, {0.31, 0.1, 78},
		{0.24, 0.2, 14}, {0.24, 0.05, 183}, {0.24, 0.9, 6}, {0.24, 1e-9, 1e9},
	} {
		a, b := make([]float64, 100), make([]float64, 100)
		for i := range a {
			a[i] = 0.5 + tt.deviation*math.Sqrt(0.99)*float64(i%2*2-1)
		}
		c := stats.Compare(pairs(a, b), stats.Options{Unbounded: true})
		if got := c.Needed(tt.difference); got != tt.want {
			t.Errorf("deviation %v: a difference of %v takes %d cases, want %d", tt.deviation, tt.difference, got, tt.want)
		}
		if got := c.Needed(-tt.difference); got != tt.want {
			t.Errorf("a negative difference takes %d cases, want %d", got, tt.want)
		}
		if got := c.Needed(c.Detectable()); got < 99 || got > 101 {
			t.Errorf("what 100 cases see takes %d cases", got)
		}
	}
}

func TestRatios(t *testing.T) {
	obs := pairs([]float64{1.1, 22, 330, 4.4, 5.5, 66, 7.7, 0, 0, 3}, []float64{1, 20, 300, 4, 5, 60, 7, 0, 5, 0})
	c := stats.CompareRatio(obs, stats.Options{LowerIsBetter: true})
	if c.Verdict != stats.Worse || c.Cases != 8 || c.Left != 2 || c.Worse != 7 || c.Better != 0 {
		t.Errorf("%+v", c)
	}
	if want := math.Pow(1.1, 7.0/8) - 1; !near(c.Difference, want) || c.Low > want || c.High < want || c.Low <= 0 {
		t.Errorf("%v (%v … %v), want %v", c.Difference, c.Low, c.High, want)
	}
	if n := c.Needed(c.Detectable()); n != 8 {
		t.Errorf("needs %d cases", n)
	}
	if c := stats.CompareRatio(same(6, []float64{3}, []float64{3}), stats.Options{Margin: 0.01}); c.Verdict != stats.Same {
		t.Errorf("equal costs: %+v", c)
	}
}

func TestMean(t *testing.T) {
	yes, no := []float64{1}, []float64{0}
	for _, tt := range []struct { // the bounds are Clopper's and Pearson's by mpmath
		name            string
		obs             []stats.Observation
		mean, low, high float64
	}{
		{"all passed", same(30, yes, nil), 1, 0.88429669, 1},
		{"none passed", same(12, no, nil), 0, 0, 0.26464847},
		{"one case passed", same(1, yes, nil), 1, 0.025, 1},
		{"one case passed once in two", same(1, []float64{1, 0}, nil), 0.5, 0.00038558, 0.99961442},
		{"one case with a small value", same(1, []float64{0.005}, nil), 0.005, 0, 0.97557996},
		{"no case", nil, math.NaN(), math.NaN(), math.NaN()},
		{"no value", same(2, nil, yes), math.NaN(), math.NaN(), math.NaN()},
	} {
		e := stats.Mean(tt.obs, stats.Options{})
		if !near(e.Mean, tt.mean) || !near(e.Low, tt.low) || !near(e.High, tt.high) || e.Cases+e.Left != len(tt.obs) {
			t.Errorf("%s: %+v", tt.name, e)
		}
	}
	half := stats.Mean(append(same(15, yes, nil), same(15, no, nil)...), stats.Options{})
	if half.Low < 0.3 || half.Low > 0.3130 || !near(half.High, 1-half.Low) { // Clopper and Pearson: 0.3130
		t.Errorf("15 of 30: %+v", half)
	}
	seconds := stats.Mean(append(same(4, []float64{8, 12}, nil), same(4, []float64{19, 21}, nil)...), stats.Options{Unbounded: true})
	if !near(seconds.Mean, 15) || math.Abs(seconds.High-19.4688) > 1e-3 || seconds.Left != 0 {
		t.Errorf("seconds: %+v", seconds)
	}
}

func TestLooks(t *testing.T) {
	for planned, want := range map[int]string{
		60: "[{12 5e-06} {24 0.0013} {36 0.0084} {48 0.0226} {60 0.0413}]",
		8:  "[{7 0.0226} {8 0.0413}]",
		3:  "[]",
		0:  "[]",
	} {
		if got := fmt.Sprint(stats.Looks(planned)); got != want {
			t.Errorf("Looks(%d) = %s, want %s", planned, got, want)
		}
	}
}

// The chance of a case to look better is that of drawing which of its runs belong to which version.
func TestChance(t *testing.T) {
	for _, tt := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{1}, []float64{0}, 0.5},
		{[]float64{1, 1}, []float64{1, 1}, 0},
		{[]float64{1, 1, 0}, []float64{0, 0, 0}, (1 - 9.0/15) / 2}, // one passes on each side in 9 of 15 pairs
		{[]float64{1, 0}, []float64{1, 0, 0, 0}, (1 - 0.0) / 2},    // 2 of 6 in halves of 2 and 4 are never equal
		{[]float64{0.1, 0.2}, []float64{0.3, 0.5}, 0.5},
		{[]float64{0.1, 0.2}, []float64{0.3, 0.2}, (1 - 2.0/6) / 2}, // 0.1+0.3 = 0.2+0.2
	} {
		if got := stats.Compare([]stats.Observation{{A: tt.a, B: tt.b}}, stats.Options{}).Chance; !near(got, tt.want) {
			t.Errorf("%v and %v: %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestIdentical(t *testing.T) {
	for _, tt := range []struct {
		answers [][]string
		want    bool
	}{
		{nil, false},
		{[][]string{{"a"}, {"b"}}, false},
		{[][]string{{"a", "a"}, {"b"}, nil}, true},
		{[][]string{{"a", "a"}, {"b", "a"}}, false},
	} {
		if got := stats.Identical(tt.answers); got != tt.want {
			t.Errorf("Identical(%v) = %v", tt.answers, got)
		}
	}
}

// The table of doc/eval.md is what the package computes, for cases whose difference has the variance 2·0.143/runs: that of the
// runs of two equal versions in the usual world of the simulations.
func TestTableOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../../doc/eval.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$`).FindAllStringSubmatch(string(page), -1)
	if len(rows) != 6 {
		t.Fatalf("found %d rows", len(rows))
	}
	for _, row := range rows {
		n, err := strconv.Atoi(row[1])
		if err != nil {
			t.Fatal(err)
		}
		for i, runs := range []float64{1, 3, 5, 10} {
			half := math.Sqrt(2 * 0.1429 / runs * float64(n-1) / float64(n)) // of n even cases, half is above 0 and half below by this
			a, b := make([]float64, n), make([]float64, n)
			for j := range a {
				a[j] = half * float64(j%2*2-1)
			}
			c := stats.Compare(pairs(a, b), stats.Options{Unbounded: true})
			if got := fmt.Sprintf("%.2f", c.Detectable()); got != row[i+2] {
				t.Errorf("%d cases with %v runs: %s, the documentation has %s", n, runs, got, row[i+2])
			}
		}
	}
}
