// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/parallelagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/sequentialagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
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
	// Model opens the model of a name; each name is asked for once. Nil is
	// provider.Open, with the environment of the process. A script that the
	// file names comes with its path from the current folder.
	Model func(ctx context.Context, name string) (model.LLM, error)
	// DefaultModel is the name of the model of agents that have none.
	DefaultModel string
	// Cleanup is given functions to call when the agents are of no more use:
	// they end the servers of tools that were started. Nil leaves that to the
	// end of the process.
	Cleanup func(func() error)
}

// Build makes the agents. Each call makes new ones, for one tree. The error is
// about cfg: a limit without a loop that it could be for, or one that takes away
// a loop's only bound; or it is [Problems], each with its place, about models
// that cannot be opened and agents that have none.
func (d *Definition) Build(cfg BuildConfig) (agent.Agent, error) {
	b := builder{cfg: cfg, kept: d.kept, models: make(map[string]model.LLM)}
	if cfg.MaxIterations != nil {
		var err error
		if b.limited, err = d.limited(*cfg.MaxIterations); err != nil {
			return nil, fmt.Errorf("build %q: %w", d.Name, err)
		}
	}
	if err := b.open(d.Root); err != nil {
		return nil, err
	}
	return b.build(d.Root)
}

// limited is the loop that a limit from outside is for.
func (d *Definition) limited(n uint) (*Agent, error) {
	var loops []*Agent
	for a := range d.Root.All {
		if a.Type == TypeLoop {
			loops = append(loops, a)
		}
	}
	switch {
	case len(loops) == 0:
		return nil, errors.New("max iterations given, but there is no loop")
	case d.Root.Type != TypeLoop && len(loops) > 1:
		return nil, fmt.Errorf("max iterations given, but there are %d loops and none is the root; set max_iterations in the file", len(loops))
	}
	l := *loops[0].Loop
	l.MaxIterations = n
	if endless(&l, loops[0]) {
		return nil, fmt.Errorf("%s [%s] (%s)", endlessMessage(loops[0]), CodeEndless, endlessHint)
	}
	return loops[0], nil
}

type builder struct {
	cfg     BuildConfig
	limited *Agent
	kept    map[*Agent]bool
	models  map[string]model.LLM // by name
}

func (b *builder) build(a *Agent) (agent.Agent, error) {
	if a.Type == TypeLLM {
		return b.llm(a)
	}
	if !a.Type.Workflow() {
		return newTask(a, b.cfg)
	}
	base := agent.Config{Name: a.Name, Description: a.Description}
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
			base.AfterAgentCallbacks = []agent.AfterAgentCallback{keepWords(outputKey(a))}
		}
		return sequentialagent.New(sequentialagent.Config{AgentConfig: base})
	case TypeParallel:
		if a.OutputKey != "" {
			base.AfterAgentCallbacks = []agent.AfterAgentCallback{keepWordsEach(outputKey(a), a)}
		}
		return parallelagent.New(parallelagent.Config{AgentConfig: base, MaxConcurrency: a.Parallel.MaxConcurrency})
	}
	return b.loop(a, base)
}

func (b *builder) loop(a *Agent, base agent.Config) (agent.Agent, error) {
	l := a.Loop
	cfg := loopagent.Config{
		AgentConfig: base, MaxIterations: l.MaxIterations, Order: slices.Clone(l.Order), CanExit: canExit(a),
		Goal: l.Goal, Instructions: l.Instructions,
		StopWhen: l.StopWhen, StopCheck: l.StopCheck, Score: l.Score,
		OnError: a.OnError, MaxConsecutiveFailures: l.MaxConsecutiveFailures,
		OutputKey: outputKey(a), KeepStates: b.kept[a],
	}
	if b.limited == a {
		cfg.MaxIterations = *b.cfg.MaxIterations
	}
	for _, sub := range a.SubAgents {
		if sub.OnError != "" && sub.Type != TypeLoop {
			if cfg.StepOnError == nil {
				cfg.StepOnError = make(map[string]loop.ErrorPolicy)
			}
			cfg.StepOnError[sub.Name] = sub.OnError
		}
	}
	if f := a.finalizer(); f != nil {
		cfg.Finalizer = f.Name
	}
	return loopagent.New(cfg)
}

// outputKey is the key that an agent writes. A finalizer's mark is a key of the
// state only where its loop is the outermost: the result of a nested loop is
// under that loop's own output key.
func outputKey(a *Agent) string {
	if a.OutputKey == LoopOutput && a.parent != nil && a.parent.loopAround() != nil {
		return ""
	}
	return a.OutputKey
}
