// SPDX-License-Identifier: Apache-2.0

// Package loopagent repeats sub-agents until a rule, an agent or a person ends the loop.
//
//	refine, err := loopagent.New(loopagent.Config{
//		AgentConfig:   agent.Config{Name: "refine", SubAgents: []agent.Agent{critic, editor}},
//		MaxIterations: 5,
//	})
//
// With these fields alone it behaves as ADK's loop agent: it yields the events of its
// sub-agents and no others. Package loop decides by rules what to do next. This package
// carries the decisions out.
//
// StopWhen and Score.Expr are expressions, which need an engine: a program that sets one adds
//
//	import _ "github.com/refrain-dev/refrain/expr/cel"
package loopagent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/values/deep"
	"github.com/refrain-dev/refrain/loop"
)

// Agent is the concrete type of [New]'s agents.
type Agent struct {
	*drive.Base
	cfg          Config
	plan         *loop.Plan
	plain        bool          // the loop yields no event with its result, as ADK's loop agent; see Config.plain
	readsHistory bool          // a step reads earlier iterations
	recordedKeys *unloggedKeys // keys to record with each outcome; nil if there are none
	hasInnerLoop bool          // there is a loop inside this one
	asksModels   bool          // an agent in the loop asks a model
	grace        time.Duration
	mayIdle      []bool       // for each step: the step, or an agent inside it, may wait for a provider's limit
	legs         []*drive.Leg // for each leg of the plan: its settings and the agents that get them

	reads    []string // the state keys that the loop's decisions depend on, as far as they are known before it runs
	readsAll bool     // a decision may read any key
}

// Package drive asks for these interfaces.
var (
	_ drive.Describer = (*Agent)(nil)
	_ drive.Reopener  = (*Agent)(nil)
)

// New returns a loop agent; its concrete type is [*Agent]. It returns an error for a config
// that [agent.New] refuses, for a Run function, for a loop without sub-agents, for a mistake that
// loop.Plan.Check finds, and for a name in the config that no agent has.
func New(cfg Config) (agent.Agent, error) {
	name := cfg.AgentConfig.Name
	if cfg.AgentConfig.Run != nil {
		return nil, fmt.Errorf("loop agent %q: LoopAgent doesn't allow custom Run implementations", name)
	}
	cfg = deep.Copy(cfg) // the caller may change the original
	a := &Agent{cfg: cfg}
	base, err := drive.NewBase(cfg.AgentConfig, a, a.run)
	if err != nil {
		return nil, err
	}
	a.Base = base
	a.plan = cfg.plan()
	if err := errors.Join(a.plan.Check(), cfg.check()); err != nil {
		return nil, fmt.Errorf("loop agent %q: %w", name, err)
	}
	if a.legs, err = cfg.checkLegs(a.plan); err != nil {
		return nil, fmt.Errorf("loop agent %q: %w", name, err)
	}
	a.plain = cfg.plain(a.plan)
	a.hasInnerLoop = hasType(a.SubAgents(), agent.TypeLoop)
	a.asksModels = hasType(a.SubAgents(), agent.TypeLLM)
	a.grace = drive.GraceAround(a, cmp.Or(cfg.AbandonAfter, drive.Grace))
	for _, step := range cfg.AgentConfig.SubAgents {
		a.mayIdle = append(a.mayIdle, drive.CanIdle(step))
	}
	a.readsHistory = drive.ReadsHistory(cfg.AgentConfig.SubAgents)
	a.reads, a.readsAll = a.plan.Reads()
	a.reads = append(a.reads, a.plan.Compares()...)
	a.recordedKeys = a.unloggedReads()
	return a, nil
}

// continuesAtOnce reports whether the loop continues after a step or an iteration without a wait and
// without a call of the user's code: see [mark.Mark.Batch].
func (a *Agent) continuesAtOnce() bool {
	p := a.plan
	waits := func(s loop.Step) bool { return s.DelayBefore > 0 || s.DelayAfter > 0 || s.Circuit != nil }
	return !a.caches() && len(a.cfg.BeforeIteration) == 0 && len(a.cfg.AfterIteration) == 0 && a.cfg.OnStop == nil &&
		p.DelayBefore == 0 && p.DelayAfter == 0 && !slices.ContainsFunc(p.Steps, waits)
}

// caches reports whether a step has a cache. The key of a cache comes from a function of the user.
func (a *Agent) caches() bool { return len(a.cfg.Caches) > 0 }

// hasType reports whether the given agents, or agents below them, include one of the given type.
func hasType(agents []agent.Agent, is agent.Type) bool {
	return slices.ContainsFunc(agents, func(a agent.Agent) bool {
		return agent.TypeOf(a) == is || hasType(a.SubAgents(), is)
	})
}

// Config returns the config that the agent was made from.
func (a *Agent) Config() Config { return a.cfg }

// Plan returns the rules of the loop. Do not change them.
func (a *Agent) Plan() *loop.Plan { return a.plan }

// Traits describes the loop to its caller. A loop with a cache does not run inline, because the function for the cache's
// key is code of the user that runs without a grace.
func (a *Agent) Traits(durable bool) drive.Traits {
	grace := a.stepGrace(durable)
	return drive.Traits{StepGrace: grace, Inline: grace > 0 && !a.caches(), ReadsState: a.reads, ReadsAnyState: a.readsAll}
}

// Type returns [agent.TypeLoop].
func (a *Agent) Type() agent.Type { return agent.TypeLoop }
