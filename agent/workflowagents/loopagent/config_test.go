// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
)

// A15, A16, G1, C16: the order may be given by names.
func TestOrder(t *testing.T) {
	ordered := func(order ...string) (agent.Agent, error) {
		return loopagent.New(loopagent.Config{
			AgentConfig:   agent.Config{Name: "l", SubAgents: []agent.Agent{says(t, "critic", "1"), says(t, "final", "3"), says(t, "editor", "2")}},
			MaxIterations: 1, Order: order, Finalizer: "final",
		})
	}
	check(t, "events", mustPlay(t, must(t)(ordered("editor", "critic"))), []string{"editor: 2", "critic: 1", "final: 3"})
	for _, tt := range []struct {
		order []string
		want  string
	}{
		{[]string{"editor", "critik"}, "loop agent \"l\": Order name not found in agent names: critik (did you mean \"critic\"?)\n" +
			`Order leaves out "critic" (it must name every agent once)`},
		{[]string{"editor"}, `loop agent "l": Order leaves out "critic" (it must name every agent once)`},
		{[]string{"editor", "critic", "editor"}, `loop agent "l": Order names "editor" twice`},
		{[]string{"editor", "critic", "final"}, `loop agent "l": Order names the finalizer "final" (it runs after the last iteration)`},
	} {
		if _, err := ordered(tt.order...); err == nil || err.Error() != tt.want {
			t.Errorf("order %q: error %v, want %s", tt.order, err, tt.want)
		}
	}
}

// C1, A8: a loop without steps would spin; two steps of one name cannot be told
// apart.
func TestNewRefusesLoopsThatCannotRun(t *testing.T) {
	for _, tt := range []struct {
		cfg  loopagent.Config
		want string
	}{
		{loopagent.Config{AgentConfig: agent.Config{Name: "l"}}, `loop agent "l": the loop has no steps`},
		{loopagent.Config{AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{says(t, "a", "x")}}, Finalizer: "a"},
			`loop agent "l": the loop has no steps besides its finalizer "a"`},
		{loopagent.Config{AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{says(t, "a", "x"), says(t, "a", "y")}}},
			`loop agent "l": two steps are called "a"`},
		{loopagent.Config{AgentConfig: agent.Config{SubAgents: []agent.Agent{says(t, "a", "x")}}}, `agent has no name; give it one`},
		{loopagent.Config{AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{says(t, "a", "x")}}, OnError: "retry"},
			`loop agent "l": on_error is "retry" (use "stop", "skip_step" or "next_iteration")`},
	} {
		if _, err := loopagent.New(tt.cfg); err == nil || err.Error() != tt.want {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}

// What the caller does to his config afterwards does not reach the loop.
func TestConfigIsCopied(t *testing.T) {
	subs := []agent.Agent{says(t, "a", "x"), says(t, "b", "y")}
	order := []string{"b", "a"}
	can := []string{"a"}
	on := map[string]loopagent.StepPolicy{"a": {OnError: loop.SkipStep}}
	root := must(t)(loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "l", SubAgents: subs}, MaxIterations: 1,
		Order: order, CanExit: can, Steps: on,
	}))
	subs[0], order[0], can[0] = says(t, "c", "z"), "c", "c"
	delete(on, "a")
	check(t, "events", mustPlay(t, root), []string{"b: y", "a: x", "l: y"}) // a alone may leave: it judges
	cfg := root.(*loopagent.Agent).Config()
	check(t, "order", cfg.Order, []string{"b", "a"})
	check(t, "can exit", cfg.CanExit, []string{"a"})
	check(t, "policies", len(cfg.Steps), 1)
}

// A8: a list that names nobody's name is an error.
func TestNewRefusesNamesThatNobodyHas(t *testing.T) {
	_, err := loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{says(t, "critic", "x")}},
		CanExit:     []string{"critik"}, Finalizer: "final", Steps: map[string]loopagent.StepPolicy{"x": {}, "a": {}},
	})
	want := `loop agent "refine": finalizer "final" is not one of the sub-agents; correct its name
policy for step "a", which is not one of the sub-agents; correct its name
policy for step "x", which is not one of the sub-agents; correct its name
CanExit names "critik", which is not in the loop; correct the name`
	if err == nil || err.Error() != want {
		t.Errorf("error:\n%v\nwant:\n%s", err, want)
	}
}

// LOOP 1: a loop follows the plan that it is given, which is its caller's to change
// afterwards.
func TestLoopFollowsAPlan(t *testing.T) {
	p := &loop.Plan{
		MaxIterations: 2, CanExit: []string{}, Order: []string{"b", "a"},
		Steps: []loop.Step{{Name: "a"}, {Name: "b", OnError: loop.SkipStep}, {Name: "c", Finalizer: true}},
	}
	base := agent.Config{Name: "l", SubAgents: []agent.Agent{says(t, "a", "1"), says(t, "b", "2"), says(t, "c", "3")}}
	l := must(t)(loopagent.New(loopagent.Config{AgentConfig: base, Plan: p}))
	p.MaxIterations, p.Order[0] = 5, "a"
	check(t, "events", mustPlay(t, l), []string{"b: 2", "a: 1", "b: 2", "a: 1", "c: 3"})
	if got := l.(*loopagent.Agent).Plan(); got.Name != "l" || got.Steps[1].OnError != loop.SkipStep {
		t.Errorf("the plan is %+v", got)
	}
}

// A plan is the only place of the rules, and its steps are the sub-agents.
func TestNewRefusesAPlanForOtherAgents(t *testing.T) {
	base := agent.Config{Name: "l", SubAgents: []agent.Agent{says(t, "a", "1"), says(t, "b", "2")}}
	steps := []loop.Step{{Name: "a"}, {Name: "b"}}
	const twice = `loop agent "l": the rules are both in Plan and in other fields; use one of the two`
	const others = `loop agent "l": the steps of Plan are not the sub-agents; give them the same names in the same order`
	for _, tt := range []struct {
		cfg  loopagent.Config
		want string
	}{
		{loopagent.Config{Plan: &loop.Plan{Steps: steps}, MaxIterations: 2}, twice},
		{loopagent.Config{Plan: &loop.Plan{Steps: steps}, CanExit: []string{}}, twice},
		{loopagent.Config{Plan: &loop.Plan{Steps: steps}, Finalizer: "b"}, twice},
		{loopagent.Config{Plan: &loop.Plan{Steps: steps}, Steps: map[string]loopagent.StepPolicy{"a": {Timeout: 1}}}, twice},
		{loopagent.Config{Plan: &loop.Plan{Steps: steps[:1]}}, others},
		{loopagent.Config{Plan: &loop.Plan{Steps: []loop.Step{{Name: "b"}, {Name: "a"}}}}, others},
		{loopagent.Config{Plan: &loop.Plan{Steps: steps, CanExit: []string{"c"}}}, `loop agent "l": CanExit names "c", which is not in the loop; correct the name`},
	} {
		tt.cfg.AgentConfig = base
		if _, err := loopagent.New(tt.cfg); err == nil || err.Error() != tt.want {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}
