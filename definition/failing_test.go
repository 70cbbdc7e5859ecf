// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/session"
)

var errOutOfOrder = errors.New("out of order")

// failing makes Go agents that fail, and note when they ran.
func failing(ran *[]string) map[string]definition.NewAgent {
	start := time.Now()
	work := func(err error) definition.NewAgent {
		return func(cfg agent.Config) (agent.Agent, error) {
			cfg.Run = func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
				return func(yield func(*session.Event, error) bool) {
					*ran = append(*ran, fmt.Sprint(cfg.Name, " ", time.Since(start)))
					ev := &session.Event{}
					if ev.Content = genai.NewContentFromText(cfg.Name, genai.RoleModel); err != nil {
						ev = nil
					}
					yield(ev, err)
				}
			}
			return agent.New(cfg)
		}
	}
	return map[string]definition.NewAgent{"work": work(nil), "fail": work(errOutOfOrder)}
}

// A21, G3, C14, LOOP 20: one meaning of failing: each step of a loop, a sequence and a parallel agent has on_error and delays,
// and a loop has a switch for its steps and one for itself.
func TestFailing(t *testing.T) {
	inner := func(more string) string {
		return "{name: inner, max_iterations: 2, " + more + "sub_agents: [{name: a, func: fail}]}"
	}
	line := func(kind, first string) string {
		return "name: all\ntype: " + kind + "\nsub_agents:\n  - " + first + "\n  - {name: b, func: work}\n"
	}
	loop := func(first string) string {
		return "name: all\nmax_iterations: 1\nsub_agents:\n  - " + first + "\n  - {name: b, func: work}\n"
	}
	for name, tt := range map[string]struct {
		text, ran string
		took      time.Duration
		fails     bool
	}{
		"a step of a sequence":                   {line("sequential", "{name: a, func: fail}"), "a 0s", 0, true},
		"a step that is skipped":                 {line("sequential", "{name: a, func: fail, on_error: skip_step}"), "a 0s, b 0s", 0, false},
		"a step that says it by continue":        {line("sequential", "{name: a, func: fail, continue_on_error: true}"), "a 0s, b 0s", 0, false},
		"a step with delays":                     {line("sequential", "{name: a, func: fail, on_error: skip_step, delay_before: 1s, delay_after: 1m}"), "a 1s, b 1m1s", 61 * time.Second, false},
		"a step that ends it, with a delay":      {line("sequential", "{name: a, func: fail, delay_after: 1m}"), "a 0s", time.Minute, true},
		"a branch":                               {line("parallel", "{name: a, func: fail, on_error: skip_step, delay_before: 1s}"), "b 0s, a 1s", time.Second, false},
		"a loop that fails":                      {line("sequential", inner("continue_on_error: true, ")), "a 0s, a 0s", 0, true},
		"a loop that fails, and is skipped":      {line("sequential", inner("continue_on_error: true, on_error: skip_step, ")), "a 0s, a 0s, b 0s", 0, false},
		"the same in a loop":                     {loop(inner("continue_on_error: true, on_error: skip_step, ")), "a 0s, a 0s, b 0s", 0, false},
		"not skipped in a loop":                  {loop(inner("continue_on_error: true, ")), "a 0s, a 0s", 0, true},
		"a loop with one word for both":          {loop(inner("on_error: skip_step, ")), "a 0s, a 0s, b 0s", 0, false},
		"a loop that fails, with a delay after":  {loop(inner("continue_on_error: true, on_error: skip_step, delay_after: 1m, ")), "a 0s, a 0s, b 1m0s", time.Minute, false},
		"a root loop that fails, with its delay": {"name: all\nmax_iterations: 2\ndelay_before: 1s\ndelay_after: 1m\nsub_agents: [{name: a, func: fail}]\n", "a 1s", 61 * time.Second, true},
		"next_iteration of a loop in a sequence": {line("sequential", inner("on_error: next_iteration, ")), "a 0s, a 0s", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ran []string
				start := time.Now()
				h := newHouse(t, tt.text, definition.BuildConfig{Agents: failing(&ran)})
				err := h.run()
				if got := strings.Join(ran, ", "); got != tt.ran || time.Since(start) != tt.took {
					t.Errorf("ran %s and took %s, want %s and %s", got, time.Since(start), tt.ran, tt.took)
				}
				if tt.fails != errors.Is(err, errOutOfOrder) || !tt.fails && err != nil {
					t.Errorf("it ends with %v", err)
				}
				if worst := h.def.Worst(definition.Assumed{}); !worst.Total.Seconds.Unbounded() && float64(worst.Total.Seconds) < tt.took.Seconds() {
					t.Errorf("it took %s, which is more than the worst case, %v", tt.took, worst.Total.Seconds)
				}
			})
		})
	}
}

// C14: what no composite knows is refused, with what to write.
func TestFailingWhereItHasNoMeaning(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"next_iteration in a sequence": {"name: s\ntype: sequential\nsub_agents: [{name: a, text: a, on_error: next_iteration}]\n",
			`x.yaml:3:43: error: "a" is not a step of a loop, so no iteration follows when it fails [LOOP016] (give it stop or skip_step)`},
		"both switches of the root": {"name: l\ncontinue_on_error: true\non_error: skip_step\nsub_agents: [{name: a, text: a}]\n",
			"x.yaml:2:1: error: continue_on_error and on_error say the same; give one of them [LOOP007] ()"},
		"the root": {"name: a\ntext: a\ndelay_after: 1s\n",
			`x.yaml:3:14: error: delay_after is for the steps of loops, sequences and parallel agents, and for a loop at the root; "a" is none of them [LOOP016] ()`},
		"a retry in a sequence": {"name: s\ntype: sequential\nsub_agents: [{name: a, text: a, retry: 2}]\n",
			`x.yaml:3:40: error: retry is for steps of a loop; "a" is not one [LOOP016] ()`},
	} {
		_, err := definition.Parse("x.yaml", []byte(tt.text), definition.Options{})
		problems, _ := errors.AsType[definition.Problems](err)
		if len(problems) == 0 || problems[0].Error()+" ("+problems[0].Hint+")" != tt.want {
			t.Errorf("%s: got %v, want %s", name, err, tt.want)
		}
	}
}
