// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// LOOP 1: what check looks at is what runs. For each loop of thousands of made-up
// definitions, the plan that the checks, the worst case and the rehearsal look at is
// the plan of the loop agent that Build makes.
func TestThePlanThatIsCheckedIsThePlanThatRuns(t *testing.T) {
	t.Parallel()
	n := longtest.N(4, frozenMany)
	definitions, loops, policies := 0, 0, 0
	see := func(where, text string, fsys fstest.MapFS) {
		d, err := definition.Parse("x.yaml", []byte(text), definition.Options{FS: fsys})
		if err != nil {
			return // nothing runs
		}
		built, err := d.Build(t.Context(), anyBuild(d))
		if err != nil {
			t.Fatalf("%s: is checked, and cannot be built: %v\n%s", where, err, text)
		}
		definitions++
		for a := range d.Root.All {
			made := agent.Find(built, a.Name)
			if a.Type != definition.TypeLoop || made == nil { // it is in a tool
				continue
			}
			loops++
			ran := made.(*loopagent.Agent).Plan()
			if diff := cmp.Diff(a.Plan(), ran); diff != "" {
				t.Fatalf("%s: the plan of %s (-checked +run):\n%s\n%s", where, a.Name, diff, text)
			}
			for _, s := range ran.Steps {
				if s.OnError != "" || s.DelayBefore > 0 || s.DelayAfter > 0 {
					policies++
				}
			}
		}
	}
	for _, f := range definition.Fields() {
		for i := range n {
			text, part := makerOf(f.Name, i).document(f)
			see(fmt.Sprintf("%s %d", f.Name, i), text, fstest.MapFS{"part.yaml": {Data: []byte(part)}})
		}
	}
	for i := range 10 * n {
		g := &generator{rnd: makerOf("plans", i).Rand}
		see(fmt.Sprintf("tree %d", i), g.definition(), nil)
	}
	if definitions < 10*n || loops < definitions/2 || policies < loops/10 {
		t.Errorf("only %d definitions, %d loops and %d steps with policies were seen", definitions, loops, policies)
	}
}

// A limit from outside is in the plan that runs, and the file's plan stays.
func TestALimitFromOutsideIsInThePlan(t *testing.T) {
	d := parse(t, "name: refine\nsub_agents: [{name: a, text: a}]")
	three := uint(3)
	got := built(t, d, "refine", definition.BuildConfig{Limits: definition.Limits{MaxIterations: &three}}).Plan()
	want := d.Root.Plan()
	if want.MaxIterations != definition.DefaultMaxIterations {
		t.Errorf("the file's plan has %d iterations", want.MaxIterations)
	}
	want.MaxIterations = 3
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if p := d.Root.SubAgents[0].Plan(); p != nil {
		t.Errorf("a template has the plan %+v", p)
	}
}

// anyBuild has the functions and agents that a made-up definition asks for. Nothing of
// it runs.
func anyBuild(d *definition.Definition) definition.BuildConfig {
	cfg := definition.BuildConfig{
		Model: noModel, DefaultModel: "any",
		Getenv: func(string) string { return "made up" },
		Agents: make(map[string]definition.NewAgent),
		StandIns: definition.StandIns{
			NoCallbacks: true,
			Agent: func(a *definition.Agent) (agent.Agent, error) {
				if a.Type.Workflow() {
					return nil, nil
				}
				return agent.New(agent.Config{Name: a.Name})
			},
		},
	}
	seen := make(map[string]bool)
	for a := range d.Root.All {
		cfg.Agents[a.Func] = agent.New
		if a.LLM == nil {
			continue
		}
		for _, t := range a.LLM.Tools {
			if t.Func != "" && !seen[t.Func] {
				seen[t.Func] = true
				cfg.Tools = append(cfg.Tools, namedTool(t.Func))
			}
		}
	}
	return cfg
}

// namedTool is a tool that nobody calls.
type namedTool string

func (n namedTool) Name() string      { return string(n) }
func (namedTool) Description() string { return "" }
func (namedTool) IsLongRunning() bool { return false }

// What a form needs to know about the fields of an agent.
func TestFieldsTellTheTypeAndTheirParts(t *testing.T) {
	for _, tt := range []struct {
		given  string
		fields []string
		want   definition.Type
	}{
		{"parallel", []string{"sub_agents"}, definition.TypeParallel},
		{"no type", []string{"sub_agents", "instructions"}, definition.TypeLoop},
		{"", []string{"name", "instructions"}, definition.TypeLLM},
		{"", []string{"name", "ok_exit_codes"}, definition.TypeCommand},
		{"", []string{"name"}, ""},
	} {
		if got := definition.TypeOf(tt.given, tt.fields...); got != tt.want {
			t.Errorf("%q %q: %q, want %q", tt.given, tt.fields, got, tt.want)
		}
	}
	for path, want := range map[string]string{
		"score judge": "step samples compare", "retry": "attempts backoff max_backoff", "inputs anything": "type default description choices pattern", "goal": "", "nothing": "",
	} {
		if got := strings.Join(definition.Parts(strings.Fields(path)...), " "); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
