// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/authoring/rehearsal"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

const judged = `name: improve
max_iterations: 6
%s
sub_agents:
  - {name: writer, instructions: "Improve this: {{draft}}", output_key: draft}
  - {name: critic, instructions: "Judge this: {{draft}}", output_key: review}
`

// noisy is what becomes of a noisy judge, with lines in the definition. It says in how
// many of so many runs luck has reached the target.
func noisy(t *testing.T, seed uint64, lines string) (f rehearsal.Finding, lucky, of int) {
	t.Helper()
	f = rehearse(t, parse(t, fmt.Sprintf(judged, lines)), rehearsal.Config{Seed: seed, Faults: []rehearsal.Fault{rehearsal.NoisyJudge}}).Findings[0]
	_, rate, there := strings.Cut(f.Detail, ": in ")
	if there {
		if _, err := fmt.Sscanf(rate, "%d of %d runs", &lucky, &of); err != nil {
			t.Fatalf("%q: %v", f.Detail, err)
		}
	}
	return f, lucky, of
}

// LOOP 14: what a judge says is drawn each time: two samples do not cancel, and only many
// keep luck from reaching the target.
func TestNoiseOfTheJudgeIsIndependent(t *testing.T) {
	longtest.WithoutRace(t)
	t.Parallel()
	for seed := range longtest.N[uint64](1, 4) {
		last := 1.0
		for _, samples := range []int{1, 2, 3, 5, 12} {
			f, lucky, of := noisy(t, seed, fmt.Sprintf("score: {key: review, target: 9, judge: {step: critic, samples: %d}}", samples))
			want, share := rehearsal.Uncaught, 0.0
			if samples == 12 {
				want = rehearsal.Caught
			} else if share = float64(lucky) / float64(max(1, of)); share < 0.06 || share >= last {
				t.Errorf("seed %d, %d samples: luck in %d of %d runs, before it was %v of them", seed, samples, lucky, of, last)
			}
			if last = share; f.Status != want {
				t.Errorf("seed %d, %d samples: %s, want %s: %s", seed, samples, f.Status, want, f.Detail)
			}
		}
	}
}

// LOOP 14: luck that has to come twice running is rarer: fewer samples do.
func TestNoiseThatHasToComeTwice(t *testing.T) {
	const lines = "score: {key: review, judge: {step: critic, samples: %d}}\nstop_when: {all: [score >= 9.0], for: %d}"
	for _, tt := range []struct {
		samples, running int
		want             rehearsal.Status
	}{
		{1, 1, rehearsal.Uncaught}, {3, 1, rehearsal.Uncaught}, {4, 2, rehearsal.Caught},
	} {
		f, _, _ := noisy(t, 0, fmt.Sprintf(lines, tt.samples, tt.running))
		if f.Status != tt.want {
			t.Errorf("%d samples, for %d: %s, want %s: %s", tt.samples, tt.running, f.Status, tt.want, f.Detail)
		}
	}
}

// LOOP 14: where so many samples leave no time to judge, no number is advised.
func TestNoiseThatNothingTames(t *testing.T) {
	f, _, _ := noisy(t, 0, "iteration_timeout: 30s\nscore: {key: review, target: 9}")
	if f.Status != rehearsal.Uncaught || f.Add != nil || !strings.Contains(f.Advice, "no number of samples is enough") {
		t.Errorf("%+v", f)
	}
}

// LOOP 14: without a target, luck ends no loop. Which version it chooses as the best costs nothing, as all are worth the same.
func TestNoiseWithoutATarget(t *testing.T) {
	for _, lines := range []string{"score: {key: review}", "score: {key: review, judge: {step: critic, samples: 5}}"} {
		f, _, _ := noisy(t, 0, lines)
		if f.Status != rehearsal.Caught || !strings.Contains(f.Detail, "none of 200 runs reaches a target by luck") {
			t.Errorf("%s: %+v", lines, f)
		}
	}
}
