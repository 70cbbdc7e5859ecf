// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session"
)

// Agent is something that can be run in an invocation. It is safe for
// concurrent use by several invocations, and passes agenttest.TestAgent.
type Agent interface {
	// Name is unique in the agent's tree and not "user".
	Name() string
	// Description tells other agents what this one is for.
	Description() string
	// Run answers the invocation. Nothing happens until the sequence is
	// ranged over, and ranging again runs again. Each pair holds an event or
	// an error, and an error is the last pair.
	Run(InvocationContext) iter.Seq2[*session.Event, error]
	// SubAgents lists the agent's own sub-agents, in order.
	SubAgents() []Agent
	// FindAgent finds an agent by name in the tree below and including this
	// one; nil if there is none. [Find] does it for whoever implements Agent.
	FindAgent(name string) Agent
	// FindSubAgent is FindAgent without this one; see [FindSub].
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
	// Name is required, unique in the agent's tree, not "user", and without
	// the characters / [ ] #.
	Name string
	// Description tells other agents what this one is for.
	Description string
	// SubAgents are the agents that this one may run, in order.
	SubAgents []Agent
	// BeforeAgentCallbacks run first, in order, until one returns content or
	// an error.
	BeforeAgentCallbacks []BeforeAgentCallback
	// Run is what the agent does; nil does nothing.
	Run func(InvocationContext) iter.Seq2[*session.Event, error]
	// AfterAgentCallbacks run last, in order, until one returns content or an
	// error. They are left out if the agent failed, ended the invocation, or
	// was no longer listened to.
	AfterAgentCallbacks []AfterAgentCallback
}

// Type says what kind of agent one is, for tools and telemetry.
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

// TypeOf is the kind of agent a is: what its method Type() agent.Type says, or
// else [TypeCustom].
func TypeOf(a Agent) Type {
	if t, ok := a.(interface{ Type() Type }); ok {
		return t.Type()
	}
	return TypeCustom
}

// New returns an agent that does what cfg.Run does. It refuses a name that
// [Config] does not allow, and a sub-agent that is nil or listed twice.
func New(cfg Config) (Agent, error) {
	return NewBase(cfg, nil, nil)
}

// Body is what a kind of agent does when it runs: it pushes its events and
// stops as soon as yield returns false.
type Body func(ctx InvocationContext, yield func(*session.Event, error) bool)

// Base is what every agent of this project has in common. A kind of agent
// embeds the *Base that [NewBase] returns.
type Base struct {
	cfg  Config
	self Agent
	body Body
}

// NewBase returns the base of self, which is to embed it; a nil self stands for
// the base itself. The body takes the place of cfg.Run if it is not nil. The
// errors are those of [New].
func NewBase(cfg Config, self Agent, body Body) (*Base, error) {
	if err := checkName(cfg.Name); err != nil {
		return nil, err
	}
	for i, sub := range cfg.SubAgents {
		if isNil(sub) {
			return nil, fmt.Errorf("agent %q: sub-agent %d is nil", cfg.Name, i+1)
		}
		if err := checkName(sub.Name()); err != nil {
			return nil, fmt.Errorf("agent %q: sub-agent %d: %T was not made by its New, or has a wrong name: %w", cfg.Name, i+1, sub, err)
		}
		if slices.ContainsFunc(cfg.SubAgents[:i], func(a Agent) bool { return same(a, sub) }) {
			return nil, fmt.Errorf("agent %q: sub-agent %q is listed twice", cfg.Name, sub.Name())
		}
	}
	cfg.SubAgents = slices.Clone(cfg.SubAgents)
	if body == nil {
		body = func(ctx InvocationContext, yield func(*session.Event, error) bool) {
			if cfg.Run != nil {
				each(cfg.Run(ctx), yield)
			}
		}
	}
	b := &Base{cfg: cfg, self: self, body: body}
	if self == nil {
		b.self = b
	}
	return b, nil
}

// checkName refuses names that mean something else in a log.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("agent needs a name")
	case name == "user":
		return errors.New(`agent cannot be named "user": events by the person who asks have that author`)
	case strings.ContainsAny(name, "/[]#"):
		return fmt.Errorf("agent cannot be named %q: / [ ] and # are for addresses", name)
	}
	return nil
}

// isNil reports whether there is no agent: nil, or a nil pointer.
func isNil(a Agent) bool {
	if a == nil {
		return true
	}
	v := reflect.ValueOf(a)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// same reports whether a and b are one agent. Agents that cannot be compared are
// each their own.
func same(a, b Agent) bool {
	return a != nil && b != nil && canCompare(a) && canCompare(b) && a == b
}

// canCompare reports whether a may be compared. Its type alone does not say it:
// there may be an interface in it.
func canCompare(a Agent) bool { return reflect.ValueOf(a).Comparable() }

// The methods of a nil Base are those of an agent without a name, which nobody takes
// for a sub-agent and which fails when it is run: a kind of agent that was made without
// its New embeds one.

// Name is the agent's name.
func (b *Base) Name() string {
	if b == nil {
		return ""
	}
	return b.cfg.Name
}

// Description tells other agents what this one is for.
func (b *Base) Description() string {
	if b == nil {
		return ""
	}
	return b.cfg.Description
}

// SubAgents lists the agent's own sub-agents, in order.
func (b *Base) SubAgents() []Agent {
	if b == nil {
		return nil
	}
	return slices.Clone(b.cfg.SubAgents)
}

// FindAgent is [Find].
func (b *Base) FindAgent(name string) Agent {
	if b == nil {
		return nil
	}
	return Find(b.self, name)
}

// FindSubAgent is [FindSub].
func (b *Base) FindSubAgent(name string) Agent {
	if b == nil {
		return nil
	}
	return FindSub(b.self, name)
}

// Run runs the agent as a step under ctx; it is [Run].
func (b *Base) Run(ctx InvocationContext) iter.Seq2[*session.Event, error] {
	if b == nil {
		return func(yield func(*session.Event, error) bool) {
			yield(nil, errors.New("the agent was not made by its New"))
		}
	}
	return Run(ctx, b.self)
}

func (b *Base) base() *Base { return b }

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
