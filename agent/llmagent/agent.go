// SPDX-License-Identifier: Apache-2.0

// Package llmagent makes agents that ask a model, turn by turn, with tools.
//
//	critic, err := llmagent.New(llmagent.Config{
//		Name:        "critic",
//		Model:       llm,
//		Instruction: "Review the draft:\n{{draft}}",
//		OutputKey:   "critique",
//	})
//
// The fields are those of ADK for Go; what goes beyond has a zero value that
// changes nothing, but for Retry: a model that fails in a way that may pass is
// asked again. An output key is written only from a final answer with words
// in it: a turn that calls a tool leaves it alone.
//
// A response that is none fails the agent with an [*AnswerError]: a refusal, a
// blocked one, and one that was cut off at its bound of tokens, since half a
// document must not take a whole one's place. A call of a tool that nobody can
// read is told to the model first, twice running at most.
//
// A tool may ask a person before it does something; see [tool.WithConfirmation].
// Then the agent yields a call of adk_request_confirmation and its turn is over.
// The answer is the user's next message, as package toolconfirmation says: it
// runs the tool, and the model is asked on. In a loop the question ends every
// loop around, as blocked, and the answer does not take them up again: the agent
// goes on alone. A durable run that can wait ([drive.CanAsk]) waits instead, and
// goes on where it is when it is resumed with the answer.
//
// An agent with SubAgents, or below another one that asks a model, has the tool
// transfer_to_agent: the named agent goes on in its place, as a step of it, and
// gets the user's next message too if it could hand back the conversation. A
// tool of the program's does the same by setting Actions().TransferToAgent.
package llmagent

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/template"
	"github.com/refrain-dev/refrain/tool"
)

// InstructionProvider makes an instruction when the agent runs. What it returns
// is no template.
type InstructionProvider func(ctx agent.ReadonlyContext) (string, error)

// Callbacks around a call of the model. A before callback that returns a
// response takes the model's place; an after callback that returns one takes the
// response's. The first that returns something ends the list. The request is the
// callback's to edit: what it shares with the log is copied.
//
// A response without a use, such as a refusal, goes to the after callbacks like
// any other; callbacks on errors are asked only where no response came.
type (
	BeforeModelCallback  func(ctx agent.CallbackContext, llmRequest *model.LLMRequest) (*model.LLMResponse, error)
	AfterModelCallback   func(ctx agent.CallbackContext, llmResponse *model.LLMResponse, llmResponseError error) (*model.LLMResponse, error)
	OnModelErrorCallback func(ctx agent.CallbackContext, llmRequest *model.LLMRequest, llmResponseError error) (*model.LLMResponse, error)
)

// Callbacks around a call of a tool, likewise.
type (
	BeforeToolCallback  func(ctx agent.ToolContext, tool tool.Tool, args map[string]any) (map[string]any, error)
	AfterToolCallback   func(ctx agent.ToolContext, tool tool.Tool, args, result map[string]any, err error) (map[string]any, error)
	OnToolErrorCallback func(ctx agent.ToolContext, tool tool.Tool, args map[string]any, err error) (map[string]any, error)
)

// IncludeContents says whether the model sees what was said before.
type IncludeContents string

// The choices of ADK.
const (
	IncludeContentsDefault IncludeContents = "default"
	IncludeContentsNone    IncludeContents = "none"
)

// ErrNoModel says that an agent without a model was run.
var ErrNoModel = errors.New("the agent has no Model")

// Config describes an agent that asks a model.
type Config struct {
	// Name is required; so is Model, when the agent runs.
	Name                 string
	Description          string
	SubAgents            []agent.Agent
	BeforeAgentCallbacks []agent.BeforeAgentCallback
	AfterAgentCallbacks  []agent.AfterAgentCallback
	Model                model.LLM
	// GenerateContentConfig holds sampling settings and the like. It is
	// copied for each request.
	GenerateContentConfig *genai.GenerateContentConfig

	BeforeModelCallbacks  []BeforeModelCallback
	AfterModelCallbacks   []AfterModelCallback
	OnModelErrorCallbacks []OnModelErrorCallback

	// Instruction is a template: {{key}}, or ADK's {key} and {key?}, is the
	// value of a state key. InstructionProvider takes its place if it is set.
	Instruction         string
	InstructionProvider InstructionProvider
	// GlobalInstruction is put before every instruction in the tree if this
	// agent is its root.
	GlobalInstruction         string
	GlobalInstructionProvider InstructionProvider

	// An agent that asks a model may hand the conversation to its SubAgents, of
	// whatever kind. If the agent above it asks a model too, it may hand it to
	// that one and to the others below it, unless these forbid it. With
	// DisallowTransferToParent the user's next message is not for this agent.
	DisallowTransferToParent bool
	DisallowTransferToPeers  bool

	// IncludeContents is ADK's choice of what the model sees; Context is a
	// finer one.
	IncludeContents IncludeContents
	// Context says how much of what was said before the model sees; the zero
	// value is [ContextFull], or with IncludeContentsNone [ContextNone].
	Context Context
	// Retry says how the model is asked again when it fails in a way that may
	// pass; the zero value asks up to three times.
	Retry Retry

	// InputSchema describes what the agent is given when it is the tool of
	// another one; nil is a request in words. It counts nowhere else.
	InputSchema *genai.Schema
	// OutputSchema asks the model for JSON of that shape as its final answer,
	// which is kept as text. If the agent has tools, the model gives the answer
	// by one more, set_model_response. An answer that does not fit is not kept,
	// and asked for once more, with what is wrong with it; if the next one does
	// not fit either, the agent fails with an [*OutputError].
	OutputSchema *genai.Schema

	Tools                []tool.Tool
	Toolsets             []tool.Toolset
	BeforeToolCallbacks  []BeforeToolCallback
	AfterToolCallbacks   []AfterToolCallback
	OnToolErrorCallbacks []OnToolErrorCallback

	// OutputKey is the state key of the agent's final answer.
	OutputKey string
}

// Agent is what [New] returns.
type Agent struct {
	*drive.Base
	cfg         Config
	instruction *template.Template
	global      *template.Template
	output      *output

	kept  keptHistory
	meter meter
}

// New returns an agent that asks cfg.Model. It refuses what [agent.New]
// refuses, an instruction that is no template, an input schema that is not of an
// object, and an output schema that is none. An agent without a model fails with
// [ErrNoModel] when it runs.
func New(cfg Config) (agent.Agent, error) {
	a := &Agent{cfg: cfg}
	base, err := drive.NewBase(agent.Config{
		Name: cfg.Name, Description: cfg.Description, SubAgents: cfg.SubAgents,
		BeforeAgentCallbacks: cfg.BeforeAgentCallbacks, AfterAgentCallbacks: cfg.AfterAgentCallbacks,
	}, a, a.run)
	if err != nil {
		return nil, err
	}
	a.Base = base
	var errs []error
	if a.instruction, err = template.Parse(cfg.Instruction, template.Options{}); err != nil {
		errs = append(errs, fmt.Errorf("instruction: %w", err))
	}
	if a.global, err = template.Parse(cfg.GlobalInstruction, template.Options{}); err != nil {
		errs = append(errs, fmt.Errorf("global instruction: %w", err))
	}
	if a.output, err = newOutput(cfg.OutputSchema); err != nil {
		errs = append(errs, err)
	}
	if in := cfg.InputSchema; in != nil && !isObject(in) {
		errs = append(errs, fmt.Errorf("input schema: its type is %q; arguments of a tool are an object", in.Type))
	}
	if slices.Contains(cfg.Tools, nil) || slices.Contains(cfg.Toolsets, nil) {
		errs = append(errs, errors.New("a tool or toolset is nil"))
	}
	if err := cfg.Context.check(); err != nil {
		errs = append(errs, err)
	}
	if err := cfg.Retry.check(); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("llm agent %q: %w", cfg.Name, err)
	}
	return a, nil
}

// Config is what the agent was made from.
func (a *Agent) Config() Config { return a.cfg }

// modelName is the model's name; empty if there is none.
func (a *Agent) modelName() string {
	if a.cfg.Model == nil {
		return ""
	}
	return a.cfg.Model.Name()
}

// Type is [agent.TypeLLM].
func (a *Agent) Type() agent.Type { return agent.TypeLLM }

// InputSchema describes what the agent is given as a tool; nil is a request in
// words.
func (a *Agent) InputSchema() *genai.Schema { return a.cfg.InputSchema }

// OutputSchema describes the agent's final answer; nil is words.
func (a *Agent) OutputSchema() *genai.Schema { return a.cfg.OutputSchema }
