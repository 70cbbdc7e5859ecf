// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/eval/report"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// A version whose failures become errors is not better, in either place and by whatever metric; one that is better anyway is.
func TestFailuresThatBecomeErrors(t *testing.T) {
	const passed = " only without the runs that ended with an error"
	const other = passed + ", of which the version with the better score has more"
	pass, fail, hidden := times(14, "ppp"), times(6, "pfp"), times(6, "pep")
	for _, tt := range []struct {
		name     string
		new, old [][]string
		decide   string
		margin   float64
		want     report.Verdict
		reason   string
	}{
		{"new", [][]string{hidden, pass}, [][]string{fail, pass}, "", 0, report.Undecided, "better" + passed},
		{"old", [][]string{fail, pass}, [][]string{hidden, pass}, "", 0, report.Undecided, "worse" + passed},
		{"both", [][]string{hidden, pass}, [][]string{hidden, pass}, "", 0, report.Undecided, ""},
		{"new, by score", [][]string{hidden, pass}, [][]string{fail, pass}, report.Score, 0, report.Undecided, "better" + other},
		{"old, by score", [][]string{fail, pass}, [][]string{hidden, pass}, report.Score, 0, report.Undecided, "worse" + other},
		{"the worse one has the errors", [][]string{times(20, "ppp")}, [][]string{times(3, "ppe"), times(17, "pff")}, report.Score, 0, report.Better, ""},
		{"better in spite of errors", [][]string{times(3, "ppe"), times(17, "ppp")}, [][]string{times(20, "pff")}, "", 0, report.Better, ""},
		{"worse in spite of errors", [][]string{times(20, "pff")}, [][]string{times(3, "ppe"), times(17, "ppp")}, "", 0, report.Worse, ""},
		{"same but for errors", [][]string{times(40, "ppp"), times(14, "ppe")}, [][]string{times(54, "ppp")}, "", 0.08, report.Undecided, "same" + passed},
		{"errors that are mended", [][]string{hidden, pass}, [][]string{times(20, "ppp")}, "", 0, report.Undecided, ""},
	} {
		s := (&report.Report{New: of("a", tt.new...), Old: new(of("b", tt.old...)), Decide: tt.decide, Margin: tt.margin}).Summary()
		if s.Verdict != tt.want || s.Reason != tt.reason {
			t.Errorf("%s: %s (%q)", tt.name, s.Verdict, s.Reason)
		}
		var text bytes.Buffer
		if err := s.WriteText(&text, 0); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(text.String(), "run the same command again"); got != (tt.reason != "") {
			t.Errorf("%s:\n%s", tt.name, &text)
		}
	}
}

// Versions against themselves have few verdicts if 1 of 20 runs is an error by chance, and one that passes 0.2 more often is found.
func TestErrorsByChance(t *testing.T) {
	longtest.WithoutRace(t)
	n := longtest.N(60, 3000)
	found := make(map[float64]int)
	for seed := range uint64(n) {
		r := rand.New(rand.NewPCG(seed, 5))
		for _, more := range []float64{0, 0.2} {
			var sides [2][]string
			for range 30 {
				rate := 0.8 * r.Float64()
				for i, rate := range []float64{rate + more, rate} {
					runs := []byte("fff")
					for k := range runs {
						if r.Float64() < rate {
							runs[k] = 'p'
						}
						if r.Float64() < 0.05 {
							runs[k] = 'e'
						}
					}
					sides[i] = append(sides[i], string(runs))
				}
			}
			s := (&report.Report{New: of("a", sides[0]), Old: new(of("b", sides[1]))}).Summary()
			if s.Verdict != report.Undecided && (more == 0 || s.Verdict == report.Better) {
				found[more]++
			}
		}
	}
	t.Logf("%d draws: %v", n, found)
	if most := longtest.N(0.12, 0.05); float64(found[0]) > most*float64(n) {
		t.Errorf("%d of %d versions have a verdict against themselves", found[0], n)
	}
	if least := longtest.N(0.6, 0.7); float64(found[0.2]) < least*float64(n) {
		t.Errorf("%d of %d versions are found to be better", found[0.2], n)
	}
}

// No run raises the score of a tune by ending with an error.
func TestErrorRaisesNoScore(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 6))
		var results []string
		for range 8 {
			var runs []byte
			for range 1 + r.IntN(3) {
				runs = append(runs, "pfe"[r.IntN(3)])
			}
			results = append(results, string(runs))
		}
		score := func(results []string) float64 {
			return (&report.Report{New: of("a", results)}).Summary().NewTotal.PassedOfAll.Mean
		}
		before := score(results)
		for i, runs := range results {
			for k := range runs {
				after := slices.Clone(results)
				after[i] = runs[:k] + "e" + runs[k+1:]
				if got := score(after); got > before+1e-9 {
					t.Errorf("%v with %v has %v, and %v with an error", i, results, before, got)
				}
			}
		}
	}
}
