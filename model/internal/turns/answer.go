// SPDX-License-Identifier: Apache-2.0

package turns

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/internal/values/uuid"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/model"
)

// Answer puts the pieces of an answer together, as they arrive.
type Answer struct {
	parts []*genai.Part
	text  strings.Builder // of the last part, while open
	open  bool
}

// Text adds a piece of text or of thought.
func (a *Answer) Text(piece string, thought bool) {
	if piece == "" {
		return
	}
	a.begin(thought)
	a.text.WriteString(piece)
}

// Sign puts a signature on the text or thought that is being written, and ends
// it. With none of that kind open, it begins an empty one.
func (a *Answer) Sign(signature []byte, thought bool) {
	a.begin(thought)
	a.parts[len(a.parts)-1].ThoughtSignature = signature
	a.End()
}

// Part adds a whole part.
func (a *Answer) Part(p *genai.Part) {
	a.End()
	a.parts = append(a.parts, p)
}

// End ends the text that is being written, so that further text becomes a new part.
func (a *Answer) End() {
	if a.open {
		a.parts[len(a.parts)-1].Text = a.text.String()
		a.text.Reset()
		a.open = false
	}
}

// Content returns the whole answer.
func (a *Answer) Content() *genai.Content {
	a.End()
	return &genai.Content{Role: genai.RoleModel, Parts: a.parts}
}

func (a *Answer) begin(thought bool) {
	if a.open && a.parts[len(a.parts)-1].Thought == thought {
		return
	}
	a.End()
	a.parts = append(a.parts, &genai.Part{Thought: thought})
	a.open = true
}

// Partial returns the response that shows a piece of a streamed answer.
func Partial(piece string, thought bool) *model.LLMResponse {
	return &model.LLMResponse{
		Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{Text: piece, Thought: thought}}},
		Partial: true,
	}
}

// Call makes a function call of its wire form; args are a JSON object, or empty
// for none. It fails if they are not, in words for the model.
func Call(id, name, args string) (*genai.Part, error) {
	call := &genai.FunctionCall{ID: id, Name: name, Args: map[string]any{}}
	if call.ID == "" {
		call.ID = NewID()
	}
	if strings.TrimSpace(args) != "" {
		if err := json.Unmarshal([]byte(args), &call.Args); err != nil {
			return nil, fmt.Errorf("arguments of the call of %q are not a JSON object: %w; they were %s", name, err,
				brief.Clip(args, 400))
		}
		if call.Args == nil { // null
			call.Args = map[string]any{}
		}
	}
	return &genai.Part{FunctionCall: call}, nil
}

// NewID makes an ID for a function call whose provider gave it none. It is random, because calls
// are matched with answers across a whole session, and short enough for every provider.
func NewID() string {
	u := uuid.New()
	return "call_" + hex.EncodeToString(u[:12])
}

// Finish completes a response from its finish reason: one that is neither STOP
// nor MAX_TOKENS is a refusal or a breakdown, which the response says in
// ErrorCode and ErrorMessage.
func Finish(resp *model.LLMResponse, reason genai.FinishReason, message string) {
	resp.FinishReason = reason
	switch reason {
	case genai.FinishReasonStop, genai.FinishReasonMaxTokens, genai.FinishReasonUnspecified, "":
		return
	}
	if resp.ErrorCode == "" {
		resp.ErrorCode = string(reason)
	}
	if resp.ErrorMessage == "" {
		resp.ErrorMessage = message
	}
	if resp.ErrorMessage == "" {
		resp.ErrorMessage = "the model stopped with " + string(reason)
	}
}

// Malformed completes a response whose function call cannot be read. That is
// the model's mistake, not the provider's, so it is an answer, as it is with
// Gemini.
func Malformed(resp *model.LLMResponse, cause error) {
	resp.ErrorCode = string(genai.FinishReasonMalformedFunctionCall)
	resp.ErrorMessage = cause.Error()
	if resp.FinishReason != genai.FinishReasonMaxTokens {
		resp.FinishReason = genai.FinishReasonMalformedFunctionCall
	}
}
