// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"fmt"
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
			MaxIterations: 1, Rules: loop.Plan{Order: order, Steps: []loop.Step{{Name: "final", Finalizer: true}}},
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
		{loopagent.Config{AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{says(t, "a", "x")}}, Rules: loop.Plan{Steps: []loop.Step{{Name: "a", Finalizer: true}}}},
			`loop agent "l": the loop has no steps besides its finalizer "a"`},
		{loopagent.Config{AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{says(t, "a", "x"), says(t, "a", "y")}}},
			`loop agent "l": two steps are called "a"`},
		{loopagent.Config{AgentConfig: agent.Config{SubAgents: []agent.Agent{says(t, "a", "x")}}}, `agent has no name; give it one`},
		{loopagent.Config{AgentConfig: agent.Config{Name: "l", SubAgents: []agent.Agent{says(t, "a", "x")}}, Rules: loop.Plan{OnError: "retry"}},
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
	on := []loop.Step{{Name: "a", OnError: loop.SkipStep}}
	root := must(t)(loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "l", SubAgents: subs}, MaxIterations: 1,
		Rules: loop.Plan{Order: order, CanExit: can, Steps: on},
	}))
	subs[0], order[0], can[0] = says(t, "c", "z"), "c", "c"
	on[0].OnError = loop.StopOnError
	check(t, "events", mustPlay(t, root), []string{"b: y", "a: x", "l: y"}) // a alone may leave: it judges
	cfg := root.(*loopagent.Agent).Config()
	check(t, "order", cfg.Rules.Order, []string{"b", "a"})
	check(t, "can exit", cfg.Rules.CanExit, []string{"a"})
	check(t, "steps", cfg.Rules.Steps, []loop.Step{{Name: "a", OnError: loop.SkipStep}})
}

// A8: a list that names nobody's name is an error.
func TestNewRefusesNamesThatNobodyHas(t *testing.T) {
	_, err := loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "refine", SubAgents: []agent.Agent{says(t, "critic", "x")}},
		Rules:       loop.Plan{CanExit: []string{"critik"}, Steps: []loop.Step{{Name: "x"}, {Name: "final", Finalizer: true}}},
	})
	want := `loop agent "refine": Rules.Steps names "x", which is not one of the sub-agents; correct its name
Rules.Steps names "final", which is not one of the sub-agents; correct its name
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
	l := must(t)(loopagent.New(loopagent.Config{AgentConfig: base, Rules: *p}))
	p.MaxIterations, p.Order[0] = 5, "a"
	check(t, "events", mustPlay(t, l), []string{"b: 2", "a: 1", "b: 2", "a: 1", "c: 3"})
	if got := l.(*loopagent.Agent).Plan(); got.Name != "l" || got.Steps[1].OnError != loop.SkipStep {
		t.Errorf("the plan is %+v", got)
	}
}

// The rules fit the sub-agents, and no limit is given twice.
func TestNewRefusesRulesForOtherAgents(t *testing.T) {
	base := agent.Config{Name: "l", SubAgents: []agent.Agent{says(t, "a", "1"), says(t, "b", "2")}}
	for _, tt := range []struct {
		cfg  loopagent.Config
		want string
	}{
		{loopagent.Config{MaxIterations: 3, Rules: loop.Plan{MaxIterations: 3}}, ""},
		{loopagent.Config{MaxIterations: 5, Rules: loop.Plan{MaxIterations: 3}}, "MaxIterations is 5 and Rules.MaxIterations is 3; set one of them"},
		{loopagent.Config{Rules: loop.Plan{Steps: []loop.Step{{Name: "b"}}}}, ""},
		{loopagent.Config{Rules: loop.Plan{Steps: []loop.Step{{Name: "b"}, {Name: "a"}}}},
			`Rules.Steps has "a" after "b", unlike the sub-agents; use their order, and Rules.Order for another one`},
		{loopagent.Config{Rules: loop.Plan{Steps: []loop.Step{{Name: "a"}, {Name: "a"}}}}, `Rules.Steps names "a" twice; give its rules once`},
		{loopagent.Config{Rules: loop.Plan{Steps: []loop.Step{{Name: "c"}}}}, `Rules.Steps names "c", which is not one of the sub-agents; correct its name`},
		{loopagent.Config{Caches: map[string]loopagent.Cache{"c": {}}}, "the cache of \"c\" belongs to none of the sub-agents; correct its name\n" +
			`the cache of "c" has no Key; set one`},
		{loopagent.Config{Rules: loop.Plan{CanExit: []string{"c"}}}, `CanExit names "c", which is not in the loop; correct the name`},
	} {
		tt.cfg.AgentConfig = base
		_, err := loopagent.New(tt.cfg)
		if got := fmt.Sprint(err); tt.want == "" && err != nil || tt.want != "" && got != `loop agent "l": `+tt.want {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}

// Both names of the limit of iterations have the same effect.
func TestMaxIterationsInTheRules(t *testing.T) {
	base := agent.Config{Name: "l", SubAgents: []agent.Agent{says(t, "a", "x")}}
	for _, cfg := range []loopagent.Config{{MaxIterations: 2}, {Rules: loop.Plan{MaxIterations: 2}}} {
		cfg.AgentConfig = base
		l := must(t)(loopagent.New(cfg))
		check(t, "events", mustPlay(t, l), []string{"a: x", "a: x"})
		check(t, "limit", l.(*loopagent.Agent).Plan().MaxIterations, 2)
	}
}
