// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/definition"
)

// firstProblem is the first thing that is wrong with a file.
func firstProblem(t *testing.T, text string) *definition.Problem {
	t.Helper()
	_, err := definition.Parse("x.yaml", []byte(text), definition.Options{})
	problems, _ := errors.AsType[definition.Problems](err)
	if len(problems) == 0 {
		t.Fatalf("nothing is wrong with\n%s", text)
	}
	return problems[0]
}

// A hint is another thing than what was written.
func TestHintsHelp(t *testing.T) {
	const step = "name: l\nsub_agents:\n  - {name: s, command: [ls], %s}\n"
	for text, want := range map[string]string{
		fmt.Sprintf(step, "delay_before: 999999999h"):                            "the longest times are 99999h, or 1000000000 seconds as a number",
		fmt.Sprintf(step, "retry: {attempts: 2, backoff: 9000000h}"):             "the longest times are 99999h, or 1000000000 seconds as a number",
		fmt.Sprintf(step, "timeout: 5 minutes"):                                  "write 5m",
		fmt.Sprintf(step, "timeout: 9999999 days"):                               "the longest times are 99999h, or 1000000000 seconds as a number",
		fmt.Sprintf(step, "can_exit: true"):                                      `did you mean "can_exit_loop"?`,
		"name: l\nstate_limit: 2000GB\nsub_agents: [{name: s, text: a}]\n":       "a size is between 1 byte and 999GiB",
		"name: l\nstate_limit: 10 megabytes\nsub_agents: [{name: s, text: a}]\n": "write 10MB",
		"name: l\ntype: sequence\nsub_agents: [{name: s, text: a}]\n":            `did you mean "sequential"?`,
		"name: l\ntype: shell\ncommand: [ls]\n":                                  `did you mean "command"?`,
		"name: l\ntimeoust: fats\nsub_agents: [{name: s, text: a}]\n":            `did you mean "timeouts"?`,
		"name: l\ntimeoust: 5m\nsub_agents: [{name: s, text: a}]\n":              `did you mean "timeout"?`,
	} {
		if p := firstProblem(t, text); p.Hint != want {
			t.Errorf("%s%s", text, p.Format())
		}
	}
}

// An agent that an alias repeats is pointed at where the alias is.
func TestAliasOfAnAgentIsPointedAt(t *testing.T) {
	for text, at := range map[string][2]int{
		"name: l\nsub_agents:\n  - &s\n    {name: b, text: x}\n  - {name: c, text: y}\n  - *s\n":                                   {6, 5},
		"name: l\nsub_agents:\n  - &s\n    name: b\n    type: sequential\n    sub_agents: [{name: in, text: x}]\n  - *s\n":         {7, 5},
		"name: l\r\nsub_agents:\r\n  - &s {name: b, text: x}\r\n  - *s\r\n":                                                        {4, 5},
		"name: l\nsub_agents:\n  - &s {name: b, text: x}\n  - {name: c, type: sequential, sub_agents: [{name: d, text: d}, *s]}\n": {4, 66},
	} {
		p := firstProblem(t, text)
		if p.Code != definition.CodeSameName || p.Line != at[0] || p.Column != at[1] || p.Hint == "" {
			t.Errorf("%s%s", text, p.Format())
		}
	}
}

// A whole number may be written as JSON writers in other languages do; a number
// in quotes is digits.
func TestNumbersAreReadAsTheSchemaHasThem(t *testing.T) {
	d := parse(t, "name: l\nmax_iterations: 5.0\ntimeout: 1e3\nstate_limit: 1e6\nsub_agents: [{name: s, command: [ls], timeout: '90', delay_before: 0.1ns}]\n")
	l := d.Root.Loop
	if l.MaxIterations != 5 || time.Duration(l.Timeout) != 1000*time.Second || l.StateLimit != 1_000_000 {
		t.Errorf("%+v", l)
	}
	if s := d.Root.SubAgents[0].Step; time.Duration(s.Timeout) != 90*time.Second || s.DelayBefore != 1 {
		t.Errorf("%+v", s)
	}
	for _, field := range []string{"max_iterations: 5.5", "timeout: '1e3'", "timeout: 5sm", "timeout: µs", "timeout: 99999999999s",
		"state_limit: '1e3'", "state_limit: 0.1B", "timeout: .inf", "state_limit: .nan"} {
		if p := firstProblem(t, "name: l\n"+field+"\nsub_agents: [{name: s, text: a}]\n"); p.Code != definition.CodeValue {
			t.Errorf("%s: %s", field, p.Format())
		}
	}
}

// F11: a definition has a limit for its state unless it says that there is none.
func TestStateLimitOfADefinition(t *testing.T) {
	for line, want := range map[string]int64{"": definition.DefaultStateLimit, "state_limit: none\n": 0, "state_limit: 0\n": 0, "state_limit: 1KB\n": 1000} {
		if got := parse(t, "name: l\n"+line+"sub_agents: [{name: s, text: a}]\n").Root.Loop.StateLimit; got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
}

// One mistake in an expression is one problem, and the keys in it that nobody
// writes are others.
func TestProblemsOfAnExpression(t *testing.T) {
	for when, want := range map[string][]string{
		`state.a == 'abc && state.b == 1 && x`: {`stop_when: the text that begins here does not end: a quote is missing, or one too many (write 'it\'s' for it's)`},
		`state.a = 1`:                          {`stop_when: '=' is nothing in an expression: == compares, and values are set by the keys of set`},
		`state.a >`:                            {`stop_when: the expression is not finished`},
		`state.a ≥ 3 && (`:                     {`stop_when: '≥' is nothing in an expression: write >=`},
		`state.a == 1 && state.bb == foo(3)`:   {`state.bb`, `nothing is called "foo"`},
	} {
		_, err := definition.Parse("x.yaml", fmt.Appendf(nil, "name: l\nstate: {a: 1}\nstop_when: %q\nsub_agents: [{name: s, text: '{{a}}'}]\n",
			when), definition.Options{})
		problems, _ := errors.AsType[definition.Problems](err)
		if len(problems) != len(want) {
			t.Errorf("%s: %v", when, err)
			continue
		}
		for i, p := range problems {
			if !strings.Contains(p.Message, want[i]) {
				t.Errorf("%s: %s", when, p.Message)
			}
		}
	}
	if _, err := definition.Parse("x.yaml", []byte("name: l\nstate: {a: 1}\nset: {k: 'state.a + state.bb + foo(3)'}\n"),
		definition.Options{}); len(codes(err)) != 2 {
		t.Error(err)
	}
}
