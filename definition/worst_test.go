// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition"
)

// worstOf is what the root of a definition comes to, as JSON without its end.
func worstOf(t *testing.T, text string, given definition.Assumed) string {
	t.Helper()
	u := parse(t, "name: x\n"+text).Worst(given).Total
	data, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// LOOP 34, F9, F10, T33: what each bound of a definition leaves of its worst case.
// What nothing bounds is null.
func TestWorstCase(t *testing.T) {
	const ask, twice = "sub_agents: [{name: a, instructions: a, can_exit_loop: true}]\n", "max_iterations: 2\n"
	some := definition.Assumed{InputTokens: 100, OutputTokens: 50}
	for _, tt := range []struct {
		name, text, want string
		given            definition.Assumed
	}{
		{"a text", "text: a", `{"runs":1,"turns":0,"calls":0,"tokens":0,"cost":0,"seconds":0}`, some},
		{"a command", "command: [ls]", `{"runs":1,"turns":0,"calls":0,"tokens":0,"cost":0,"seconds":null}`, some},
		{"a command in time", "command: [ls]\ntimeout: 7s", `{"runs":1,"turns":0,"calls":0,"tokens":0,"cost":0,"seconds":7}`, some},
		{"a request", "url: http://localhost/", `{"runs":1,"turns":0,"calls":0,"tokens":0,"cost":0,"seconds":30}`, some},
		{"a model", "instructions: a", `{"runs":1,"turns":1,"calls":3,"tokens":450,"cost":null,"seconds":null}`, some},
		{"nothing is known of its requests", "instructions: a", `{"runs":1,"turns":1,"calls":3,"tokens":null,"cost":null,"seconds":null}`, definition.Assumed{}},
		{"an answer of a shape", "instructions: a\noutput_schema: {type: object, properties: {a: {type: string}}}\nrequest_retry: 1",
			`{"runs":1,"turns":2,"calls":2,"tokens":300,"cost":null,"seconds":null}`, some},
		{"tools, up to the guard", "instructions: a\ntools: [count_items]\nmax_model_calls: 40", `{"runs":1,"turns":40,"calls":40,"tokens":6000,"cost":null,"seconds":null}`, some},
		{"tools, without a guard", "instructions: a\ntools: [count_items]\nmax_model_calls: none", `{"runs":1,"turns":null,"calls":null,"tokens":null,"cost":null,"seconds":null}`, some},
		{"the exit is no tool that is called again", "sub_agents: [{name: a, instructions: a, tools: [exit_loop]}]\n" + twice, `{"runs":1,"turns":2,"calls":6,"tokens":900,"cost":null,"seconds":600}`, some},
		{"a price", "instructions: a\nmodel: openai/m\nprices: {m: {input: 1, output: 10}}", `{"runs":1,"turns":1,"calls":3,"tokens":450,"cost":0.0018,"seconds":null}`, some},
		{"a model that is free", "instructions: a\nmodel: ollama/m\nprices: {m: {input: 0, output: 0}}", `{"runs":1,"turns":1,"calls":3,"tokens":null,"cost":0,"seconds":null}`, definition.Assumed{}},
		{"the model of the run", "instructions: a\nprices: {m: {input: 1, output: 1}}", `{"runs":1,"turns":1,"calls":3,"tokens":450,"cost":0.00045,"seconds":null}`,
			definition.Assumed{Model: "openai/m", InputTokens: 100, OutputTokens: 50}},
		{"waits for a limit, in the loop's time only", "sub_agents: [{name: a, cli: claude, prompt: x, max_turns: 2, timeout: 10s, on_limit: {wait: reset, at_most: 1m}}]\niteration_timeout: 5s\n" + twice,
			`{"runs":1,"turns":4,"calls":4,"tokens":null,"cost":null,"seconds":130}`, some},
		{"waits for a limit, and the loop's time ends", "sub_agents: [{name: a, cli: claude, prompt: x, max_turns: 2, timeout: 10s, on_limit: {wait: reset, at_most: 1m}}]\niteration_timeout: 5s\ntimeout: 20s\n" + twice,
			`{"runs":1,"turns":4,"calls":4,"tokens":null,"cost":null,"seconds":20}`, some},
		{"iterations", ask + "max_iterations: 7", `{"runs":1,"turns":7,"calls":21,"tokens":3150,"cost":null,"seconds":1800}`, some},
		{"a limit that is left out", ask, `{"runs":1,"turns":5,"calls":15,"tokens":2250,"cost":null,"seconds":1500}`, some},
		{"no limit", ask + "max_iterations: 0\nmax_model_calls: none", `{"runs":1,"turns":null,"calls":null,"tokens":null,"cost":null,"seconds":1800}`, some},
		{"no limit of time", ask + "timeouts: none", `{"runs":1,"turns":5,"calls":15,"tokens":2250,"cost":null,"seconds":null}`, some},
		{"a budget of calls", ask + "budget: {calls: 4}", `{"runs":1,"turns":4,"calls":4,"tokens":600,"cost":null,"seconds":1500}`, some},
		{"a budget of tokens", ask + "budget: {tokens: 1000}", `{"runs":1,"turns":5,"calls":15,"tokens":1000,"cost":null,"seconds":1500}`, some},
		{"a budget of cost", ask + "budget: {cost: 0.5}\nmodel: openai/m\nprices: {m: {input: 1, output: 1}}", `{"runs":1,"turns":5,"calls":15,"tokens":null,"cost":0.5,"seconds":1500}`, definition.Assumed{}},
		{"backoffs, for each sample", "timeouts: none\nscore: {key: mark, target: 5, judge: {step: a, samples: 3}}\nmax_iterations: 1\nsub_agents: [{name: a, command: [ls], timeout: 1s, output_key: mark, retry: {attempts: 2, backoff: 4s}}]",
			`{"runs":1,"turns":0,"calls":0,"tokens":0,"cost":0,"seconds":18}`, some},
		{"the most samples of a range", "timeouts: none\nscore: {key: mark, target: 5, judge: {step: a, samples: 3..12}}\nmax_iterations: 2\nsub_agents: [{name: a, command: [ls], timeout: 1s, output_key: mark}]",
			`{"runs":1,"turns":0,"calls":0,"tokens":0,"cost":0,"seconds":24}`, some},
		{"what a server may ask for between attempts", "timeouts: none\nmax_iterations: 1\nsub_agents: [{name: a, url: 'http://localhost/', timeout: 1s, retry: {attempts: 3, backoff: 2s, max_backoff: 30s}}]",
			`{"runs":1,"turns":0,"calls":0,"tokens":0,"cost":0,"seconds":63}`, some},
		{"a circuit that is waited for", "timeouts: none\nmax_iterations: 1\nsub_agents: [{name: a, command: [ls], timeout: 1s, circuit: {failures: 2, cooldown: 20s}}]",
			`{"runs":1,"turns":0,"calls":0,"tokens":0,"cost":0,"seconds":21}`, some},
		{"what is read again may cost more", "instructions: a\nmodel: openai/m\nrequest_retry: 1\nprices: {m: {input: 1, cached_input: 3, output: 1}}",
			`{"runs":1,"turns":1,"calls":1,"tokens":150,"cost":0.00035,"seconds":null}`, some},
		{"callbacks", "callbacks: {before_run: [{command: [a], timeout: 2s}], after_agent: [{command: [a]}]}\ncommand: [ls]\ntimeout: 7s",
			`{"runs":1,"turns":0,"calls":0,"tokens":0,"cost":0,"seconds":19}`, some},
		{"callbacks around iterations", "callbacks: {before_iteration: [{command: [a], timeout: 2s}], after_iteration: [{command: [a], timeout: 3s}]}\nmax_iterations: 4\ntimeouts: none\niteration_timeout: 5s\nsub_agents: [{name: a, command: [ls], timeout: 7s}]",
			`{"runs":1,"turns":0,"calls":0,"tokens":0,"cost":0,"seconds":40}`, some},
		{"callbacks within the time of the loop", "callbacks: {after_iteration: [{command: [a], timeout: 1m}]}\nmax_iterations: 4\ntimeout: 30s\niteration_timeout: 5s\nsub_agents: [{name: a, command: [ls], timeout: 7s}]",
			`{"runs":1,"turns":0,"calls":0,"tokens":0,"cost":0,"seconds":30}`, some},
		{"steps at the same time", "type: parallel\nmax_concurrency: 2\nsub_agents:\n  - {name: a, command: [a], timeout: 4s}\n  - {name: b, command: [b], timeout: 4s}\n  - {name: c, command: [c], timeout: 10s}\n",
			`{"runs":1,"turns":0,"calls":0,"tokens":0,"cost":0,"seconds":14}`, some},
	} {
		if diff := cmp.Diff(tt.want, worstOf(t, tt.text, tt.given)); diff != "" {
			t.Errorf("%s:\n%s", tt.name, diff)
		}
	}
}

// X1, T33: how a loop can end, and who may end it.
func TestStops(t *testing.T) {
	d := parse(t, `name: x
max_iterations: 9
stop_when: {any: [state.done, {when: "score > 3", for: 2}]}
score: {key: mark, target: 8, dimensions: [a], dimension_target: 7, min_delta: 0.1, min_delta_percent: 5, patience: 2}
no_progress: true
not_worth: {gain: 0.1, per: minute}
budget: {calls: 40, tokens: 9000}
sub_agents:
  - {name: look, command: [ls], exit_when: result.exit_code == 0}
  - {name: ask, instructions: a, can_exit_loop: true, output_key: mark}
  - {name: set, set: {done: "true"}}
`)
	var got []string
	for _, s := range d.Root.Stops() {
		got = append(got, string(s.Reason)+": "+s.Text)
	}
	want := []string{
		"exit_loop: look: when result.exit_code == 0", "exit_loop: ask: when it calls exit_loop",
		"condition: when (state.done) or ((score > 3) in 2 iterations running)",
		"target_reached: when the score is ≥ 8 and every part of it is ≥ 7", "converged: when the score improves by less than 0.1 or 5%, 2 times running",
		"no_progress: when it goes round in circles", "converged: when the next minute is expected to gain less than 0.1",
		"max_iterations: after 9 iterations", "timeout: after 30m", "budget: when 40 requests or 9,000 tokens are used",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if ways := d.Root.SubAgents[0].Stops(); ways != nil {
		t.Errorf("a command that ends: %v", ways)
	}
}

// LOOP 34: what is worth knowing before a run, with its place, and no mistake.
func TestNotes(t *testing.T) {
	d := parse(t, `name: x
max_iterations: 9
score: {key: mark, target: 8, label: Mark}
sub_agents:
  - {name: both, instructions: Write and give a mark., can_exit_loop: true, output_key: mark}
  - {name: say, text: "{{mark}}", output_key: loop_output}
`)
	var b strings.Builder
	if err := d.Notes().Format(&b); err != nil {
		t.Fatal(err)
	}
	const want = `x.yaml:2:17: note: the 30m of the loop "x" may not be enough for its 9 iterations of up to 5m [LOOP019]
    2 | max_iterations: 9
      |                 ^ give timeout: 45m, or a shorter iteration_timeout
x.yaml:5:12: note: "both" judges itself: no other step of the loop "x" makes anything [LOOP034]
    5 |   - {name: both, instructions: Write and give a mark., can_exit_loop: true, output_key: mark}
      |            ^^^^ let one agent write, and another one judge
x.yaml:6:24: note: when "both" ends the loop, {{mark}} keeps its old value: the turn that ends a loop writes no key [LOOP025]
    6 |   - {name: say, text: "{{mark}}", output_key: loop_output}
      |                        ^^^^^^^^ the key is empty if that was the first turn: let another agent write it; the reason of the exit is in the stop record
3 notes
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	if w := d.Warnings(); w != nil {
		t.Errorf("warnings: %v", w)
	}
}

// LOOP 23: a budget that has no room for a single request is told of before the run,
// and so are branches that wait for each other because of theirs.
func TestRoomInBudgets(t *testing.T) {
	const head = "name: tune\nmax_iterations: 3\n"
	const reviewers = `sub_agents:
  - name: both
    type: parallel
    sub_agents:
      - {name: a, instructions: Judge the draft., can_exit_loop: falseMAX}
      - {name: b, instructions: Judge the draft., can_exit_loop: falseMAX}
`
	const one = "sub_agents: [{name: a, instructions: 'Judge the draft of {{user_input}}.', can_exit_loop: false}]\n"
	for _, tt := range []struct {
		text  string
		given definition.Assumed
		want  string
	}{
		{head + "budget: {tokens: 60}\n" + one, definition.Assumed{}, `no request of "a" fits into the budget of "tune": with its instructions and an answer of 64 tokens it needs 71 tokens, but tokens is 60`},
		{head + "budget: {tokens: 71}\n" + one, definition.Assumed{}, ""},
		{head + "budget: {tokens: 60}\n" + strings.Replace(one, "a,", "a, max_tokens: 20,", 1), definition.Assumed{}, ""},
		{head + one, definition.Assumed{Limits: definition.Limits{Budget: &budget.Limits{Tokens: 60}}}, `no request of "a" fits into the budget of the run`},
		{head + "prices: {openai/m: {input: 1, output: 10}}\nmodel: openai/m\nbudget: {cost: 0.0006}\n" + one, definition.Assumed{}, `it needs 0.000647, but cost is 0.0006`},
		{head + "budget: {tokens: 5000}\n" + strings.ReplaceAll(reviewers, "MAX", ""), definition.Assumed{}, `the branches of "both" wait for each other: their first answers need 8192 tokens in all, but the budget of "tune" has 5000`},
		{head + "budget: {tokens: 5000}\n" + strings.ReplaceAll(reviewers, "MAX", ", max_tokens: 1000"), definition.Assumed{}, ""},
	} {
		var said strings.Builder
		for _, p := range parse(t, tt.text).Worst(tt.given).Notes() {
			if p.Code == definition.CodeStop {
				said.WriteString(p.Message)
			}
		}
		if tt.want == "" && said.String() != "" || !strings.Contains(said.String(), tt.want) {
			t.Errorf("%s\nsays %q, want %q", tt.text, said.String(), tt.want)
		}
	}
}

// LOOP 34, F9, F10: limits from outside take the place of the file's in the worst
// case, as they do in a run.
func TestWorstCaseWithLimits(t *testing.T) {
	const text = "max_iterations: 4\nmodel: openai/m\nprices: {m: {input: 1, output: 1}, own: {input: 0, output: 0}}\nsub_agents: [{name: a, instructions: a, can_exit_loop: true, request_retry: 1}]\n"
	some := definition.Assumed{InputTokens: 60, OutputTokens: 40}
	for _, tt := range []struct {
		name  string
		given func(*definition.Assumed)
		want  string
	}{
		{"none", func(*definition.Assumed) {}, `{"runs":1,"turns":4,"calls":4,"tokens":400,"cost":0.0004,"seconds":1200}`},
		{"iterations", func(a *definition.Assumed) { a.MaxIterations = new(uint(7)) }, `{"runs":1,"turns":7,"calls":7,"tokens":700,"cost":0.0007,"seconds":1800}`},
		{"no end of iterations", func(a *definition.Assumed) { a.MaxIterations = new(uint(0)) }, `{"runs":1,"turns":500,"calls":500,"tokens":50000,"cost":0.05,"seconds":1800}`},
		{"time", func(a *definition.Assumed) { a.Timeout = new(time.Minute) }, `{"runs":1,"turns":4,"calls":4,"tokens":400,"cost":0.0004,"seconds":60}`},
		{"as long as it needs", func(a *definition.Assumed) { a.Timeout = new(time.Duration(0)) }, `{"runs":1,"turns":4,"calls":4,"tokens":400,"cost":0.0004,"seconds":1200}`},
		{"a budget", func(a *definition.Assumed) { a.Budget = &budget.Limits{Calls: 2, Tokens: 150} }, `{"runs":1,"turns":2,"calls":2,"tokens":150,"cost":0.0002,"seconds":1200}`},
		{"what it may cost", func(a *definition.Assumed) { a.Budget = &budget.Limits{Cost: new(0.0001)} }, `{"runs":1,"turns":4,"calls":4,"tokens":400,"cost":0.0001,"seconds":1200}`},
		{"the guard", func(a *definition.Assumed) { a.MaxModelCalls = 2 }, `{"runs":1,"turns":2,"calls":2,"tokens":200,"cost":0.0002,"seconds":1200}`},
		{"no guard", func(a *definition.Assumed) { a.MaxModelCalls, a.MaxIterations = -1, new(uint(0)) }, `{"runs":1,"turns":null,"calls":null,"tokens":null,"cost":null,"seconds":1800}`},
		{"another model for all", func(a *definition.Assumed) { a.EveryModel = "ollama/own" }, `{"runs":1,"turns":4,"calls":4,"tokens":400,"cost":0,"seconds":1200}`},
		{"a model for those that name none", func(a *definition.Assumed) { a.Model = "ollama/own" }, `{"runs":1,"turns":4,"calls":4,"tokens":400,"cost":0.0004,"seconds":1200}`},
	} {
		given := some
		tt.given(&given)
		if diff := cmp.Diff(tt.want, worstOf(t, text, given)); diff != "" {
			t.Errorf("%s:\n%s", tt.name, diff)
		}
	}
}

// X1, LOOP 34: how a loop of a run with limits from outside can end, and what there is
// to say about its times; limits that no run can have.
func TestLimitsFromOutside(t *testing.T) {
	d := parse(t, "name: x\nmax_iterations: 9\nsub_agents: [{name: a, instructions: a, can_exit_loop: true}]\n")
	words := func(given definition.Assumed) (stops, problems string) {
		worst := d.Worst(given)
		for _, w := range worst.Stops(d.Root) {
			stops += w.Text + "; "
		}
		for _, p := range worst.Problems() {
			problems += p.Message + "; "
		}
		return stops, problems
	}
	stops, problems := words(definition.Assumed{})
	if stops != "a: when it calls exit_loop; after 9 iterations; after 30m; " || !strings.Contains(problems, "the 30m of the loop") {
		t.Errorf("without: %q, %q", stops, problems)
	}
	stops, problems = words(definition.Assumed{Limits: definition.Limits{MaxIterations: new(uint(30)), Timeout: new(2 * time.Hour),
		Budget: &budget.Limits{Calls: 40}}})
	if stops != "a: when it calls exit_loop; after 30 iterations; after 2h; when the run has used 40 requests; " ||
		!strings.Contains(problems, "the 2h of the loop") || strings.Contains(problems, "30m") {
		t.Errorf("with more: %q, %q", stops, problems)
	}
	if _, problems = words(definition.Assumed{Limits: definition.Limits{MaxIterations: new(uint(3))}}); problems != "" {
		t.Errorf("with less: %q", problems)
	}
	for _, tt := range []struct {
		text  string
		given definition.Assumed
		want  string
	}{
		{"text: a", definition.Assumed{Limits: definition.Limits{MaxIterations: new(uint(3))}}, "there is no loop"},
		{"type: sequential\nsub_agents: [{name: l, sub_agents: [{name: a, text: a}]}, {name: m, sub_agents: [{name: b, text: b}]}]", definition.Assumed{Limits: definition.Limits{Timeout: new(time.Minute)}}, "there are 2 loops and none is the root"},
		{"sub_agents: [{name: a, text: a}]", definition.Assumed{Limits: definition.Limits{MaxIterations: new(uint(0))}}, "this loop can never stop"},
		{"sub_agents: [{name: a, text: a}]", definition.Assumed{Limits: definition.Limits{MaxIterations: new(uint(0)), Timeout: new(time.Minute)}}, ""},
	} {
		d := parse(t, "name: x\n"+tt.text)
		err := d.Allows(tt.given.Limits)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.text, err, tt.want)
		}
		d.Worst(tt.given) // counts for nothing, and does no harm
	}
}
