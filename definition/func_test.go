// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/session"
)

// reviewer is a Go agent: it says how long the draft is, and leaves the loop when
// that is enough.
func reviewer(cfg agent.Config) (agent.Agent, error) {
	cfg.Run = func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			draft, err := drive.At(ctx).State().Get("draft")
			if err != nil {
				yield(nil, err)
				return
			}
			n := len(fmt.Sprint(draft))
			ev := &session.Event{}
			ev.Content = genai.NewContentFromText(fmt.Sprintf("%d letters", n), genai.RoleModel)
			if ev.Actions.Escalate = n > 6; n > 6 {
				ev.Actions.Exit = &session.Exit{By: ctx.Agent().Name(), Reason: "long enough"}
			}
			yield(ev, nil)
		}
	}
	return agent.New(cfg)
}

const reviewed = `name: write
max_iterations: 5
inputs: {topic: a cat}
state: {draft: ""}
sub_agents:
  - {name: add, set: {draft: "state.draft + 'abc'"}}
  - {name: check, func: reviewer, output_key: verdict, can_exit_loop: true, description: Counts., timeout: 5s}
  - {name: say, text: "{{verdict}}", output_key: loop_output}
`

// A12: an agent of a Go program is one like any other: its words go to its output
// key, it may end the loop, and callbacks are told of it.
func TestGoAgentInAFile(t *testing.T) {
	l := new(listener)
	cfg := l.config()
	cfg.Agents = map[string]definition.NewAgent{"reviewer": reviewer}
	h := newHouse(t, strings.Replace(reviewed, "timeout: 5s", "callbacks: {after_agent: [{func: hear}]}", 1), cfg)
	if err := h.run(); err != nil {
		t.Fatal(err)
	}
	if got := h.state("loop_output"); got != "9 letters" || len(l.told) != 3 {
		t.Errorf("it ends with %v, and told %q", got, l.ids())
	}
	root, err := h.def.Build(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if a := agent.Find(root, "check"); a.Description() != "Counts." {
		t.Errorf("it is described as %q", a.Description())
	}
	if ways := h.def.Root.Stops(); ways[0].Text != "check: when its Go code asks for it" {
		t.Errorf("it ends %v", ways)
	}
	worst := h.def.Worst(definition.Assumed{})
	if !worst.Agents[2].Calls.Unbounded() && float64(worst.Total.Calls) != agent.DefaultMaxLLMCalls {
		t.Errorf("at the most %+v", worst.Total)
	}
	if notes := worst.Notes().Error(); !strings.Contains(notes, `"check" is a Go agent and may ask models`) {
		t.Errorf("notes: %s", notes)
	}
	if w := h.def.Warnings(); w != nil {
		t.Errorf("warnings: %v", w) // it may read the input
	}
}

// What a program gives in place of an agent is refused.
func TestGoAgentsThatAreNone(t *testing.T) {
	broken := errors.New("broken")
	for want, f := range map[string]definition.NewAgent{
		"broken":           func(agent.Config) (agent.Agent, error) { return nil, broken },
		"made none":        func(agent.Config) (agent.Agent, error) { return nil, nil },
		`is called "other`: func(agent.Config) (agent.Agent, error) { return agent.New(agent.Config{Name: "other"}) },
	} {
		_, err := parse(t, reviewed).Build(t.Context(), definition.BuildConfig{Agents: map[string]definition.NewAgent{"reviewer": f}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `Go agent "check"`) {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}
