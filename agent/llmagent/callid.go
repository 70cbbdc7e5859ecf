// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"strings"

	"github.com/google/uuid"
	"google.golang.org/genai"
)

// ownID begins the IDs of calls that the model gave none.
const ownID = "call-"

// newCallID makes an ID for a call without one. The log needs it; the model never
// sees it.
func newCallID() string { return ownID + uuid.NewString() }

// isOwnID reports whether newCallID made an ID.
func isOwnID(id string) bool {
	rest, ok := strings.CutPrefix(id, ownID)
	return ok && len(rest) == 36 && uuid.Validate(rest) == nil
}

// bare is a content with calls, and the one with their answers, as the model gets
// them: without the IDs that it did not give.
type bare struct {
	answers *genai.Content // as it is in the history; nil if there is none

	calls, answered *genai.Content
}

// withoutIDs takes IDs that the model did not give out of a conversation, in
// place. Contents are replaced by copies, which stay the same from request to
// request.
func (h *history) withoutIDs(list []*genai.Content) []*genai.Content {
	for i, c := range list {
		b, known := h.bare[c]
		if !known {
			if !hasOwnIDs(c) {
				continue
			}
			b.calls = c
		}
		var next *genai.Content
		if i+1 < len(list) && hasAnswers(list[i+1]) {
			next = list[i+1]
		}
		if !known || b.answers != next {
			b = bare{answers: next, calls: c, answered: next}
			if next == nil || inOrder(c, next) {
				b.calls, b.answered = withoutOwnIDs(c), withoutOwnIDs(next)
			}
			if h.bare == nil {
				h.bare = make(map[*genai.Content]bare)
			}
			h.bare[c] = b
		}
		list[i] = b.calls
		if next != nil {
			list[i+1] = b.answered
		}
	}
	return list
}

func hasOwnIDs(c *genai.Content) bool {
	for _, p := range c.Parts {
		if p.FunctionCall != nil && isOwnID(p.FunctionCall.ID) {
			return true
		}
	}
	return false
}

// inOrder reports whether names alone tell which answer is to which call: calls of
// one name are answered in the order in which they were made.
func inOrder(calls, answers *genai.Content) bool {
	open := make(map[string][]string) // name -> IDs
	for _, c := range callsOf(calls) {
		open[c.Name] = append(open[c.Name], c.ID)
	}
	for _, p := range answers.Parts {
		f := p.FunctionResponse
		if f == nil {
			continue
		}
		ids := open[f.Name]
		if len(ids) == 0 || ids[0] != f.ID {
			return false
		}
		open[f.Name] = ids[1:]
	}
	return true
}

// withoutOwnIDs is a copy of a content without the IDs that newCallID made; nil of
// nil.
func withoutOwnIDs(c *genai.Content) *genai.Content {
	if c == nil {
		return nil
	}
	own := &genai.Content{Role: c.Role, Parts: make([]*genai.Part, len(c.Parts))}
	for i, p := range c.Parts {
		switch {
		case p.FunctionCall != nil && isOwnID(p.FunctionCall.ID):
			p = copied(p)
			p.FunctionCall = copied(p.FunctionCall)
			p.FunctionCall.ID = ""
		case p.FunctionResponse != nil && isOwnID(p.FunctionResponse.ID):
			p = copied(p)
			p.FunctionResponse = copied(p.FunctionResponse)
			p.FunctionResponse.ID = ""
		}
		own.Parts[i] = p
	}
	return own
}
