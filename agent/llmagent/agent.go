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
// The fields are those of ADK for Go. Further fields have a zero value that changes nothing, except
// RequestRetry, whose zero value repeats a request after a temporary failure. An output key is written
// only from a final answer with text in it; a turn that calls a tool does not write it.
//
// A response without a usable answer fails the agent with an [*AnswerError]. Such a response is a
// refusal, was blocked, has only thoughts, or was cut off at the limit of tokens. The agent does not
// use the beginning of an answer, because half a document must not replace a whole one. If the response
// has only thoughts or a tool call that cannot be read, the agent first asks again, as often as
// RequestRetry allows.
//
// A tool may ask a person before it does something; see [tool.WithConfirmation]. Then the agent yields
// a call of adk_request_confirmation and ends its turn. The user's next message is the answer, in the
// form that package toolconfirmation describes. The tool then runs, and the agent asks the model
// again. Within loops the question stops every enclosing loop, with the reason blocked, and the answer
// does not restart them. Only the agent continues. A durable run that can wait ([drive.Place.CanAsk])
// waits instead, and continues in place when it is resumed with the answer.
//
// An agent that has SubAgents, or is the sub-agent of a model agent, has the tool
// transfer_to_agent: the named agent continues in its place, as its step, and also gets the user's
// next message if it may transfer the conversation back. A tool can do the same by setting
// Actions().TransferToAgent.
package llmagent

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
)

// InstructionProvider returns an instruction when the agent runs. Its result is not a template.
type InstructionProvider func(ctx agent.ReadonlyContext) (string, error)

// The callbacks around a call of the model or of a tool. The types are those of package drive, where plugins
// find them too.
type (
	BeforeModelCallback  = drive.BeforeModelCallback
	AfterModelCallback   = drive.AfterModelCallback
	OnModelErrorCallback = drive.OnModelErrorCallback
	BeforeToolCallback   = drive.BeforeToolCallback
	AfterToolCallback    = drive.AfterToolCallback
	OnToolErrorCallback  = drive.OnToolErrorCallback
)

// IncludeContents says whether the model sees the earlier conversation.
type IncludeContents string

// The choices of ADK.
const (
	IncludeContentsDefault IncludeContents = "default"
	IncludeContentsNone    IncludeContents = "none"
)

// ErrNoModel is the error of an agent that runs without a model.
var ErrNoModel = errors.New("the agent has no Model; set Config.Model")

// errNoResponse is the error of a model that breaks the contract of [model.LLM].
var errNoResponse = errors.New("the model gave no response, and no error; GenerateContent has to give one of them")

// Config describes an agent that asks a model.
type Config struct {
	// Name is required. Model is required when the agent runs.
	Name                 string
	Description          string
	SubAgents            []agent.Agent
	BeforeAgentCallbacks []agent.BeforeAgentCallback
	AfterAgentCallbacks  []agent.AfterAgentCallback
	Model                model.LLM
	// Models are other models, by name. A leg of an enclosing loop can name one of them; see loop.Leg. The agent then
	// asks that model instead of Model.
	Models map[string]model.LLM
	// GenerateContentConfig holds settings such as the temperature. It is copied for each request.
	GenerateContentConfig *genai.GenerateContentConfig

	BeforeModelCallbacks  []BeforeModelCallback
	AfterModelCallbacks   []AfterModelCallback
	OnModelErrorCallbacks []OnModelErrorCallback
	// OnModelCalls are called before each call of the model, after BeforeModelCallbacks. They do
	// not get the request, so it need not be copied. An error fails the agent.
	OnModelCalls []func(ctx agent.CallbackContext) error

	// Instruction is a template: {{key}}, or ADK's {key} and {key?}, stands for the value of a
	// state key. InstructionProvider, if set, replaces Instruction.
	Instruction         string
	InstructionProvider InstructionProvider
	// StaticInstruction is sent first, without changes; it has no placeholders. If it is set,
	// Instruction is not part of the system instruction, but the last text of role user in the
	// conversation. Then fixed texts come before changing ones, and a provider's cache can keep more.
	// The name is ADK's, whose Python version puts the instruction before the user's last message.
	StaticInstruction string
	// FixedKeys are state keys whose values do not change in a run, such as inputs. A provider's cache can
	// keep the text after their placeholders. user_input and max_iterations are always among them.
	FixedKeys []string
	// PromptCache says whether the agent asks the provider to cache the parts that requests
	// repeat; by default it does.
	PromptCache PromptCache
	// GlobalInstruction is put before every instruction in the tree if this
	// agent is its root.
	GlobalInstruction         string
	GlobalInstructionProvider InstructionProvider

	// An agent may transfer the conversation to its SubAgents, of any kind. If its parent is a
	// model agent, it may also transfer it to the parent and to the parent's other sub-agents,
	// unless these fields forbid it. With DisallowTransferToParent the agent does not get the
	// user's next message.
	DisallowTransferToParent bool
	DisallowTransferToPeers  bool

	// IncludeContents is ADK's choice of the conversation that the model sees; Context gives more
	// choices.
	IncludeContents IncludeContents
	// Context says how much of the earlier conversation the model sees; the zero value is
	// [ContextFull], or with IncludeContentsNone [ContextNone].
	Context ContextConfig
	// RequestRetry says how the agent repeats a request after a temporary failure; the zero value sends
	// it up to three times.
	RequestRetry RequestRetry

	// InputSchema describes the agent's arguments when another agent uses it as a tool; nil means that
	// the only argument is a text. It has no other effect.
	InputSchema *genai.Schema
	// OutputSchema asks the model for a final answer in JSON of that shape, which is stored as
	// text. If the agent has tools, the model answers by an additional tool, set_model_response. If
	// an answer does not fit, the agent tells the model why and asks once more. If the second
	// answer does not fit either, the agent fails with an [*OutputError].
	OutputSchema *genai.Schema

	Tools                []tool.Tool
	Toolsets             []tool.Toolset
	BeforeToolCallbacks  []BeforeToolCallback
	AfterToolCallbacks   []AfterToolCallback
	OnToolErrorCallbacks []OnToolErrorCallback

	// OutputKey is the state key under which the agent stores its final answer. "" stores none.
	OutputKey string
	// OutputValue stores the JSON value of an answer that follows OutputSchema under OutputKey, such as
	// an object. The default stores the text, as ADK does.
	OutputValue bool
}

// Agent is an agent that asks a model. It is the concrete type that [New] returns.
type Agent struct {
	*drive.Base
	cfg         Config
	instruction *template.Template
	global      *template.Template
	output      *output
	identity    string
	on          drive.ModelCallbacks
	fixed       beginning // part of the instruction that does not change in a run
	fixedGlobal beginning
	key         atomic.Pointer[keyOf] // cache key of the last request; nil before the first

	legModel string // name in Models, if a leg of a loop has chosen the model
	legs     struct {
		mu     sync.Mutex
		agents map[drive.Settings]*Agent // the agent with other settings
	}

	meter    meter
	transfer atomic.Pointer[transfer] // for the tree in which the agent last ran
}

// New returns an agent that asks cfg.Model. It returns an error if [agent.New] does, and for an
// invalid template, an input schema that does not describe an object, and an invalid output
// schema. An agent without a model fails with [ErrNoModel] when it runs.
func New(cfg Config) (agent.Agent, error) {
	a := &Agent{cfg: cfg}
	base, err := drive.NewBase(agent.Config{
		Name: cfg.Name, Description: cfg.Description, SubAgents: cfg.SubAgents,
		BeforeAgentCallbacks: cfg.BeforeAgentCallbacks, AfterAgentCallbacks: cfg.AfterAgentCallbacks,
	}, a, a.run)
	if err != nil {
		return nil, err
	}
	a.Base, a.identity = base, whoIs(base)
	a.on = drive.ModelCallbacks{
		BeforeModel: cfg.BeforeModelCallbacks, AfterModel: cfg.AfterModelCallbacks, OnModelError: cfg.OnModelErrorCallbacks,
		BeforeTool: cfg.BeforeToolCallbacks, AfterTool: cfg.AfterToolCallbacks, OnToolError: cfg.OnToolErrorCallbacks,
	}
	var errs []error
	if a.instruction, err = template.Parse(cfg.Instruction, template.Options{}); err != nil {
		errs = append(errs, fmt.Errorf("instruction: %w", err))
	}
	if a.global, err = template.Parse(cfg.GlobalInstruction, template.Options{}); err != nil {
		errs = append(errs, fmt.Errorf("global instruction: %w", err))
	}
	if a.instruction != nil && a.global != nil {
		a.fixed = newBeginning(cfg.Instruction, a.instruction, cfg.FixedKeys)
		a.fixedGlobal = newBeginning(cfg.GlobalInstruction, a.global, cfg.FixedKeys)
	}
	if a.output, err = newOutput(cfg.OutputSchema); err != nil {
		errs = append(errs, err)
	}
	if in := cfg.InputSchema; in != nil && !isObject(in) {
		errs = append(errs, fmt.Errorf("input schema: its type is %q; the arguments of a tool must be an object",
			in.Type))
	}
	if slices.Contains(cfg.Tools, nil) || slices.Contains(cfg.Toolsets, nil) {
		errs = append(errs, errors.New("a tool or toolset is nil; remove it"))
	}
	if err := cfg.Context.check(); err != nil {
		errs = append(errs, err)
	}
	if err := cfg.RequestRetry.check(); err != nil {
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("llm agent %q: %w", cfg.Name, err)
	}
	return a, nil
}

// Config returns the config that the agent was made from.
func (a *Agent) Config() Config { return a.cfg }

// Type returns [agent.TypeLLM].
func (a *Agent) Type() agent.Type { return agent.TypeLLM }

// InputSchema returns the schema of the agent's arguments when it is used as a tool; nil means that
// the only argument is a text.
func (a *Agent) InputSchema() *genai.Schema { return a.cfg.InputSchema }

// OutputSchema returns the schema of the agent's final answer; nil means text.
func (a *Agent) OutputSchema() *genai.Schema { return a.cfg.OutputSchema }

// Models returns the names of the models that a leg of a loop can give the agent.
func (a *Agent) Models() []string { return slices.Sorted(maps.Keys(a.cfg.Models)) }

// in returns the agent with the settings of a leg.
func (a *Agent) in(leg drive.Settings) (*Agent, error) {
	a.legs.mu.Lock()
	defer a.legs.mu.Unlock()
	if other := a.legs.agents[leg]; other != nil {
		return other, nil
	}
	cfg := a.cfg
	if leg.Model != "" {
		if cfg.Model = cfg.Models[leg.Model]; cfg.Model == nil {
			return nil, fmt.Errorf("the loop names the model %q, which is not one of Config.Models", leg.Model)
		}
	}
	if leg.Thinking != "" {
		g, thinks := new(genai.GenerateContentConfig), new(genai.ThinkingConfig)
		if cfg.GenerateContentConfig != nil {
			*g = *cfg.GenerateContentConfig
		}
		if g.ThinkingConfig != nil {
			*thinks = *g.ThinkingConfig
		}
		thinks.ThinkingBudget, thinks.ThinkingLevel = nil, genai.ThinkingLevel(strings.ToUpper(leg.Thinking))
		g.ThinkingConfig, cfg.GenerateContentConfig = thinks, g
	}
	if own := cfg.InstructionProvider; leg.Instructions != "" && own != nil {
		cfg.InstructionProvider = func(ctx agent.ReadonlyContext) (string, error) {
			text, err := own(ctx)
			return joinTexts(text, leg.Instructions), err
		}
	} else if leg.Instructions != "" {
		cfg.Instruction = joinTexts(cfg.Instruction, leg.Instructions)
	}
	t, err := template.Parse(cfg.Instruction, template.Options{})
	if err != nil {
		return nil, fmt.Errorf("instructions of the loop's leg: %w", err)
	}
	other := &Agent{
		Base: a.Base, cfg: cfg, instruction: t, global: a.global, output: a.output, identity: a.identity, on: a.on,
		fixed: newBeginning(cfg.Instruction, t, cfg.FixedKeys), fixedGlobal: a.fixedGlobal, legModel: leg.Model,
	}
	if a.legs.agents == nil {
		a.legs.agents = make(map[drive.Settings]*Agent)
	}
	a.legs.agents[leg] = other
	return other, nil
}

func joinTexts(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n\n")
}

// metadataModel is a key in the CustomMetadata of an answer. Its value is the name in Config.Models of the model that
// gave the answer. An answer of the agent's own model has no such entry.
const metadataModel = "refrain:leg_model"

// answeredBy returns the model that gave a logged answer; nil for an agent without a model.
func (a *Agent) answeredBy(ev *session.Event) model.LLM {
	if name, ok := ev.CustomMetadata[metadataModel].(string); ok && a.cfg.Models[name] != nil {
		return a.cfg.Models[name]
	}
	return a.cfg.Model
}
