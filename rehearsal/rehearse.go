// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/rehearsal/internal/stage"
	"github.com/refrain-dev/refrain/rehearsal/internal/study"
)

// DefaultStepTime is what a step of a rehearsal is supposed to take.
const DefaultStepTime = 10 * time.Second

// Config describes a rehearsal. Its zero value is ready.
type Config struct {
	// Seed varies what is left to chance: what a noisy judge says, and the
	// points of a long run at which it crashes.
	Seed uint64
	// StepTime is how long a step takes by which the process is left; 0 is
	// [DefaultStepTime].
	StepTime time.Duration
	// Input is what the user asks, and Values are the inputs of the definition.
	// Required ones that are missing are made up.
	Input  string
	Values map[string]string
	// Script has answers to be given in place of made-up ones, by agent, where no
	// fault needs others: the n-th one that names an agent, be it one that asks a
	// model or a task, is for iteration n, the last for all behind it. Nil makes
	// all up.
	Script *scripted.Script
	// Agent, if it is set, may give an agent of one's own in place of a stand-in.
	// It must do nothing that cannot be done hundreds of times.
	Agent func(*definition.Agent) (agent.Agent, bool)
	// Faults are those to inject; nil is all.
	Faults []Fault
}

func (c *Config) script() []scripted.Answer {
	if c.Script == nil {
		return nil
	}
	return c.Script.Answers
}

// maxIterations is after how many iterations of a loop a run is cut off. What would
// follow is for the rules to say.
const maxIterations = 60

// Run rehearses a definition. It fails if the agents cannot be made, if the
// config does not fit the definition, or with context.Cause if ctx is over; a
// fault that nothing catches is no error. Besides what the report lists as
// stand-ins, nothing leaves the process.
func Run(ctx context.Context, def *definition.Definition, cfg Config) (*Report, error) {
	cfg.StepTime = cmp.Or(cfg.StepTime, DefaultStepTime)
	s := &bench{Stage: &stage.Stage{Cast: study.NewCast(def), Input: cfg.Input, StepTime: cfg.StepTime,
		Script: cfg.script(), Agent: cfg.Agent}, cfg: cfg}
	rep := &Report{Name: def.Name, Seed: cfg.Seed, StepTime: cfg.StepTime, StandIns: replaced(s.Cast),
		Endings: []Ending{}, Findings: []Finding{}}
	var err error
	if s.State, err = s.initial(rep); err != nil {
		return nil, err
	}
	s.Learn(s.State, cfg.script())
	rep.Notes = append(rep.Notes, s.SideNotes()...)
	if err := s.baseline(ctx, rep); err != nil {
		return nil, fmt.Errorf("rehearse %q: %w", def.Name, err)
	}
	faults := cfg.Faults
	if faults == nil {
		faults = Faults()
	}
	for _, f := range faults {
		inject := injections[f]
		if inject == nil {
			return nil, fmt.Errorf("rehearse %q: there is no fault %q", def.Name, f)
		}
		found, err := inject(s, ctx)
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

// bench is the stage with what has been seen on it.
type bench struct {
	*stage.Stage
	cfg  Config
	base map[string]*stage.Take // nothing goes wrong, by loop
	met  map[string]bool        // that loop ends as it is meant to
}

// injections are the faults: each looks at the definition in a few runs.
var injections = map[Fault]func(*bench, context.Context) ([]Finding, error){
	NeverExits:       (*bench).neverExits,
	NoisyJudge:       (*bench).noisyJudge,
	JudgeInWords:     (*bench).judgeInWords,
	NotANumber:       (*bench).notANumber,
	ScoresRegress:    (*bench).scoresRegress,
	Oscillation:      (*bench).oscillation,
	StepHung:         (*bench).stepHung,
	ProviderHiccup:   (*bench).providerHiccup,
	ProviderDown:     (*bench).providerDown,
	ExitNotPermitted: (*bench).exitNotPermitted,
	StateGrows:       (*bench).stateGrows,
	CostsExplode:     (*bench).costsExplode,
	Crash:            (*bench).crash,
}

// initial is the state that runs begin with. Inputs that are required and not given
// are made up.
func (s *bench) initial(rep *Report) (map[string]any, error) {
	values := make(map[string]string)
	maps.Copy(values, s.cfg.Values)
	for _, in := range s.Def.Inputs {
		if _, given := values[in.Name]; given || !in.Required {
			continue
		}
		values[in.Name] = madeUp[in.Type]
		rep.Notes = append(rep.Notes, fmt.Sprintf("input %q is required; it was made up: %q", in.Name, madeUp[in.Type]))
	}
	return s.Def.InitialState(values)
}

var madeUp = map[definition.InputType]string{
	definition.InputString: "made up", definition.InputPath: "made up", definition.InputInt: "1", definition.InputNumber: "1",
	definition.InputBool: "true", definition.InputList: "[1]", definition.InputMap: "{}",
}

// replaced lists what a rehearsal does not run.
func replaced(c *study.Cast) []StandIn {
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
