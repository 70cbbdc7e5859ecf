// SPDX-License-Identifier: Apache-2.0

package elsewhere

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/model"
)

// KindModel is the kind of tasks that ask a model.
const KindModel = "model"

// Model is a model that is asked on another machine, with the keys of that one. Each request is a task.
// Pieces of a streamed answer do not travel: the answer comes as a whole.
type Model struct {
	queue        Queue
	full, called string
}

// NewModel returns the model that the workers of a queue open by the name full, such as
// openai/gpt-5-mini. called is its own name, as [model.LLM] has it.
func NewModel(q Queue, full, called string) *Model { return &Model{q, full, called} }

// Name returns the provider's name of the model.
func (m *Model) Name() string { return m.called }

// Provider is whose model it is; see observe.ProviderOf.
func (m *Model) Provider() string {
	name, _, _ := strings.Cut(m.full, "/")
	if name == "gemini" {
		return "gcp.gemini"
	}
	return name
}

// GenerateContent asks the model for a step. ctx has to be an [agent.InvocationContext]; requests of
// one step are told apart by [WithRequest].
func (m *Model) GenerateContent(ctx context.Context, req *model.LLMRequest,
	_ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) { yield(m.ask(ctx, req)) }
}

func (m *Model) ask(ctx context.Context, req *model.LLMRequest) (*model.LLMResponse, error) {
	inv, ok := ctx.(agent.InvocationContext)
	if !ok {
		return nil, fmt.Errorf("model %q is asked elsewhere, which only a step of a run can do", m.full)
	}
	part, _ := ctx.Value(requestKey{}).(string)
	var got answer
	err := m.queue.Do(inv, Call{Kind: KindModel, Spec: question{m.full, req, model.CacheHintOf(ctx)}, Part: part}, &got)
	switch {
	case err != nil:
		return nil, err
	case got.Failure != nil:
		return nil, fmt.Errorf("task queue %q: %w", m.queue.Name, modelKinds.Read(got.Failure))
	case got.Response == nil:
		return nil, fmt.Errorf("task queue %q: there is no answer in the result", m.queue.Name)
	}
	return got.Response, nil
}

type requestKey struct{}

// WithRequest returns the context with which a step sends one of several requests. The number has to be
// the same when the run is resumed.
func WithRequest(ctx agent.InvocationContext, number string) agent.InvocationContext {
	return ctx.WithContext(context.WithValue(ctx, requestKey{}, number))
}

// question is a request to a model as it travels.
type question struct {
	Model   string            `json:"model"`
	Request *model.LLMRequest `json:"request"`
	Cache   *model.CacheHint  `json:"cache,omitempty"`
}

// answer is what came of it.
type answer struct {
	Response *model.LLMResponse `json:"response,omitempty"`
	Failure  Failure            `json:"failure,omitempty"`
}

var modelKinds = Kinds{Fields[*model.APIError]("provider"), Late}

// Ask does a task of the kind [KindModel] here. How it fails is part of the result.
func Ask(ctx context.Context, t *Task,
	open func(ctx context.Context, name string) (model.LLM, error)) (json.RawMessage, error) {
	var q question
	err := json.Unmarshal(t.Spec, &q)
	if err == nil && q.Request == nil {
		err = errors.New("there is no request")
	}
	if err != nil {
		return nil, fmt.Errorf("read task %s as a request to a model: %w", t.ID, err)
	}
	var got answer
	llm, err := open(ctx, q.Model)
	if err == nil {
		got.Response, err = lastResponse(model.WithCacheHint(ctx, q.Cache), llm, q.Request)
	}
	got.Failure = modelKinds.Write(err)
	return json.Marshal(got)
}

// lastResponse is the model's whole answer.
func lastResponse(ctx context.Context, llm model.LLM, req *model.LLMRequest) (last *model.LLMResponse, _ error) {
	for resp, err := range llm.GenerateContent(ctx, req, false) {
		if err != nil {
			return nil, err
		}
		if resp != nil && !resp.Partial {
			last = resp
		}
	}
	if last == nil {
		return nil, fmt.Errorf("model %q said nothing", llm.Name())
	}
	return last, nil
}
