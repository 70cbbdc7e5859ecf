// SPDX-License-Identifier: Apache-2.0

// Package agenttool makes an agent a tool of another one.
//
//	translator := agenttool.New(french, nil)
//	writer, err := llmagent.New(llmagent.Config{Name: "writer", Tools: []tool.Tool{translator}, …})
//
// The agent runs as a step of the one that calls it: it stops with it, sees its
// state and artifacts, and what it changes there is part of the call. Of the
// conversation it sees nothing but the request. Its own events are not in the
// log, only its answer is.
package agenttool

import (
	"fmt"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// Config describes the tool for [New].
type Config struct {
	// SkipSummarization makes the agent's answer the last word of the caller's
	// turn.
	SkipSummarization bool
}

// New returns a tool that asks an agent; it has the agent's name and
// description. A nil cfg is the zero one. New panics if there is no agent, or
// if it has no name.
//
// An error of the agent is the tool's. If the agent asks to leave a loop that
// it is not in itself, the caller does.
func New(a agent.Agent, cfg *Config) tool.Tool {
	if a == nil {
		panic("agenttool: New needs an agent")
	}
	c := caller{agent: a}
	if cfg != nil {
		c.cfg = *cfg
	}
	t, err := functiontool.New(functiontool.Config{Name: a.Name(), Description: a.Description()}, c.call)
	if err != nil {
		panic(fmt.Sprintf("agenttool: %v", err))
	}
	return t
}

type request struct {
	Request string `json:"request" jsonschema:"what the agent is asked to do, with all that it needs to know"`
}

type answer struct {
	Result string `json:"result"`
}

// caller asks an agent on behalf of another.
type caller struct {
	agent agent.Agent
	cfg   Config
}

func (c caller) call(ctx tool.Context, in request) (answer, error) {
	content := genai.NewContentFromText(in.Request, genai.RoleUser)
	r := newRun(ctx, content)
	for ev, err := range agent.Run(r.inside, c.agent) {
		if err != nil {
			return answer{}, err
		}
		if err := r.take(ev); err != nil {
			return answer{}, err
		}
	}
	if r.waits {
		return answer{}, fmt.Errorf("agent %q needs a person's consent, which nobody can give inside of another agent's tool call; let the caller have the tool that asks, or make it a step of its own", c.agent.Name())
	}
	if c.cfg.SkipSummarization {
		ctx.Actions().SkipSummarization = true
	}
	return answer{Result: r.result()}, nil
}
