// SPDX-License-Identifier: Apache-2.0

package drive

import (
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
	// Refuse, if it is set, ends the run with an error that is not the run's own end: a run with marks is
	// canceled, and can be resumed.
	Refuse func(error)
	// Logged is the weight of the run's events in the log. It is nil without RunConfig.LogLimit.
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
	run := &shared{Invocation: in, modelCalls: new(atomic.Int64), kept: new(sync.Map)}
	if in.Callbacks != nil {
		run.events = new(sync.Mutex)
	}
	inv := &invocation{Context: ctx, own: ctx, run: run, budget: run.newBudget()}
	if in.Replay != nil {
		inv.record = in.Replay.recording.root
		if m := in.RunConfig.Meter; m != nil {
			m.Run(in.ID).Recount(inv.record.used())
		}
		inv.bookEarlier(inv.budget)
	}
	return inv
}

// shared holds what all steps of one invocation have in common.
type shared struct {
	Invocation
	modelCalls *atomic.Int64
	unlimited  budget.Meter // of a run that has no budget, nor prices
	kept       *sync.Map    // see Place.Keep; nil if there is nothing to last
	events     *sync.Mutex  // held by Callbacks.OnEvent; nil without Callbacks
}

// invocation is the context of one step, or of a whole run above its root.
type invocation struct {
	context.Context // as it was handed down: it does not grow with depth

	own       context.Context // of the step; it may run others under another one
	run       *shared
	outer     *invocation // that of the step around this one, or above the root; nil for that one
	agent     agent.Agent
	branch    string
	address   session.Address
	iteration int
	attempt   int // as the log has it, with runs that were cut off
	made      int // without them
	loop      *Loop
	tree      *Tree
	budget    *budget.Meter
	fence     *fence        // nil if nothing around the step may be abandoned
	record    *record       // what the log has of the step's run, if that is resumed; else nil
	work      *agent.Work   // what a pause waits for, of the step or of one around it; nil if there is none
	within    *toolLog      // of the step's tool calls; nil if it has made none
	grace     time.Duration // that the step gives its agent's steps: see Inline; 0 if it gives none
	ended     atomic.Bool
	children  atomic.Pointer[childCount]

	stranger bool // made for a context that leads to no step of ours
}

// childCount counts how often a step ran each of its sub-agents, to tell their
// addresses apart.
type childCount struct {
	mu   sync.Mutex
	runs map[string]int
}

func (c *childCount) next(name string) int {
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

func (i *invocation) Session() session.Session {
	switch {
	case i.fence == nil:
		return i.run.Session
	case i.fence.run == i.run:
		return i.fence.session
	}
	return fencedSession{i.run.Session, i.fence}
}

func (i *invocation) Artifacts() agent.Artifacts {
	if i.fence != nil && i.run.Artifacts != nil {
		return fencedArtifacts{i.run.Artifacts, i.fence}
	}
	return i.run.Artifacts
}

// Outside returns the context of a whole run, outside of its steps. Its Agent returns a, the agent that the
// run is for.
func Outside(ctx agent.InvocationContext, a agent.Agent) agent.InvocationContext {
	c := parentOf(ctx).copy(ctx)
	c.agent = a
	return c
}

func (i *invocation) WithContext(ctx context.Context) agent.InvocationContext { return i.copy(ctx) }

func (i *invocation) copy(ctx context.Context) *invocation {
	c := &invocation{
		Context: ctx, own: i.own, run: i.run, outer: i.outer, agent: i.agent, branch: i.branch,
		address: i.address, record: i.record, work: i.work, iteration: i.iteration, attempt: i.attempt,
		made: i.made, loop: i.loop, tree: i.tree, budget: i.budget, fence: i.fence,
		grace: i.grace, within: i.within,
	}
	c.ended.Store(i.Ended())
	c.children.Store(i.counter())
	return c
}

type invocationKey struct{}

// Value lets a context that wraps an invocation be traced back to it.
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

// parentOf returns the invocation under which a child runs. A context that wraps one of
// ours, or that somebody else made, is taken at its word.
func parentOf(ctx agent.InvocationContext) *invocation {
	if inv, ok := ctx.(*invocation); ok {
		return inv
	}
	p := &invocation{
		Context: ctx, own: ctx, agent: ctx.Agent(), branch: ctx.Branch(),
		run: &shared{modelCalls: new(atomic.Int64), Invocation: Invocation{
			ID: ctx.InvocationID(), Session: ctx.Session(), UserContent: ctx.UserContent(),
			RunConfig: ctx.RunConfig(), Artifacts: ctx.Artifacts(), Memory: ctx.Memory(),
		}},
	}
	if inv := invocationOf(ctx); inv != nil {
		p.run.Marks, p.run.Replay, p.run.modelCalls = inv.run.Marks, inv.run.Replay, inv.run.modelCalls
		p.run.kept, p.run.Callbacks, p.run.events = inv.run.kept, inv.run.Callbacks, inv.run.events
		p.outer = inv.outer
		p.own, p.record, p.work, p.fence = inv.own, inv.record, inv.work, inv.fence
		p.address, p.iteration, p.attempt, p.made = inv.address, inv.iteration, inv.attempt, inv.made
		p.loop, p.tree, p.budget, p.within = inv.loop, inv.tree, inv.budget, inv.within
		p.children.Store(inv.counter())
	} else {
		p.budget, p.stranger = p.run.newBudget(), true
	}
	return p
}

// counter returns the step's child count, made at the first call: most steps
// never run a child without saying where.
func (i *invocation) counter() *childCount {
	if c := i.children.Load(); c != nil {
		return c
	}
	i.children.CompareAndSwap(nil, new(childCount))
	return i.children.Load()
}

// childAddress returns the address of a sub-agent of which only the name is known.
func (i *invocation) childAddress(name string) session.Address {
	addr := name
	if i.address != "" {
		addr = string(i.address) + "/" + name
	}
	if n := i.counter().next(name); n > 1 {
		addr += "#" + strconv.Itoa(n)
	}
	return session.Address(addr)
}

// Place is where an agent runs: a step of a run, with an address, perhaps in a loop. Its
// methods describe the step, and do for the agent what only the run can do.
type Place struct {
	ctx agent.InvocationContext
	inv *invocation // nil if ctx leads to no step of ours
}

// At returns the place of the agent that was given ctx.
func At(ctx agent.InvocationContext) Place { return Place{ctx, invocationOf(ctx)} }
