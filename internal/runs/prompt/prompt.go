// SPDX-License-Identifier: Apache-2.0

// Package prompt says what a step has sent to its model. A log does not have that: it has what all
// have said, and the definition. So the run is resumed in memory, from its log up to the answer, with
// the agents of its definition, and what the step would send then is taken down. That is what it has
// sent, because a resumed run does what the run did.
//
//	asked, err := prompt.Of(ctx, run, "refine[3]/writer", 0)
//	if err != nil {
//		return err
//	}
//	fmt.Println(asked.System)
//
// No model is asked, no command is run, nothing leaves the process, and the run itself is not touched.
package prompt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/provider"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/store"
	"github.com/refrain-dev/refrain/supervisor"
)

// Request is what a step has sent to its model, rebuilt from the log.
type Request struct {
	// Number is the number of the request within the step, from 1, and Count the number of requests of the step. A
	// request that is repeated after an error counts once.
	Number int `json:"number"`
	Count  int `json:"count"`
	// System is the system instruction, Messages the conversation, oldest first.
	System   string    `json:"system,omitzero"`
	Messages []Message `json:"messages"`
	Tools    []Tool    `json:"tools,omitzero"`
	// Settings are the other settings of the request, such as the temperature, and the schema of the
	// answer.
	Settings json.RawMessage `json:"settings,omitzero"`
	// Missing lists the parts that the log does not have.
	Missing []Missing `json:"missing,omitzero"`
}

// Message is a part of the conversation.
type Message struct {
	// Role is user or model.
	Role string `json:"role"`
	Text string `json:"text"`
}

// Tool is a tool that the model may call.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitzero"`
	Parameters  json.RawMessage `json:"parameters,omitzero"`
}

// Missing is a part of a request that the log does not have.
type Missing string

// The parts that may be missing.
const (
	// MissingTools means that a tool server declares its tools only when it is asked.
	MissingTools Missing = "tools"
	// MissingCallbacks means that callbacks may have changed the request.
	MissingCallbacks Missing = "callbacks"
)

// ErrNotAsked reports that the step has asked no model.
var ErrNotAsked = errors.New("the step has asked no model")

// NotRebuiltError reports why a request cannot be rebuilt from the log.
type NotRebuiltError struct{ Err error }

// Error returns the reason.
func (e *NotRebuiltError) Error() string { return "cannot rebuild the request: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *NotRebuiltError) Unwrap() error { return e.Err }

// MostEvents is the largest number of events before a request that are replayed for it.
const MostEvents = 20_000

// Of rebuilds a request of the step at an address: the n-th, from 1; 0 is the last one. It
// need not have an answer yet. code has the Go tools that the definition names. Errors to expect are
// [ErrNotAsked], a [*NotRebuiltError], and context.Cause(ctx).
func Of(ctx context.Context, code program.Code, run *runlog.Run, at session.Address, n int) (*Request, error) {
	before := promptsBefore(run.Log(), at)
	n = cmp.Or(n, len(before))
	if n < 1 || n > len(before) {
		return nil, ErrNotAsked
	}
	k := before[n-1]
	if k > MostEvents {
		return nil, &NotRebuiltError{fmt.Errorf("there are %d events before it, and at most %d are played again", k,
			MostEvents)}
	}
	events := slices.Collect(run.Wholes.All(slices.Values(run.Log()[:k])))
	if err := run.Wholes.Err; err != nil {
		return nil, err
	}
	req, err := rebuild(ctx, code, run.Initial, events, at)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, ErrNotAsked):
		return nil, err
	case err != nil:
		return nil, &NotRebuiltError{err}
	}
	req.Number, req.Count = n, len(before)
	return req, nil
}

// promptsBefore returns how many events are before each request of a step. A request without an answer is one,
// too: that of a step that is under way, or has failed.
func promptsBefore(events []*session.Event, at session.Address) (before []int) {
	open := false // the step has begun, or a tool has answered
	id := ""
	for _, ev := range slices.Backward(events) {
		if ev.Address == at {
			id = ev.InvocationID // the last run of the session that has the step
			break
		}
	}
	for i, ev := range events {
		switch {
		case ev.Address != at || ev.InvocationID != id || ev.Partial:
		case ev.Mark != nil && ev.Mark.Kind == mark.KindStepStarted:
			open = true
		case ev.Mark != nil && ev.Mark.Kind == mark.KindStepFinished:
			var fin mark.StepFinished
			if open && ev.Mark.Decode(&fin) == nil && fin.Error != "" {
				before = append(before, i)
			}
			open = false
		case ev.Mark != nil || ev.Author != at.Agent() || ev.CustomMetadata["refrain:further"] == true:
		case ev.Content != nil && ev.Content.Role == genai.RoleUser:
			open = true
		case ev.Content != nil || ev.UsageMetadata != nil || ev.ErrorCode != "":
			before, open = append(before, i), false
		}
	}
	if open {
		last := len(events)
		for last > 0 && events[last-1].InvocationID != id {
			last--
		}
		before = append(before, last)
	}
	return before
}

const app = "prompt"

// errEnough ends the run when the request is there, or cannot come any more.
var errEnough = errors.New("the run is not needed any more")

var errElsewhere = errors.New("the run does not come to it again")

// rebuild resumes a run from some events and returns the first request of a step.
func rebuild(ctx context.Context, code program.Code, initial map[string]any, events []*session.Event,
	at session.Address) (*Request, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	svc, made, err := storeOf(ctx, initial, events)
	if err != nil {
		return nil, err
	}
	started, err := supervisor.StartedWith(made)
	if err != nil {
		return nil, err
	}
	p, err := program.Decode(started)
	if err != nil {
		return nil, err
	}
	def, err := p.DefinitionFor(&code)
	if err != nil {
		return nil, err
	}
	e := &ear{code: code, at: at, alone: true, end: func() { cancel(errEnough) }}
	asks := false
	for a := range def.Root.All {
		asks = asks || a.Name == at.Agent() && a.Type == definition.TypeLLM
		e.alone = e.alone && a.Type != definition.TypeParallel
	}
	if !asks {
		return nil, ErrNotAsked
	}
	root, err := e.build(ctx, p, def)
	if err != nil {
		return nil, err
	}
	r, err := runner.New(runner.Config{AppName: app, Agent: root, SessionService: svc, Durable: true})
	if err != nil {
		return nil, err
	}
	cfg := def.RunConfig(p.Limits)
	cfg.Pause = new(agent.Pause)
	var failed error
	for _, err := range r.Resume(ctx, app, app, session.RunOf(made).ID, cfg) {
		if err != nil {
			failed = err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.err != nil:
		return nil, e.err
	case e.req == nil && failed != nil && !errors.Is(failed, errEnough):
		return nil, failed
	case e.req == nil:
		return nil, errElsewhere
	}
	e.req.Missing = missing(def, at.Agent())
	return e.req, nil
}

// storeOf puts some events into a session in memory, whose run can be resumed.
func storeOf(ctx context.Context, initial map[string]any, events []*session.Event) (session.Service, session.Session, error) {
	if len(events) == 0 {
		return nil, nil, errElsewhere
	}
	start := func() (session.Service, session.Session, error) {
		svc := session.InMemoryService()
		made, err := store.Start(ctx, svc, &session.StartRequest{
			CreateRequest: session.CreateRequest{AppName: app, UserID: app, SessionID: app, State: initial}, Events: events,
		})
		if err != nil {
			return nil, nil, err
		}
		return svc, made.Session, nil
	}
	id := events[len(events)-1].InvocationID
	svc, made, err := start()
	if err != nil {
		return nil, nil, err
	}
	if run := session.RunOf(made); run != nil && run.ID == id {
		return svc, made, nil
	}
	// The events that a fork has copied do not say how its run ended, so an event is added that says that it was cut off.
	ev, err := session.NewRunEvent(mark.Run{ID: id, Status: mark.RunIsPaused, Started: events[0].Timestamp}, app,
		mark.KindRunPaused, mark.RunPaused{Reason: "cut off"})
	if err != nil {
		return nil, nil, err
	}
	events = append(slices.Clip(events), ev)
	return start()
}

// missing returns the parts of an agent's requests that the log does not have.
func missing(def *definition.Definition, name string) (all []Missing) {
	for a := range def.Root.All {
		if a.Name != name || a.LLM == nil {
			continue
		}
		if slices.ContainsFunc(a.LLM.Tools, func(t definition.Tool) bool { return t.MCP != nil }) {
			all = append(all, MissingTools)
		}
		if len(a.Callbacks) > 0 {
			all = append(all, MissingCallbacks)
		}
	}
	return all
}

// ear records the requests of the step at an address. Every other agent that would act waits until the run ends.
type ear struct {
	code  program.Code
	at    session.Address
	alone bool // nobody else acts at the same time
	end   func()

	mu  sync.Mutex
	req *Request
	err error
}

// build makes the agents of a definition, of which none can do anything.
func (e *ear) build(ctx context.Context, p *program.Program, def *definition.Definition) (agent.Agent, error) {
	cfg := p.BuildConfig()
	cfg.DefaultModel = cmp.Or(cfg.DefaultModel, "none/none")
	cfg.Getenv = func(string) string { return "none" }
	cfg.CallbackFailed = func(error) {}
	e.code.Into(&cfg)
	cfg.Model = func(_ context.Context, name string) (model.LLM, error) { return &listener{e, name}, nil }
	cfg.StandIns = definition.StandIns{
		NoCallbacks: true, NoToolServers: true,
		Agent: func(a *definition.Agent) (agent.Agent, error) {
			if a.Type.Workflow() || slices.Contains([]definition.Type{definition.TypeLLM, definition.TypeExpression,
				definition.TypeTemplate}, a.Type) {
				return nil, nil
			}
			return agent.New(agent.Config{Name: a.Name, Description: a.Description, Run: e.waits})
		},
	}
	return def.Build(ctx, cfg)
}

// wait does nothing until the run ends. If no other agent acts, the step cannot begin any more.
func (e *ear) wait(ctx context.Context) {
	if e.alone {
		e.end()
	}
	<-ctx.Done()
}

// waits returns an agent that does nothing until the run ends.
func (e *ear) waits(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
	return func(yield func(*session.Event, error) bool) {
		e.wait(ctx)
		yield(nil, context.Cause(ctx))
	}
}

// listener takes the place of a model.
type listener struct {
	*ear
	name string
}

// Name returns the name without the provider's, because prices use that name.
func (l *listener) Name() string { return provider.OwnName(l.name) }

func (l *listener) GenerateContent(ctx context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		if inv, ok := ctx.(agent.InvocationContext); ok && drive.At(inv).Address() == l.at {
			l.mu.Lock()
			if l.req == nil && l.err == nil {
				l.req, l.err = Take(req)
			}
			l.mu.Unlock()
			l.end()
		}
		l.wait(ctx)
		yield(nil, context.Cause(ctx))
	}
}

// Take copies what is in a request.
func Take(req *model.LLMRequest) (*Request, error) {
	out := &Request{Messages: []Message{}}
	for _, c := range req.Contents {
		if c != nil {
			out.Messages = append(out.Messages, Message{Role: c.Role, Text: textOf(c)})
		}
	}
	if req.Config == nil {
		return out, nil
	}
	rest := *req.Config
	if s := rest.SystemInstruction; s != nil {
		out.System = textOf(s)
	}
	for _, set := range rest.Tools {
		for _, f := range set.FunctionDeclarations {
			t := Tool{Name: f.Name, Description: f.Description}
			var params any = f.ParametersJsonSchema
			if f.Parameters != nil {
				params = f.Parameters
			}
			if params != nil {
				var err error
				if t.Parameters, err = json.Marshal(params); err != nil {
					return nil, err
				}
			}
			out.Tools = append(out.Tools, t)
		}
	}
	rest.SystemInstruction, rest.Tools = nil, nil
	text, err := json.Marshal(rest)
	if err == nil && string(text) != "{}" {
		out.Settings = text
	}
	return out, err
}

// textOf writes a content as text: calls and their answers as JSON, data by its type and size.
func textOf(c *genai.Content) string {
	var parts []string
	for _, p := range c.Parts {
		switch {
		case p == nil:
		case p.FunctionCall != nil:
			parts = append(parts, "→ "+p.FunctionCall.Name+"("+asJSON(p.FunctionCall.Args)+")")
		case p.FunctionResponse != nil:
			parts = append(parts, "← "+p.FunctionResponse.Name+": "+asJSON(p.FunctionResponse.Response))
		case p.InlineData != nil:
			parts = append(parts, fmt.Sprintf("(%s, %d bytes)", p.InlineData.MIMEType, len(p.InlineData.Data)))
		case p.FileData != nil:
			parts = append(parts, "("+p.FileData.FileURI+")")
		default:
			parts = append(parts, p.Text)
		}
	}
	return strings.Join(parts, "\n")
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
