// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

func parse(t testing.TB, text string) *definition.Definition {
	t.Helper()
	def, err := definition.Parse("loop.yaml", []byte(text), definition.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return def
}

func rehearse(t testing.TB, def *definition.Definition, cfg rehearsal.Config) *rehearsal.Report {
	t.Helper()
	r, err := rehearsal.Run(t.Context(), def, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// results are the findings, a line each: the fault, the loop or the steps, and what
// has caught it.
func results(r *rehearsal.Report) []string {
	var all []string
	for _, f := range r.Findings {
		where := f.Loop
		if len(f.Steps) > 0 {
			where += ":" + strings.Join(f.Steps, ",")
		}
		line := fmt.Sprintf("%s %s %s %s", string(f.Fault), where, f.Status, f.Guard)
		all = append(all, strings.TrimSpace(strings.Join(strings.Fields(line), " ")))
	}
	return all
}

// X1: every fault is injected into these loops, which were examples once. TestAdviceCanBeTaken looks at
// the examples of today. The short form rehearses only the first of them twice.
func TestExamples(t *testing.T) {
	for i, tt := range []struct {
		example string
		want    []string
	}{
		{"refine", []string{
			"never_exits iterative_content_refiner caught score.min_delta_percent: 5",
			"noisy_judge iterative_content_refiner uncaught",
			"improves_slowly iterative_content_refiner uncaught",
			"judge_in_words iterative_content_refiner:quality_analyzer caught output_schema of quality_analyzer",
			"not_a_number iterative_content_refiner:quality_analyzer caught on_error: stop (the default)",
			"scores_regress iterative_content_refiner uncaught",
			"oscillation iterative_content_refiner caught score.min_delta_percent: 5",
			"step_hung iterative_content_refiner:content_generator,quality_analyzer,feedback_collector,criteria_checker caught iteration_timeout of iterative_content_refiner: 5m (the default)",
			"step_hung iterative_content_refiner:final_consolidator caught timeout of iterative_content_refiner: 30m (the default)",
			"provider_hiccup iterative_content_refiner:content_generator,quality_analyzer,feedback_collector,criteria_checker,final_consolidator caught request_retry: 3 (the default)",
			"provider_down iterative_content_refiner caught on_error: stop (the default)",
			"exit_not_permitted iterative_content_refiner:content_generator,quality_analyzer,feedback_collector caught can_exit_loop",
			"state_grows iterative_content_refiner:criteria_checker caught score.min_delta_percent: 5",
			"costs_explode iterative_content_refiner uncaught",
			"crash caught the log, and refrain resume",
		}},
		{"nested", []string{
			"never_exits chapters does_not_apply", "never_exits polish caught max_iterations: 10",
			"noisy_judge chapters does_not_apply", "noisy_judge polish does_not_apply",
			"improves_slowly chapters does_not_apply", "improves_slowly polish does_not_apply",
			"judge_in_words chapters does_not_apply", "judge_in_words polish does_not_apply",
			"not_a_number chapters does_not_apply", "not_a_number polish does_not_apply",
			"scores_regress chapters does_not_apply", "scores_regress polish does_not_apply",
			"oscillation chapters does_not_apply", "oscillation polish does_not_apply",
			"step_hung does_not_apply", "provider_hiccup does_not_apply",
			"provider_down chapters does_not_apply", "provider_down polish does_not_apply",
			"exit_not_permitted chapters does_not_apply", "exit_not_permitted polish does_not_apply",
			"state_grows chapters does_not_apply", "state_grows polish does_not_apply",
			"costs_explode chapters does_not_apply", "costs_explode polish does_not_apply",
			"crash caught the log, and refrain resume",
		}},
		{"document", []string{
			"never_exits RefinementLoop caught max_iterations: 5",
			"noisy_judge RefinementLoop does_not_apply", "improves_slowly RefinementLoop does_not_apply",
			"judge_in_words RefinementLoop does_not_apply", "not_a_number RefinementLoop does_not_apply",
			"scores_regress RefinementLoop does_not_apply",
			"oscillation RefinementLoop caught max_iterations: 5",
			"step_hung :InitialWriterAgent uncaught",
			"step_hung RefinementLoop:CriticAgent,RefinerAgent caught iteration_timeout of RefinementLoop: 5m (the default)",
			"provider_hiccup :InitialWriterAgent caught request_retry: 3 (the default)",
			"provider_hiccup RefinementLoop:CriticAgent,RefinerAgent caught request_retry: 3 (the default)",
			"provider_down RefinementLoop caught on_error: stop (the default)",
			"exit_not_permitted RefinementLoop:CriticAgent caught can_exit_loop",
			"state_grows RefinementLoop:RefinerAgent caught max_iterations: 5",
			"costs_explode RefinementLoop uncaught",
			"crash caught the log, and refrain resume",
		}},
		{"poll", []string{
			"never_exits wait caught timeout: 30m (the default)",
			"noisy_judge wait does_not_apply", "improves_slowly wait does_not_apply",
			"judge_in_words wait does_not_apply", "not_a_number wait does_not_apply",
			"scores_regress wait does_not_apply",
			"oscillation wait caught timeout: 30m (the default)",
			"step_hung :prepare,job,clean uncaught",
			"step_hung wait:ask caught iteration_timeout of wait: 5m (the default)",
			"provider_hiccup does_not_apply", "provider_down wait does_not_apply", "exit_not_permitted wait does_not_apply",
			"state_grows wait does_not_apply", "costs_explode wait does_not_apply",
			"crash caught the log, and refrain resume",
		}},
	} {
		t.Run(tt.example, func(t *testing.T) {
			def, err := definition.Load(filepath.Join("testdata", tt.example+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			r := rehearse(t, def, rehearsal.Config{})
			if diff := cmp.Diff(tt.want, results(r)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, e := range r.Endings {
				if !e.Reached {
					t.Errorf("with nothing wrong: %s", e)
				}
			}
			if took := time.Since(began); took > 10*time.Minute {
				t.Errorf("it took %v", took)
			}
			if i%longtest.N(9, 1) != 0 {
				return
			}
			again, err := json.Marshal(rehearse(t, def, rehearsal.Config{}))
			if first, _ := json.Marshal(r); err != nil || !bytes.Equal(first, again) {
				t.Errorf("the second time it is another report, %v: %s", err, cmp.Diff(string(first), string(again)))
			}
		})
	}
}

// open is a definition that lacks nothing, in lines that a test leaves out or
// changes.
func open(t testing.TB, change map[string]string) string {
	text := guarded
	for from, to := range change {
		if !strings.Contains(text, from) {
			t.Fatalf("the definition has no %q", from)
		}
		text = strings.Replace(text, from, to, 1)
	}
	return text
}

const guarded = `name: improve
max_iterations: 6
iteration_timeout: 5m
timeout: 20m
budget: {tokens: 9000}
state_limit: 200KiB
no_progress: true
on_regression: rollback
score: {key: review, target: 9, judge: {step: critic, samples: 12}}
sub_agents:
  - name: writer
    instructions: "Improve this: {{draft}}"
    output_key: draft
    request_retry: 3
  - name: critic
    instructions: "Judge this: {{draft}}"
    output_key: review
    request_retry: 3
    can_exit_loop: true
  - name: editor
    instructions: "Answer with this: {{draft}}"
    output_key: loop_output
    request_retry: 3
`

// X1, X3: each guard catches its fault, and without it nothing does.
func TestGuards(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fault  rehearsal.Fault
		change map[string]string // makes the definition lack it
		both   map[string]string // with and without it
		guard  string
		advice string
	}{
		{
			rehearsal.NeverExits, map[string]string{"max_iterations: 6": "max_iterations: 0"},
			map[string]string{"iteration_timeout: 5m\ntimeout: 20m\n": "timeouts: none\n", "budget: {tokens: 9000}\n": "max_model_calls: none\n", "no_progress: true\n": "", "samples: 12": "samples: 2"},
			"max_iterations: 6", "max_iterations: 10 on improve",
		},
		{
			rehearsal.NoisyJudge, map[string]string{", judge: {step: critic, samples: 12}": ""}, map[string]string{"budget: {tokens: 9000}\n": ""},
			"score.judge.samples: 12", "score: {judge: {step: critic, samples: 3..12}} on improve",
		},
		{
			rehearsal.JudgeInWords, map[string]string{"max_iterations: 6": "max_iterations: 0"},
			map[string]string{"iteration_timeout: 5m\ntimeout: 20m\n": "timeouts: none\n", "budget: {tokens: 9000}\n": "max_model_calls: none\n", "no_progress: true\n": "", "samples: 12": "samples: 2"},
			"max_iterations: 6", "max_iterations: 10 on improve; an output_schema for critic makes it answer with a number",
		},
		{
			rehearsal.NotANumber, map[string]string{"on_regression: rollback\n": ""}, map[string]string{"budget: {tokens: 9000}\n": ""},
			"on_regression: rollback", "on_regression: rollback on improve, or let editor read {{best.KEY}}",
		},
		{
			rehearsal.ScoresRegress, map[string]string{"on_regression: rollback\n": ""}, map[string]string{"budget: {tokens: 9000}\n": ""},
			"on_regression: rollback", "on_regression: rollback on improve, or let editor read {{best.KEY}}",
		},
		{
			rehearsal.Oscillation, map[string]string{"no_progress: true\n": ""},
			map[string]string{"max_iterations: 6": "max_iterations: 0", "iteration_timeout: 5m\ntimeout: 20m\n": "timeouts: none\n", "budget: {tokens: 9000}\n": "max_model_calls: none\n", "samples: 12": "samples: 2"},
			"no_progress", "no_progress: true on improve ends that after 4 iterations",
		},
		{
			rehearsal.StepHung, map[string]string{"iteration_timeout: 5m\ntimeout: 20m\n": "timeouts: none\n"}, nil,
			"iteration_timeout of improve: 5m", "iteration_timeout: 5m on improve",
		},
		{
			rehearsal.ProviderHiccup, map[string]string{"request_retry: 3": "request_retry: 1"}, nil,
			"request_retry: 3", "request_retry: 3 on writer",
		},
		{
			rehearsal.ProviderDown, map[string]string{"max_iterations: 6": "max_iterations: 0\non_error: next_iteration"},
			map[string]string{"iteration_timeout: 5m\ntimeout: 20m\n": "timeouts: none\n", "budget: {tokens: 9000}\n": "max_model_calls: none\n", "no_progress: true\n": ""},
			"on_error: stop (the default)", "max_consecutive_failures: 3 on improve",
		},
		{
			rehearsal.ExitNotPermitted, map[string]string{"    can_exit_loop: true\n": ""}, map[string]string{"score: {key: review, target: 9, judge: {step: critic, samples: 12}}\n": "", "on_regression: rollback\n": ""},
			"can_exit_loop", "can_exit_loop: true on critic, or on the agent that decides",
		},
		{
			rehearsal.StateGrows, map[string]string{"state_limit: 200KiB\n": ""}, map[string]string{"max_iterations: 6": "max_iterations: 30", "budget: {tokens: 9000}\n": "", "samples: 12": "samples: 2"},
			"state_limit: 200 KiB", "state_limit: 1MiB on improve",
		},
		{
			rehearsal.CostsExplode, map[string]string{"budget: {tokens: 9000}\n": ""}, nil,
			"budget.tokens: 9000", "budget: {tokens: 300000} on improve",
		},
	} {
		t.Run(string(tt.fault), func(t *testing.T) {
			t.Parallel()
			cfg := rehearsal.Config{Faults: []rehearsal.Fault{tt.fault}}
			with := rehearse(t, parse(t, open(t, tt.both)), cfg)
			caught := false
			for _, f := range with.Findings {
				caught = caught || f.Status == rehearsal.Caught && f.Guard == tt.guard
				if f.Status == rehearsal.Uncaught {
					t.Errorf("with its guard: %+v", f)
				}
			}
			if !caught {
				t.Errorf("%q has not caught it: %+v", tt.guard, with.Findings)
			}
			change := make(map[string]string)
			for _, m := range []map[string]string{tt.both, tt.change} {
				maps.Copy(change, m)
			}
			without := rehearse(t, parse(t, open(t, change)), cfg)
			i := slices.IndexFunc(without.Findings, func(f rehearsal.Finding) bool { return f.Status == rehearsal.Uncaught })
			if i < 0 {
				t.Fatalf("without its guard: %+v", without.Findings)
			}
			if got := without.Findings[i].Advice; !strings.HasPrefix(got, tt.advice) {
				t.Errorf("the advice is %q, want %q", got, tt.advice)
			}
			take(t, fileOf(open(t, change)), &without.Findings[i])
		})
	}
}

// LOOP 21: what nothing in a loop bounds, a loop around it may.
func TestLoopsAround(t *testing.T) {
	const text = `name: outer
max_iterations: 2
timeouts: none
%ssub_agents:
  - name: first
    command: [first]
  - name: inner
    max_iterations: 0
    sub_agents: [{name: ask, command: [ask], exit_when: result.exit_code == 1, ok_exit_codes: [0, 1]}]
`
	for _, tt := range []struct{ limit, hung, never string }{
		{"", "uncaught ", "uncaught "},
		{"iteration_timeout: 3m\n", "caught iteration_timeout of outer: 3m", "caught iteration_timeout of outer: 3m"},
		{"timeout: 90s\n", "caught timeout of outer: 1m 30s", "caught timeout of outer: 1m 30s"},
	} {
		r := rehearse(t, parse(t, fmt.Sprintf(text, tt.limit)), rehearsal.Config{Faults: []rehearsal.Fault{rehearsal.StepHung, rehearsal.NeverExits}})
		for _, f := range r.Findings {
			want := tt.never
			switch {
			case f.Fault == rehearsal.StepHung && slices.Contains(f.Steps, "ask"):
				want = tt.hung
			case f.Loop != "inner":
				continue
			}
			if got := string(f.Status) + " " + f.Guard; got != want {
				t.Errorf("%q: %s of %s is %q, want %q (%s)", tt.limit, f.Fault, f.Loop, got, want, f.Detail)
			}
		}
	}
}

// The advice is good: with it in the file the fault is caught.
func TestAdviceHelps(t *testing.T) {
	longtest.WithoutRace(t)
	t.Parallel()
	def := parse(t, `name: improve
max_iterations: 6
budget: {tokens: 200000}
on_regression: rollback
state_limit: 1MiB
no_progress: true
score: {key: review, target: 9, judge: {step: critic, samples: 12}}
sub_agents:
  - {name: writer, instructions: "Improve this: {{draft}}", output_key: draft}
  - {name: critic, instructions: "Judge this: {{draft}}", output_key: review, can_exit_loop: true}
  - {name: editor, instructions: "Answer with this: {{draft}}", output_key: loop_output}
`)
	for _, f := range rehearse(t, def, rehearsal.Config{}).Open() {
		t.Errorf("%s: %s", f.Fault, f.Detail)
	}
}

// X1: where a loop inside rewrites the text that is scored, the iteration of which a
// finalizer tells is that of the loop that is scored.
func TestRegressWithALoopInside(t *testing.T) {
	const text = `name: story
max_iterations: 6
score: {key: review, target: 9, label: Score}
ROLLBACK
sub_agents:
  - {name: writer, instructions: "Improve {{draft}} by {{review}}.", output_key: draft, can_exit_loop: false}
  - name: polish
    type: loop
    max_iterations: 3
    sub_agents:
      - {name: polisher, instructions: "Polish {{draft}}.", output_key: draft, can_exit_loop: false}
  - {name: critic, instructions: "Judge {{draft}}.", output_key: review, can_exit_loop: false}
  - {name: tell, text: "{{DRAFT}}", output_key: loop_output}
`
	for _, tt := range []struct {
		rollback, draft string
		want            rehearsal.Status
	}{
		{"on_regression: rollback", "best.draft", rehearsal.Caught},
		{"on_regression: rollback", "draft", rehearsal.Caught},
		{"", "best.draft", rehearsal.Caught},
		{"", "draft", rehearsal.Uncaught},
	} {
		def := parse(t, strings.NewReplacer("ROLLBACK\n", tt.rollback+"\n", "DRAFT", tt.draft).Replace(text))
		rep := rehearse(t, def, rehearsal.Config{Faults: []rehearsal.Fault{rehearsal.ScoresRegress}})
		if f := rep.Findings[0]; f.Loop != "story" || f.Status != tt.want {
			t.Errorf("%s, {{%s}}: %+v", tt.rollback, tt.draft, f)
		}
	}
}
