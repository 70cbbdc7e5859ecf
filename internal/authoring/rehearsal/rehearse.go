// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/stage"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/study"
	"github.com/refrain-dev/refrain/model/scripted"
)

// DefaultStepTime is the assumed duration of a step in a rehearsal.
const DefaultStepTime = 10 * time.Second

// Config describes a rehearsal. The zero value is ready to use.
type Config struct {
	// Seed varies what is random: the answers of a noisy judge, and the events of a long run at
	// which it crashes.
	Seed uint64
	// StepTime is the assumed duration of a step outside the process; 0 means [DefaultStepTime].
	StepTime time.Duration
	// Input is the user's message, and Values are the inputs of the definition. Missing required
	// inputs are made up.
	Input  string
	Values map[string]string
	// Script has answers of agents, models or tasks, which replace made-up ones unless a fault
	// needs others: the n-th answer of an agent is for iteration n, its last one for all later
	// iterations. Optional.
	Script *scripted.Script
	// Agent may return an agent in place of a stand-in. The agent is run hundreds of times.
	// Optional.
	Agent func(*definition.Agent) (agent.Agent, bool)
	// Faults are the faults to inject; nil means all.
	Faults []Fault
}

// maxIterations is the number of iterations after which a run of a loop is cut off. The rules of the loop decide what
// would follow.
const maxIterations = 60

// Run rehearses a definition. It fails if the agents cannot be built, if the config does not fit the definition, or
// with context.Cause if ctx ends. A fault that no guard catches is a finding and not an error. Stand-ins replace all
// work outside the process; the report lists them.
func Run(ctx context.Context, def *definition.Definition, cfg Config) (*Report, error) {
	cfg.StepTime = cmp.Or(cfg.StepTime, DefaultStepTime)
	script := cmp.Or(cfg.Script, new(scripted.Script)).Answers
	s := &bench{Stage: &stage.Stage{Cast: study.NewCast(def), Input: cfg.Input, StepTime: cfg.StepTime,
		Script: script, Agent: cfg.Agent}, cfg: cfg}
	rep := &Report{Name: def.Name, Seed: cfg.Seed, StepTime: cfg.StepTime, StandIns: standIns(s.Cast),
		Endings: []Ending{}, Findings: []Finding{}}
	var err error
	if s.State, rep.Notes, err = s.initial(); err != nil {
		return nil, err
	}
	s.Learn(s.State, script)
	rep.Notes = append(rep.Notes, s.SideNotes()...)
	if err := s.baseline(ctx, rep); err != nil {
		return nil, fmt.Errorf("rehearse %q: %w", def.Name, err)
	}
	wanted := cfg.Faults
	if wanted == nil {
		wanted, rep.Simulations = Faults(), s.simulations()
	}
	for _, f := range wanted {
		i := slices.Index(Faults(), f)
		if i < 0 {
			return nil, fmt.Errorf("rehearse %q: there is no fault %q", def.Name, f)
		}
		found, err := faults[i].inject(s, ctx)
		if err != nil {
			return nil, fmt.Errorf("rehearse %q: %s: %w", def.Name, f, err)
		}
		for i := range found {
			found[i].Fault = f
		}
		rep.Findings = append(rep.Findings, found...)
	}
	return rep, nil
}

// bench is the stage with the results so far.
type bench struct {
	*stage.Stage
	cfg  Config
	base map[string]*stage.Take // nothing goes wrong, by loop
	met  map[string]bool        // that loop ends as it is meant to
}

// initial returns the state with which runs begin. It makes up missing required inputs.
func (s *bench) initial() (state map[string]any, notes []string, err error) {
	values := make(map[string]string)
	maps.Copy(values, s.cfg.Values)
	for _, in := range s.Def.Inputs {
		if _, given := values[in.Name]; given || !in.Required {
			continue
		}
		values[in.Name] = makeUp(in)
		notes = append(notes, fmt.Sprintf("input %q is required; it was made up: %q", in.Name, values[in.Name]))
	}
	state, err = s.Def.InitialState(values)
	return state, notes, err
}

// makeUp returns a value for an input: one of its type, and one of its choices or one that matches its
// pattern if it has them.
func makeUp(in definition.Input) string {
	if len(in.Choices) > 0 {
		return in.Choices[0]
	}
	if in.Pattern != "" {
		return study.Matching(in.Pattern, 0)
	}
	return madeUp[in.Type]
}

var madeUp = map[definition.InputType]string{
	definition.InputString: "made up", definition.InputPath: "made up", definition.InputFile: "made up", definition.InputFolder: "made up", definition.InputInt: "1",
	definition.InputNumber: "1", definition.InputBool: "true", definition.InputList: "[1]", definition.InputMap: "{}",
}

// standIns lists the agents and tools that a rehearsal does not run.
func standIns(c *study.Cast) []StandIn {
	all := []StandIn{}
	for a := range c.Def.Root.All {
		if len(a.Callbacks) > 0 {
			all = append(all, StandIn{a.Name, "callbacks"})
		}
		switch {
		case a.Type == definition.TypeLLM:
			all = append(all, StandIn{a.Name, "model"})
			for _, t := range a.LLM.Tools {
				switch {
				case t.MCP != nil:
					all = append(all, StandIn{a.Name, "mcp"})
				case t.Func != "":
					all = append(all, StandIn{t.Func, "func"})
				}
			}
		case study.Reaches(a):
			all = append(all, StandIn{a.Name, string(a.Type)})
		}
	}
	return all
}
