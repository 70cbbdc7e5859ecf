// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/definition"
)

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
	stops, problems = words(definition.Assumed{MaxIterations: new(uint(30)), Timeout: new(2 * time.Hour), Budget: &budget.Limits{Calls: 40}})
	if stops != "a: when it calls exit_loop; after 30 iterations; after 2h; when the run has used 40 requests; " || !strings.Contains(problems, "the 2h of the loop") || strings.Contains(problems, "30m") {
		t.Errorf("with more: %q, %q", stops, problems)
	}
	if _, problems = words(definition.Assumed{MaxIterations: new(uint(3))}); problems != "" {
		t.Errorf("with less: %q", problems)
	}
	for _, tt := range []struct {
		text  string
		given definition.Assumed
		want  string
	}{
		{"text: a", definition.Assumed{MaxIterations: new(uint(3))}, "there is no loop"},
		{"type: sequential\nsub_agents: [{name: l, sub_agents: [{name: a, text: a}]}, {name: m, sub_agents: [{name: b, text: b}]}]", definition.Assumed{Timeout: new(time.Minute)}, "there are 2 loops and none is the root"},
		{"sub_agents: [{name: a, text: a}]", definition.Assumed{MaxIterations: new(uint(0))}, "this loop can never stop"},
		{"sub_agents: [{name: a, text: a}]", definition.Assumed{MaxIterations: new(uint(0)), Timeout: new(time.Minute)}, ""},
	} {
		d := parse(t, "name: x\n"+tt.text)
		err := d.Allows(tt.given)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.text, err, tt.want)
		}
		d.Worst(tt.given) // counts for nothing, and does no harm
	}
}
