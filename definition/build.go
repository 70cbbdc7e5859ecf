// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/hook"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/tool"
)

// BuildConfig is what a definition leaves to whoever runs it.
type BuildConfig struct {
	// Root is the folder that commands run in and do not leave with dir; the
	// default is the current one.
	Root string
	// MaxIterations takes the place of the root loop's limit, or, if the root
	// is no loop, of that of the only loop. Nil leaves it; 0 is no limit, and
	// then something else has to stop the loop.
	MaxIterations *uint
	// Timeout likewise takes the place of how long that loop may take in all; 0
	// is no limit.
	Timeout *time.Duration
	// Model opens the model of a name; each name is asked for once, with the
	// context of Build. Nil is provider.Open with Getenv. A script that the file
	// names comes with its path from the current folder.
	Model func(ctx context.Context, name string) (model.LLM, error)
	// DefaultModel is the name of the model of agents that have none.
	DefaultModel string
	// Tools and Toolsets are the Go functions that a definition can give to its
	// agents, by their names. The names are unique, and none is exit_loop.
	Tools    []tool.Tool
	Toolsets []tool.Toolset
	// Agents make the agents of type func, and Callbacks are the functions that a
	// definition can have told, by the names that it has for them.
	Agents    map[string]NewAgent
	Callbacks map[string]hook.Func
	// CallbackFailed is told of each callback that could not be told something,
	// where nothing comes of that. It may be called by several goroutines. Nil
	// writes a warning to slog.Default.
	CallbackFailed func(error)
	// InitTimeout is how long the opening of each model and of each server of
	// tools may take, with an [*InitError] after that; 0 is what the definition
	// says, and else [DefaultInitTimeout].
	InitTimeout time.Duration
	// Getenv looks up the environment: what models need, and what the file says
	// is passed on to servers of tools. Nil is os.Getenv.
	Getenv func(string) string
	// Cleanup is given functions to call when the agents are of no more use:
	// they end the servers of tools that were started. Nil leaves that to the
	// end of the process.
	Cleanup func(func() error)
	// StandIns take the place of what reaches out of the process, for rehearsals.
	StandIns StandIns
}

// Build makes the agents. Each call makes new ones, for one tree. ctx is for the
// opening of models: the agents do not end with it. The error is about cfg: a
// limit without a loop that it could be for, or one that takes away a loop's
// only bound, or two functions of one name; or it is [Problems], each with its
// place, about models that cannot be opened, agents that have none, functions
// and Go agents that cfg does not have and environment variables that are not set; or an
// [*InitError], about a model that did not open in time.
func (d *Definition) Build(ctx context.Context, cfg BuildConfig) (agent.Agent, error) {
	cfg.InitTimeout = cmp.Or(cfg.InitTimeout, d.InitTimeout, DefaultInitTimeout)
	b := builder{cfg: cfg, kept: d.kept, models: make(map[string]model.LLM), hooks: make(map[*Agent]hooks)}
	if err := b.limit(d); err != nil {
		return nil, fmt.Errorf("build %q: %w", d.Name, err)
	}
	if err := b.resolve(ctx, d.Root); err != nil {
		return nil, err
	}
	return b.build(d.Root)
}

type builder struct {
	cfg     BuildConfig
	limited *Agent // the loop that a limit from outside is for
	limits  Loop   // what that loop then is
	kept    map[*Agent]bool
	models  map[string]model.LLM // by name
	hooks   map[*Agent]hooks

	functions map[string]function
}

func (b *builder) build(a *Agent) (agent.Agent, error) {
	if made, err := b.cfg.StandIns.agent(a); made != nil || err != nil {
		return made, err
	}
	cb := b.around(a)
	switch {
	case a.Type == TypeLLM:
		return b.llm(a)
	case a.Type == TypeA2A:
		return newRemote(a, cb)
	case a.Type == TypeHuman:
		return newHuman(a, cb)
	case a.Type == TypeFunc:
		return b.goAgent(a)
	case !a.Type.Workflow():
		return newTask(a, b.cfg, cb)
	}
	base := agent.Config{Name: a.Name, Description: a.Description, BeforeAgentCallbacks: cb.before, AfterAgentCallbacks: cb.after}
	for _, sub := range a.SubAgents {
		built, err := b.build(sub)
		if err != nil {
			return nil, err
		}
		base.SubAgents = append(base.SubAgents, built)
	}
	switch a.Type {
	case TypeSequential:
		if a.OutputKey != "" {
			base.AfterAgentCallbacks = append([]agent.AfterAgentCallback{keepWords(outputKey(a))}, cb.after...)
		}
		return sequentialagent.New(sequentialagent.Config{AgentConfig: base})
	case TypeParallel:
		if a.OutputKey != "" {
			base.AfterAgentCallbacks = append([]agent.AfterAgentCallback{keepWordsEach(outputKey(a), a)}, cb.after...)
		}
		return parallelagent.New(parallelagent.Config{AgentConfig: base, MaxConcurrency: a.Parallel.MaxConcurrency})
	}
	return b.loop(a, base)
}

// limit finds the loop that limits from outside are for, and what it then is.
func (b *builder) limit(d *Definition) error {
	if b.cfg.MaxIterations == nil && b.cfg.Timeout == nil {
		return nil
	}
	what, field := "max iterations", "max_iterations"
	if b.cfg.MaxIterations == nil {
		what, field = "a timeout is", "timeout"
	}
	var loops []*Agent
	for a := range d.Root.All {
		if a.Type == TypeLoop {
			loops = append(loops, a)
		}
	}
	switch {
	case len(loops) == 0:
		return errors.New(what + " given, but there is no loop")
	case d.Root.Type != TypeLoop && len(loops) > 1:
		return fmt.Errorf("%s given, but there are %d loops and none is the root; set %s in the file", what, len(loops), field)
	}
	l := *loops[0].Loop
	if n := b.cfg.MaxIterations; n != nil {
		l.MaxIterations = *n
	}
	if t := b.cfg.Timeout; t != nil {
		if *t < 0 {
			return fmt.Errorf("the timeout given is negative: %s", *t)
		}
		l.Timeout, l.meant = *t, true
		l.clamp()
	}
	if endless(&l, loops[0]) {
		return fmt.Errorf("%s [%s] (%s)", endlessMessage(loops[0]), CodeEndless, endlessHint)
	}
	b.limited, b.limits = loops[0], l
	return nil
}

// StandIns take the place of what agents do outside of the process, so that a
// definition can be rehearsed. Each of the functions may be nil.
type StandIns struct {
	// Agent makes the agent in place of a. One that is nil, with no error, is
	// made as the file says.
	Agent func(a *Agent) (agent.Agent, error)
	// Toolset stands for a server of tools, which is not started then.
	Toolset func(a *Agent, m *MCP) tool.Toolset
	// Loop and LLM may change what a loop, or an agent that asks a model, is
	// made from. The rules of the loop are in cfg.Plan.
	Loop func(a *Agent, cfg *loopagent.Config)
	LLM  func(a *Agent, cfg *llmagent.Config)
	// NoCallbacks leaves the callbacks out: nobody is told anything.
	NoCallbacks bool
}

func (s *StandIns) agent(a *Agent) (agent.Agent, error) {
	if s.Agent == nil {
		return nil, nil
	}
	return s.Agent(a)
}

func (s *StandIns) loop(a *Agent, cfg *loopagent.Config) {
	if s.Loop != nil {
		s.Loop(a, cfg)
	}
}

func (s *StandIns) llm(a *Agent, cfg *llmagent.Config) {
	if s.LLM != nil {
		s.LLM(a, cfg)
	}
}
