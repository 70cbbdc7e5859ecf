// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/authoring/rehearsal"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// measured is a loop whose score a program gives.
const measured = `name: improve
max_iterations: 12
%s
sub_agents:
  - {name: writer, instructions: "Improve this: {{draft}}", output_key: draft}
  - {name: measure, command: [sh, measure.sh], output_key: number}
`

// comparing is a loop whose judge compares versions.
var comparing = strings.Replace(longer(judged), `"Judge this: {{draft}}"`, `"Which is better, {{draft}} or {{best.draft}}?"`, 1)

func longer(format string) string {
	return strings.Replace(format, "max_iterations: 6", "max_iterations: 12", 1)
}

// LOOP 14: the report shows what the stop rules do to six courses, for people and for programs. The numbers are exact.
// `go test ./internal/authoring/rehearsal -run SixCourses -update` writes the file.
func TestSixCourses(t *testing.T) {
	longtest.WithoutRace(t)
	t.Parallel()
	const golden = "testdata/courses.txt"
	var b strings.Builder
	for _, tt := range []struct{ format, lines string }{
		{longer(judged), "score: {key: review, min_delta: 0.1, patience: 2}"},
		{longer(judged), "score: {key: review, target: 9, min_delta: 0.1, patience: 2, judge: {step: critic, samples: 3..12}}"},
		{longer(judged), "score: {key: review, min_delta: 0.1, patience: 4, judge: {step: critic, samples: 3}}\non_regression: rollback"},
		{longer(judged), "score: {key: review, judge: {step: critic, samples: 3}}\nnot_worth: {gain: 0.1, per: minute}"},
		{longer(judged), "score: {key: review, judge: {step: critic, samples: 3}}\nnot_worth: {gain: 0.1, per: cost}"},
		{longer(judged), "score: {key: review, target: 9, judge: {step: critic}}"},
		{measured, "score: {key: number, lower_is_better: true, min_delta_percent: 1, patience: 3, baseline: true, judge: {step: measure, samples: 5}}"},
		{comparing, "score: {key: review, min_delta: 0.1, patience: 2, judge: {step: critic, samples: 4, compare: best}}"},
		{measured, "score: {key: number, target: 9, min_delta: 0.1}"}, // exact
	} {
		r := rehearse(t, parse(t, fmt.Sprintf(tt.format, tt.lines)), rehearsal.Config{Faults: nil})
		fmt.Fprintln(&b, tt.lines)
		var text strings.Builder
		if err := r.Format(&text); err != nil {
			t.Fatal(err)
		}
		from := strings.Index(text.String(), "\nWhat the stop rules do")
		if from < 0 {
			b.WriteString("  no courses\n\n")
			continue
		}
		part, _, _ := strings.Cut(text.String()[from+1:], "\n\n")
		b.WriteString(part + "\n\n")
		if strings.Contains(tt.lines, "rollback") {
			data, err := json.MarshalIndent(r.Simulations, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(string(data) + "\n\n")
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", golden, diff)
	}
}

// LOOP 14: a loop that improves by half of what its judge is off by must not be stopped as converged. A judge that is asked once, or
// taken for exact, cannot see that; a program whose number varies is a judge too.
func TestSlowImprovement(t *testing.T) {
	longtest.WithoutRace(t)
	for _, tt := range []struct {
		format, lines string
		want          rehearsal.Status
		detail        string
	}{
		{judged, "", rehearsal.Spared, "nothing is scored"},
		{judged, "score: {key: review, target: 9}", rehearsal.Spared, "no score.min_delta or not_worth ends it if nothing is gained"},
		{measured, "score: {key: number, min_delta: 0.1}", rehearsal.Spared, "its score is exact"},
		{judged, "score: {key: review, judge: {step: critic}}\nnot_worth: {gain: 0.1, per: cost}", rehearsal.Spared, "stand-ins do not know what not_worth per cost needs"},
		{longer(judged), "score: {key: review, min_delta: 0.1, patience: 2}", rehearsal.Uncaught, "each version is better by 0.25"},
		{longer(judged), "score: {key: review, min_delta: 0.1, patience: 2, judge: {step: critic}}", rehearsal.Uncaught, ""},
		{longer(judged), "score: {key: review, min_delta: 0.1, patience: 2, judge: {step: critic, samples: 3}}", rehearsal.Caught, ""},
		{longer(judged), "score: {key: review, judge: {step: critic, samples: 3}}\nnot_worth: {gain: 0.1}", rehearsal.Caught, ""},
		{comparing, "score: {key: review, min_delta: 0.1, judge: {step: critic, compare: best}}", rehearsal.Caught, "each version is better by 0.5"},
		{comparing, "score: {key: review, min_delta: 0.4, judge: {step: critic, compare: best}}", rehearsal.Uncaught, ""},
		{comparing, "score: {key: review, min_delta: 0.1, patience: 2, judge: {step: critic, samples: 4, compare: best}}", rehearsal.Caught, ""},
		{measured, "score: {key: number, min_delta: 0.1, patience: 2, judge: {step: measure}}", rehearsal.Uncaught, ""},
		{measured, "score: {key: number, min_delta: 0.1, patience: 2, judge: {step: measure, samples: 5}}", rehearsal.Caught, ""},
	} {
		text := fmt.Sprintf(tt.format, tt.lines)
		f := rehearse(t, parse(t, text), rehearsal.Config{Faults: []rehearsal.Fault{rehearsal.ImprovesSlowly}}).Findings[0]
		if f.Status != tt.want || !strings.Contains(f.Detail, tt.detail) {
			t.Errorf("%s: %s, want %s: %s", tt.lines, f.Status, tt.want, f.Detail)
		}
		if f.Status == rehearsal.Uncaught {
			take(t, fileOf(text), &f)
		}
	}
}

// LOOP 14: a program as judge is off by chance, too, and reaches a target by luck.
func TestNoiseOfAProgram(t *testing.T) {
	for lines, want := range map[string]rehearsal.Status{
		"score: {key: number, target: 9}":                                            rehearsal.Spared, // exact
		"score: {key: number, min_delta: 0.1, judge: {step: measure}}":               rehearsal.Spared, // no target
		"score: {key: number, target: 9, judge: {step: measure}}":                    rehearsal.Uncaught,
		"score: {key: number, target: 9, judge: {step: measure, samples: 3..12}}":    rehearsal.Caught,
		"score: {key: number, judge: {step: measure}}\nstop_when: score >= 9":        rehearsal.Uncaught,
		"score: {expr: '1.0 + 1.0'}\nstop_when: score >= 9\non_regression: rollback": rehearsal.Spared,
	} {
		f := rehearse(t, parse(t, fmt.Sprintf(measured, lines)), rehearsal.Config{Faults: []rehearsal.Fault{rehearsal.NoisyJudge}}).Findings[0]
		if f.Status != want {
			t.Errorf("%s: %s, want %s: %s", lines, f.Status, want, f.Detail)
		}
	}
}
