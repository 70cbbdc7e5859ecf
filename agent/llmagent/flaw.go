// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"fmt"
	"slices"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
)

// AnswerError reports that a model gave no usable answer: it refused; its provider blocked the answer;
// the answer reached the limit of tokens; it held only thoughts; or the model kept calling unknown
// tools, or calling tools in a form that cannot be read, in all attempts that [RequestRetry] allows. The
// response is in the log, but is not written to the output key. To use it anyway, return another
// response in an AfterModelCallback.
type AnswerError struct {
	// Code is the response's ErrorCode, such as SAFETY, REFUSAL or
	// MALFORMED_FUNCTION_CALL; or MAX_TOKENS; or THOUGHTS_ONLY.
	Code string
	// Message gives details, from the provider if it gave any.
	Message string
	// Err is the budget's error if a budget limited the answer, else nil.
	Err error
}

// Error returns the reason.
func (e *AnswerError) Error() string {
	if e.Code == cutOff {
		return "the answer was cut off at MAX_TOKENS; " + e.Message
	}
	text := "the model gave no answer: " + e.Code
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Unwrap returns the budget's error.
func (e *AnswerError) Unwrap() error { return e.Err }

const cutOff = string(genai.FinishReasonMaxTokens)

// isCut reports whether an answer broke off at its limit of tokens. An answer without an error whose calls arrived
// complete does not count as cut.
func isCut(resp *model.LLMResponse) bool {
	return resp.FinishReason == genai.FinishReasonMaxTokens && (resp.ErrorCode != "" || len(callsOf(resp.Content)) == 0)
}

// isGarbled reports whether a model tried to call a tool but wrote the call in a wrong form.
func isGarbled(resp *model.LLMResponse) bool {
	codes := []genai.FinishReason{genai.FinishReasonMalformedFunctionCall, genai.FinishReasonUnexpectedToolCall}
	return slices.Contains(codes, genai.FinishReason(resp.ErrorCode)) && !isCut(resp)
}

// isFlawed reports whether a complete response is not a usable answer.
func isFlawed(resp *model.LLMResponse) bool { return resp.ErrorCode != "" || isCut(resp) }

// thoughtOnly is the error code for a model that gave only thoughts in all attempts.
const thoughtOnly = "THOUGHTS_ONLY"

// isThought reports whether an answer has only thoughts. The model has not finished, so the agent
// asks it again.
func isThought(ev *session.Event) bool {
	if ev.Content == nil || isFlawed(&ev.LLMResponse) || ev.Interrupted {
		return false
	}
	thinks := false
	for _, p := range ev.Content.Parts {
		switch {
		case p == nil || isEmpty(p):
		case !p.Thought:
			return false
		default:
			thinks = true
		}
	}
	return thinks
}

// flaw returns an error if the model's last response is not an answer. It returns nil if the response is an answer, or
// if the agent can point out the problem and ask again.
func (r *run) flaw(last *session.Event) error {
	resp := &last.LLMResponse
	switch {
	case !isFlawed(resp):
		return nil
	case isCut(resp):
		return r.cut()
	case isGarbled(resp) && r.again():
		r.correction = "Your call of a tool could not be read and was not made: " + resp.ErrorMessage +
			". Call the tool again; its arguments are one JSON object."
		return nil
	}
	return &AnswerError{Code: resp.ErrorCode, Message: resp.ErrorMessage}
}

// cut returns the error for an answer that was cut off at its limit of tokens. If the budget set
// that limit, the error is the budget's.
func (r *run) cut() error {
	e := &AnswerError{Code: cutOff, Message: "raise max_output_tokens"}
	if c := r.call; c != nil && c.whole && c.wanted.OutputTokens > 0 {
		e.Message = fmt.Sprintf("the budget left %d tokens for it", c.room.MaxOutputTokens)
		if e.Err = drive.At(r.ctx).Budget().Check(c.wanted); e.Err != nil {
			e.Message += ": " + e.Err.Error()
		}
	}
	return e
}

// more returns the contents that belong to this request only and follow the conversation: those of tools, a prompt if
// no content asks the model to speak, the instruction after a StaticInstruction, and the problem of the model's last
// answer.
func (r *run) more(list []*genai.Content) (more []*genai.Content) {
	if more = r.history.added; len(more) > 0 {
		list = more
	}
	if n := len(list); n == 0 || list[n-1].Role != genai.RoleUser {
		prompt := r.prompt
		switch {
		case prompt != "":
		case n == 0:
			prompt = begin
		default:
			prompt = goOn
		}
		more = append(more, genai.NewContentFromText(prompt, genai.RoleUser))
	}
	if told := r.history.instruction; told != nil {
		more = append(more[:len(more):len(more)], told)
	}
	if r.correction != "" {
		more = append(more, genai.NewContentFromText(r.correction, genai.RoleUser))
	}
	r.prompt, r.correction = "", ""
	return more
}

// again reports whether the agent may repeat a turn that had no result, and counts its requests.
func (r *run) again() bool {
	if r.tried >= r.cfg.RequestRetry.first().Attempts {
		return false
	}
	r.vain = r.tried
	return true
}

// metadataVain is the key in the CustomMetadata of an event with tool answers if none of the calls had an effect.
const metadataVain = "refrain:vain"

// inVain returns the error for a model whose calls had no effect in all its attempts, and nil before that.
func (r *run) inVain(answers *session.Event) error {
	if answers.CustomMetadata[metadataVain] != true || r.again() {
		return nil
	}
	e := &AnswerError{Code: string(genai.FinishReasonUnexpectedToolCall), Message: "it calls what it cannot call"}
	for _, p := range answers.Content.Parts {
		if f := p.FunctionResponse; f != nil {
			e.Message = fmt.Sprint(f.Response["error"])
			break
		}
	}
	return e
}
