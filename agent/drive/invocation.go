// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/internal/driver"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
)

// Invocation is one call of a runner, for [NewInvocation].
type Invocation struct {
	// ID identifies the invocation.
	ID string
	// Session is the session of the invocation.
	Session session.Session
	// UserContent is the message that started it.
	UserContent *genai.Content
	// RunConfig is the caller's configuration; nil means the defaults.
	RunConfig *agent.RunConfig
	// Artifacts and Memory are optional.
	Artifacts agent.Artifacts
	Memory    agent.Memory
	// Marks makes steps and loops write marks into the log.
	Marks bool
	// Refuse, if it is set, cancels the run with an error. The log then records that the run was canceled, not that it
	// failed, so a run with marks can be resumed.
	Refuse func(error)
	// Logged is the size of the run's events in the log, in bytes: see [session.Event.Weight]. It is nil without
	// RunConfig.LogLimit.
	Logged *atomic.Int64
	// Replay answers the steps of a resumed run. It is nil in a new run.
	Replay *Replay
	// Callbacks apply to all steps of the invocation; nil means none.
	Callbacks *Callbacks
}

// NewInvocation returns the context in which a runner runs its root agent by [Run]. Tests of
// agents use it too.
func NewInvocation(ctx context.Context, in Invocation) agent.InvocationContext {
	if in.RunConfig == nil {
		in.RunConfig = new(agent.RunConfig)
	}
	run := &runContext{Invocation: in, modelCalls: new(atomic.Int64), cache: new(sync.Map)}
	if in.Callbacks != nil {
		run.eventMu = new(sync.Mutex)
	}
	inv := &invocation{Context: ctx, stepContext: ctx, stepInfo: &stepInfo{run: run, budget: run.newBudget()}}
	if in.Replay != nil {
		inv.logged = in.Replay.log.root
		if m := in.RunConfig.Meter; m != nil {
			m.Run(in.ID).Recount(inv.logged.totalUsage())
		}
		inv.chargeReplayed(inv.budget)
	}
	return inv
}

// runContext holds what all steps of one invocation have in common.
type runContext struct {
	Invocation
	modelCalls     *atomic.Int64
	unlimitedMeter budget.Meter // of a run without a budget and prices
	cache          *sync.Map    // see Place.Cached; nil in a context that another package made
	eventMu        *sync.Mutex  // held by Callbacks.OnEvent; nil without Callbacks
}

// stepInfo has the data that all runs of a step share. It does not change after it was set.
type stepInfo struct {
	run    *runContext
	parent *invocation // of the step around this one, or of the run; nil for the run itself
	agent  agent.Agent
	branch string
	tree   *Tree
	budget *budget.Meter
	grace  time.Duration // for the steps of the agent: see Inline; 0 means none
}

// position is where in the run one run of a step is.
type position struct {
	address        session.Address
	iteration      int
	attempt        int // counts the runs that were cut off, as the log does
	countedAttempt int // does not count them
	loop           *Loop
	fence          *fence      // nil if nothing around the step can be abandoned
	logged         *stepRun    // the step's run in the log of a resumed run; else nil
	work           *agent.Work // of the step or of one around it; a pause waits for it
}

// invocation is the context of one run of a step, or of a whole run above its root.
type invocation struct {
	context.Context // the caller's; steps do not wrap it, so it does not grow with depth

	stepContext context.Context // of the step, which can run sub-agents under another one
	*stepInfo
	position
	toolCalls *toolLog // nil if the step has made no tool calls
	ended     atomic.Bool
	children  atomic.Pointer[childCount]
	foreign   bool // the context was not created by this package
}

// childCount counts how often a step ran each of its sub-agents, to tell their
// addresses apart.
type childCount struct {
	mu   sync.Mutex
	runs map[string]int
}

func (c *childCount) nextRun(name string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs == nil {
		c.runs = make(map[string]int)
	}
	c.runs[name]++
	return c.runs[name]
}

func (i *invocation) Agent() agent.Agent          { return i.agent }
func (i *invocation) Memory() agent.Memory        { return i.run.Memory }
func (i *invocation) InvocationID() string        { return i.run.ID }
func (i *invocation) Branch() string              { return i.branch }
func (i *invocation) UserContent() *genai.Content { return i.run.UserContent }
func (i *invocation) RunConfig() *agent.RunConfig { return i.run.RunConfig }
func (i *invocation) EndInvocation()              { i.ended.Store(true) }
func (i *invocation) Ended() bool                 { return i.ended.Load() }

func (i *invocation) Session() session.Session { return i.seenBy(i.run.Session) }

func (i *invocation) Artifacts() agent.Artifacts {
	if i.fence != nil && i.run.Artifacts != nil {
		return fencedArtifacts{i.run.Artifacts, i.fence}
	}
	return i.run.Artifacts
}

// WithoutStep returns the context of a whole run, outside of its steps. Its Agent returns a, the agent that the
// run is for.
func WithoutStep(ctx agent.InvocationContext, a agent.Agent) agent.InvocationContext {
	c := parentInvocation(ctx).copy(ctx)
	info := *c.stepInfo
	info.agent, c.stepInfo = a, &info
	return c
}

func (i *invocation) WithContext(ctx context.Context) agent.InvocationContext { return i.copy(ctx) }

func (i *invocation) copy(ctx context.Context) *invocation {
	c := &invocation{
		Context: ctx, stepContext: i.stepContext, stepInfo: i.stepInfo, position: i.position, toolCalls: i.toolCalls,
	}
	c.ended.Store(i.Ended())
	c.children.Store(i.childCounter())
	return c
}

type invocationKey struct{}

// Value returns the invocation for invocationKey, so that invocationOf finds it behind a context that wraps it.
func (i *invocation) Value(key any) any {
	switch key {
	case invocationKey{}:
		return i
	case driver.AddressKey{}:
		return &i.address
	}
	return i.Context.Value(key)
}

// invocationOf finds the invocation behind a context that may wrap it; nil if
// there is none.
func invocationOf(ctx agent.InvocationContext) *invocation {
	if inv, ok := ctx.(*invocation); ok {
		return inv
	}
	inv, _ := ctx.Value(invocationKey{}).(*invocation)
	return inv
}

// parentInvocation returns the invocation under which a child runs. If ctx wraps an invocation, or comes from another
// package, the result has the values that the methods of ctx return.
func parentInvocation(ctx agent.InvocationContext) *invocation {
	if inv, ok := ctx.(*invocation); ok {
		return inv
	}
	run := &runContext{modelCalls: new(atomic.Int64), Invocation: Invocation{
		ID: ctx.InvocationID(), Session: ctx.Session(), UserContent: ctx.UserContent(),
		RunConfig: cmp.Or(ctx.RunConfig(), new(agent.RunConfig)), Artifacts: ctx.Artifacts(), Memory: ctx.Memory(),
	}}
	info := &stepInfo{run: run, agent: ctx.Agent(), branch: ctx.Branch()}
	inv := invocationOf(ctx)
	if inv == nil {
		info.budget = run.newBudget()
		return &invocation{Context: ctx, stepContext: ctx, stepInfo: info, foreign: true}
	}
	run.Marks, run.Replay, run.modelCalls = inv.run.Marks, inv.run.Replay, inv.run.modelCalls
	run.cache, run.Callbacks, run.eventMu = inv.run.cache, inv.run.Callbacks, inv.run.eventMu
	info.parent, info.tree, info.budget = inv.parent, inv.tree, inv.budget
	p := &invocation{
		Context: ctx, stepContext: inv.stepContext, stepInfo: info, position: inv.position, toolCalls: inv.toolCalls,
	}
	p.children.Store(inv.childCounter())
	return p
}

// childCounter returns the step's child count. The first call makes it, because most steps run each child with a
// given address and need no count.
func (i *invocation) childCounter() *childCount {
	if c := i.children.Load(); c != nil {
		return c
	}
	i.children.CompareAndSwap(nil, new(childCount))
	return i.children.Load()
}

// childAddress returns the address of the next run of a sub-agent, with a number from the second run on, such as
// "story/draft#2".
func (i *invocation) childAddress(name string) session.Address {
	addr := name
	if i.address != "" {
		addr = string(i.address) + "/" + name
	}
	if n := i.childCounter().nextRun(name); n > 1 {
		addr += "#" + strconv.Itoa(n)
	}
	return session.Address(addr)
}

// Place is where an agent runs: a step of a run, with an address, perhaps in a loop. Its
// methods describe the step, and do for the agent what only the run can do.
type Place struct {
	ctx agent.InvocationContext
	inv *invocation // nil if no invocation is behind ctx
}

// At returns the place of the agent that was given ctx.
func At(ctx agent.InvocationContext) Place { return Place{ctx, invocationOf(ctx)} }
