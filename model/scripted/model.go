// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"regexp"
	"sync"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/values/sleep"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/internal/turns"
)

const provider = "scripted"

// Model is a model that answers from a script. It counts the turns of each agent since it was made.
// Use [Model.Fresh] to begin again, for example for another run. It is safe for concurrent use; if
// answers name their agents, agents that run in parallel get the same answers in each run.
type Model struct {
	script Script
	rules  []rule
	// readsAll says that a rule looks at whole requests.
	readsAll bool

	mu    sync.Mutex
	given []bool         // by rule
	turns map[string]int // by agent
}

var _ model.LLM = (*Model)(nil)

// New returns a model that answers from a script. It fails on an invalid script, such as one with
// an invalid regular expression.
func New(script Script) (*Model, error) {
	m := &Model{script: script}
	for i, a := range script.Answers {
		a, err := a.normal()
		if err != nil {
			return nil, fmt.Errorf("script: answer %d: %w", i+1, err)
		}
		m.readsAll = m.readsAll || a.MatchRequest != ""
		m.rules = append(m.rules, rule{a, regexp.MustCompile(a.Match), regexp.MustCompile(a.MatchRequest)})
	}
	return m.Fresh(), nil
}

// Fresh returns a model with the same script from its beginning.
func (m *Model) Fresh() *Model {
	return &Model{script: m.script, rules: m.rules, readsAll: m.readsAll, given: make([]bool, len(m.rules)),
		turns: make(map[string]int)}
}

// Name returns the script's name; the default is "scripted".
func (m *Model) Name() string {
	if m.script.Name != "" {
		return m.script.Name
	}
	return provider
}

// Provider returns "scripted"; see observe.ProviderOf.
func (*Model) Provider() string { return provider }

// GenerateContent returns the script's next answer.
func (m *Model) GenerateContent(ctx context.Context, req *model.LLMRequest,
	stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		if ctx.Err() != nil {
			yield(nil, contextError(ctx))
			return
		}
		a, err := m.Take(req)
		if err == nil && sleep.For(ctx, a.Delay) != nil {
			err = contextError(ctx)
		}
		if err == nil {
			err = a.failure()
		}
		if err != nil {
			yield(nil, err)
			return
		}
		if stream && !a.speak(ctx, yield) {
			return
		}
		if a.Hang {
			<-ctx.Done()
			yield(nil, contextError(ctx))
			return
		}
		if err := a.broken(); err != nil {
			yield(nil, err)
			return
		}
		yield(a.response(), nil)
	}
}

func contextError(ctx context.Context) error {
	return fmt.Errorf("ask %s: %w", provider, context.Cause(ctx))
}

// failure is the error in place of an answer; nil if there is to be one.
func (a Answer) failure() error {
	f := a.Error
	if f == nil {
		return nil
	}
	return &model.APIError{
		Provider: provider, Status: f.Status, Code: f.Code, Message: f.Message, RetryAfter: f.RetryAfter,
		Retryable: f.Status == 0 || model.RetryableStatus(f.Status),
	}
}

// broken returns the error in the middle of an answer, or nil.
func (a Answer) broken() error {
	switch {
	case a.Garbage:
		return &model.APIError{Provider: provider, Status: 200, Code: "garbage",
			Message: "an answer that is not understood"}
	case a.Cut:
		return &model.APIError{Provider: provider, Status: 200, Message: "the answer broke off",
			Err: io.ErrUnexpectedEOF, Retryable: true}
	}
	return nil
}

// speak yields the pieces of a streamed answer, only some of them if the answer is broken, and
// reports whether the consumer continues.
func (a Answer) speak(ctx context.Context, yield func(*model.LLMResponse, error) bool) bool {
	var pieces []*genai.Part
	if a.Thought != "" {
		pieces = append(pieces, &genai.Part{Text: a.Thought, Thought: true})
	}
	for _, text := range a.Pieces() {
		pieces = append(pieces, &genai.Part{Text: text})
	}
	if a.Refusal != "" {
		pieces = append(pieces, &genai.Part{Text: a.Refusal})
	}
	switch {
	case a.Hang, a.Garbage:
		pieces = pieces[:min(1, len(pieces))]
	case a.Cut:
		pieces = pieces[:(len(pieces)+1)/2]
	}
	for i, p := range pieces {
		if i > 0 {
			if sleep.For(ctx, a.Pace) != nil {
				yield(nil, contextError(ctx))
				return false
			}
		}
		resp := scriptedResponse(p)
		resp.Partial = true
		if !yield(resp, nil) {
			return false
		}
		if ctx.Err() != nil {
			yield(nil, contextError(ctx))
			return false
		}
	}
	return true
}

// response is the whole answer.
func (a Answer) response() *model.LLMResponse {
	resp := scriptedResponse()
	resp.UsageMetadata = a.Usage.Metadata()
	add := func(p *genai.Part) { resp.Content.Parts = append(resp.Content.Parts, p) }
	if a.Thought != "" {
		add(&genai.Part{Text: a.Thought, Thought: true})
	}
	if a.Text != "" {
		add(&genai.Part{Text: a.Text})
	}
	if a.Refusal != "" {
		add(&genai.Part{Text: a.Refusal})
		resp.ErrorCode, resp.ErrorMessage = "REFUSAL", a.Refusal
		a.Finish = string(genai.FinishReasonSafety)
	}
	var malformed error
	for _, c := range a.Calls {
		part := &genai.Part{FunctionCall: &genai.FunctionCall{ID: c.ID, Name: c.Name, Args: cloneArgs(c.Args)}}
		if c.Raw != "" {
			var err error
			if part, err = turns.Call(c.ID, c.Name, c.Raw); err != nil {
				malformed = err
				continue
			}
		}
		add(part)
	}
	turns.Finish(resp, genai.FinishReason(a.Finish), "")
	if malformed != nil {
		turns.Malformed(resp, malformed)
	}
	return resp
}

func scriptedResponse(parts ...*genai.Part) *model.LLMResponse {
	return &model.LLMResponse{
		Content:        &genai.Content{Role: string(genai.RoleModel), Parts: parts},
		ModelVersion:   provider,
		CustomMetadata: map[string]any{"scripted": true},
	}
}

// cloneArgs copies arguments, which are JSON, because the receiver may change them.
func cloneArgs(args map[string]any) (own map[string]any) {
	data, _ := json.Marshal(args)
	_ = json.Unmarshal(data, &own)
	return own
}
