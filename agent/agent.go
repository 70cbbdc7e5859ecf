// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/internal/identity"
	"github.com/refrain-dev/refrain/session"
)

// Agent answers an invocation with a stream of events. It is safe for concurrent use by several
// invocations, and passes agenttest.TestAgent.
type Agent interface {
	// Name returns the agent's name, which is unique in its tree and is not "user".
	Name() string
	// Description tells other agents what this agent is for.
	Description() string
	// Run answers the invocation. Nothing happens until the sequence is ranged over, and
	// ranging again runs again. Each pair holds an event or an error. An error is the last
	// pair.
	Run(InvocationContext) iter.Seq2[*session.Event, error]
	// SubAgents lists the agent's own sub-agents, in order.
	SubAgents() []Agent
	// FindAgent returns the agent of that name in the tree below and including this one, or
	// nil. [Find] implements it.
	FindAgent(name string) Agent
	// FindSubAgent returns the agent of that name in the tree below this one, or nil. [FindSub]
	// implements it.
	FindSubAgent(name string) Agent
}

// Callbacks run around an agent. A non-nil content becomes an event of the
// agent; from a before callback it takes the place of the agent's own run. An
// error fails the agent.
type (
	BeforeAgentCallback func(Context) (*genai.Content, error)
	AfterAgentCallback  func(Context) (*genai.Content, error)
)

// Config describes an agent for [New].
type Config struct {
	// Name is required. It is unique in the agent's tree, is not "user", and has none of the
	// characters / [ ] #.
	Name string
	// Description tells other agents what this agent is for.
	Description string
	// SubAgents are the agents that this agent can run, in order.
	SubAgents []Agent
	// BeforeAgentCallbacks run first, in order, until one returns content or an error.
	BeforeAgentCallbacks []BeforeAgentCallback
	// Run answers an invocation, as [Agent].Run does. If it is nil the agent does nothing.
	Run func(InvocationContext) iter.Seq2[*session.Event, error]
	// AfterAgentCallbacks run last, in order, until one returns content or an error. They do
	// not run if the agent failed, ended the invocation, or lost its consumer.
	AfterAgentCallbacks []AfterAgentCallback
}

// Type is the kind of an agent, for tools and telemetry.
type Type string

// The kinds of agent that Refrain has.
const (
	TypeCustom     Type = "custom"
	TypeLoop       Type = "loop"
	TypeSequential Type = "sequential"
	TypeParallel   Type = "parallel"
	TypeLLM        Type = "llm"
	TypeTask       Type = "task"
	TypeRemote     Type = "remote"
	TypeHuman      Type = "human"
)

// typer is an agent that reports its kind.
type typer interface{ Type() Type }

// TypeOf returns the kind of an agent. This is the result of its method Type() agent.Type, or
// [TypeCustom] if it has no such method.
func TypeOf(a Agent) Type {
	if t, ok := a.(typer); ok {
		return t.Type()
	}
	return TypeCustom
}

// New returns an agent that runs cfg.Run. Its concrete type is [*Custom]. The errors are those
// of [Config.Check].
func New(cfg Config) (Agent, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg.SubAgents = slices.Clone(cfg.SubAgents)
	return &Custom{cfg}, nil
}

// Check returns an error if [Config] does not allow the name, or if a sub-agent is nil, is
// listed twice, or has a name that is not allowed.
func (c Config) Check() error {
	if err := checkName(c.Name); err != nil {
		return err
	}
	for i, sub := range c.SubAgents {
		if identity.IsNil(sub) {
			return fmt.Errorf("agent %q: sub-agent %d is nil; remove it", c.Name, i+1)
		}
		if err := checkName(sub.Name()); err != nil {
			return fmt.Errorf("agent %q: sub-agent %d: %T was not made by its New function, or its name is not allowed: %w", c.Name,
				i+1, sub, err)
		}
		if slices.ContainsFunc(c.SubAgents[:i], func(a Agent) bool { return identity.Same(a, sub) }) {
			return fmt.Errorf("agent %q: sub-agent %q is listed twice; list it once", c.Name, sub.Name())
		}
	}
	return nil
}

// checkName refuses names that mean something else in a log.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("agent has no name; give it one")
	case name == "user":
		return errors.New(`agent cannot be named "user", because events of the person who asks have that author; choose another name`)
	case strings.ContainsAny(name, "/[]#"):
		return fmt.Errorf("agent cannot be named %q, because / [ ] and # separate the parts of an address; choose another name", name)
	}
	return nil
}

// Find returns the agent of that name in the tree below and including root, or
// nil.
func Find(root Agent, name string) Agent {
	if root.Name() == name {
		return root
	}
	return FindSub(root, name)
}

// FindSub returns the agent of that name in the tree below root, or nil.
func FindSub(root Agent, name string) Agent {
	for _, sub := range root.SubAgents() {
		if found := Find(sub, name); found != nil {
			return found
		}
	}
	return nil
}
