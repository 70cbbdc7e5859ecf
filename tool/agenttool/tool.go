// SPDX-License-Identifier: Apache-2.0

// Package agenttool turns an agent into a tool of another agent.
//
//	translator := agenttool.New(french, nil)
//	writer, err := llmagent.New(llmagent.Config{Name: "writer", Tools: []tool.Tool{translator}, …})
//
// The agent runs as a step of the agent that calls it: it stops with the caller, reads the caller's
// state and artifacts, and its changes there belong to the call. Of the conversation it sees only
// the request. The log has its answer but not its own events; the event with the answer includes
// the tokens that the agent used, and its model calls count for the run.
//
// An agent with an InputSchema, such as an llmagent, gets arguments of that shape as JSON, in place
// of a request in words. An agent with an OutputSchema answers with an object instead of a text.
package agenttool

import (
	"encoding/json"
	"fmt"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// Config describes the tool for [New].
type Config struct {
	// SkipSummarization ends the caller's turn with the agent's answer.
	SkipSummarization bool
}

// New returns a tool that runs an agent and has the agent's name and description. A nil cfg means
// the zero Config. New panics if a is nil, if [drive.NewTree] refuses it, or if one of its
// schemas is invalid.
//
// An error of the agent is the tool's error; wrong arguments are a [*functiontool.ArgumentsError].
// If the agent asks to leave a loop that encloses the caller, the caller leaves it.
func New(a agent.Agent, cfg *Config) tool.Tool {
	if a == nil {
		panic("agenttool: New needs an agent")
	}
	c := caller{agent: a}
	if cfg != nil {
		c.cfg = *cfg
	}
	t, err := c.tool()
	if err != nil {
		panic(fmt.Sprintf("agenttool: %v", err))
	}
	return t
}

// caller asks an agent on behalf of another.
type caller struct {
	agent agent.Agent
	cfg   Config
	tree  *drive.Tree // of the agent alone: it transfers to nobody outside
	words bool        // it is asked in words
	text  bool        // it answers in words
}

const (
	requestKey = "request"
	resultKey  = "result"
)

func (c *caller) tool() (tool.Tool, error) {
	var err error
	if c.tree, err = drive.NewTree(c.agent); err != nil {
		return nil, err
	}
	cfg := functiontool.Config{Name: c.agent.Name(), Description: c.agent.Description()}
	cfg.Effect = drive.TraitsOf(c.agent, true).Effect
	if r, ok := c.agent.(tool.Reconciler); ok && r.Reconcile() != nil {
		cfg.Reconcile = c.reconcile(r.Reconcile())
	}
	if cfg.InputSchema = inputSchema(c.agent); cfg.InputSchema == nil {
		c.words = true
		cfg.InputSchema = object(requestKey, "what the agent is asked to do, with all that it needs to know")
	}
	if cfg.OutputSchema = outputSchema(c.agent); cfg.OutputSchema == nil {
		c.text = true
		cfg.OutputSchema = object(resultKey, "")
	}
	return functiontool.New(cfg, c.call)
}

func (c *caller) call(ctx tool.Context, in map[string]any) (any, error) {
	r := newRun(ctx, c.asked(in))
	spent := drive.At(ctx).Budget().Child(budget.Limits{})
	defer func() { drive.At(ctx).AddSpent(spent.Used()) }()
	step := drive.NewStep(r.inside, drive.StepConfig{Agent: c.agent, Tree: c.tree, Budget: spent})
	var lost error // what kept an event from being taken
	res := step.Run(func(ev *session.Event) bool {
		if lost == nil {
			lost = r.take(ev)
		}
		return lost == nil
	})
	switch {
	case lost != nil:
		return nil, lost
	case res.Err != nil:
		return nil, res.Err
	case r.waits:
		return nil, fmt.Errorf("agent %q needs a person's consent, which cannot be given within another agent's tool "+
			"call; give the tool to the caller, or make the agent a step", c.agent.Name())
	}
	if c.cfg.SkipSummarization {
		ctx.Actions().SkipSummarization = true
	}
	return c.answer(r.result())
}

// reconcile lets an agent find out whether a call took place, in the session in which the agent
// would run.
func (c *caller) reconcile(find agent.Reconcile) agent.Reconcile {
	return func(ctx agent.InvocationContext, call agent.Doubt) (agent.Reconciliation, error) {
		t, ok := ctx.(tool.Context)
		if !ok {
			return agent.Reconciliation{}, fmt.Errorf("tool %q: a %T is not the Context of a tool call", c.agent.Name(), ctx)
		}
		found, err := find(newRun(t, c.asked(call.Args)).inside, call)
		result, happened := found.Happened()
		if err != nil || !happened {
			return found, err
		}
		text, ok := result.(string)
		if !ok {
			return found, nil
		}
		answer, err := c.answer(text)
		return agent.Happened(answer), err
	}
}

// asked returns the message to the agent from the arguments of a call, which fit the declaration.
func (c *caller) asked(in map[string]any) *genai.Content {
	text, _ := in[requestKey].(string)
	if !c.words {
		b, _ := json.Marshal(in) // it was read from JSON
		text = string(b)
	}
	return genai.NewContentFromText(text, genai.RoleUser)
}

// answer returns the answer for the caller's model.
func (c *caller) answer(text string) (any, error) {
	if c.text {
		return map[string]any{resultKey: text}, nil
	}
	if text == "" {
		return nil, fmt.Errorf("agent %q has given no answer", c.agent.Name())
	}
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return nil, fmt.Errorf("the answer of agent %q is not JSON: %w", c.agent.Name(), err)
	}
	return v, nil
}
