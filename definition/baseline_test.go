// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"slices"
	"testing"
)

// LOOP 14: a judge that reads what only its iteration has is not asked about the best after a rollback.
func TestJudgeOfOneIteration(t *testing.T) {
	for reads, want := range map[string]bool{"{{draft}}": false, "{{iteration:note}}": true} {
		p := parse(t, "name: x\nstate: {draft: a}\non_regression: rollback\nscore: {key: mark, judge: {step: critic, samples: 3}}\nsub_agents:\n"+
			"  - {name: writer, set: {'iteration:note': iteration}}\n  - {name: critic, instructions: 'Mark this: "+reads+"', output_key: mark}\n").Root.Plan()
		if p.Score.Judge.Bound != want || p.Rejudges() == want {
			t.Errorf("%s: %+v", reads, p.Score.Judge)
		}
	}
}

// LOOP 14a: a baseline is the default where commands measure what other commands make of the files of a workspace.
func TestBaselineOfAWorkspace(t *testing.T) {
	const code, measure = "  - {name: code, command: [sh, -c, my-agent]}\n", "  - {name: tests, command: [sh, -c, ls], tests: counts, output_key: tests}\n"
	for name, c := range map[string]struct {
		text string
		want []string // nil: no baseline
	}{
		"commands measure":      {"workspace: {}\nscore: tests\nsub_agents:\n" + code + measure, []string{"tests"}},
		"the file says no":      {"workspace: {}\nscore: {key: tests, baseline: false}\nsub_agents:\n" + code + measure, nil},
		"no workspace":          {"score: tests\nsub_agents:\n" + code + measure, nil},
		"the file says yes":     {"score: {key: tests, baseline: true}\nsub_agents:\n" + code + measure, []string{"tests"}},
		"the worker measures":   {"workspace: {}\nscore: tests\nsub_agents:\n" + measure, nil},
		"a model gives marks":   {"workspace: {}\nscore: tests\nsub_agents:\n" + code + "  - {name: critic, instructions: Give a mark., output_key: tests}\n", nil},
		"two of an expression":  {"workspace: {}\nscore: {expr: state.tests.passed + state.more.passed}\nsub_agents:\n" + code + measure + "  - {name: more, command: [sh, -c, ls], tests: counts, output_key: more}\n", []string{"tests", "more"}},
		"measured, then worked": {"workspace: {}\nscore: tests\nsub_agents:\n" + measure + code, nil},
	} {
		d := parse(t, "name: x\n"+c.text)
		p := d.Root.Plan()
		var got []string
		for _, i := range p.BaselineSteps() {
			got = append(got, p.Steps[i].Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
