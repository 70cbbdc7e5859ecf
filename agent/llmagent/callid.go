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

// bareList is the beginning of a conversation without the IDs that the model did not
// give.
type bareList struct {
	list []*genai.Content
	open *genai.Content // the last content, if its calls have own IDs: it depends on the next one
}

// withoutIDs takes IDs that the model did not give out of a conversation, of which b
// has the beginning, and returns b's list. Contents are replaced by copies, which stay
// the same from request to request.
func (h *history) withoutIDs(b *bareList, list []*genai.Content) []*genai.Content {
	instead := b.open // in place of the next content; nil to take that itself
	if b.open != nil {
		b.list = b.list[:len(b.list)-1]
	}
	for i := len(b.list); i < len(list); i++ {
		c := list[i]
		if instead != nil {
			c = instead
		}
		instead, b.open = nil, nil
		if !hasOwnIDs(c) {
			b.list = append(b.list, c)
			continue
		}
		var next *genai.Content
		if i+1 < len(list) && hasAnswers(list[i+1]) {
			next = list[i+1]
		}
		pair := h.bareOf(c, next)
		b.list, instead = append(b.list, pair.calls), pair.answered
		if i+1 == len(list) {
			b.open = c
		}
	}
	return b.list
}

// bareOf returns the pair of a content with calls and the content with their answers, which may be
// nil.
func (h *history) bareOf(c, answers *genai.Content) bare {
	b, known := h.bare[c]
	if known && b.answers == answers {
		return b
	}
	b = bare{answers: answers, calls: c, answered: answers}
	if answers == nil || inOrder(c, answers) {
		b.calls, b.answered = withoutOwnIDs(c), withoutOwnIDs(answers)
	}
	if h.bare == nil {
		h.bare = make(map[*genai.Content]bare)
	}
	h.bare[c] = b
	return b
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
			p = new(*p)
			p.FunctionCall = new(*p.FunctionCall)
			p.FunctionCall.ID = ""
		case p.FunctionResponse != nil && isOwnID(p.FunctionResponse.ID):
			p = new(*p)
			p.FunctionResponse = new(*p.FunctionResponse)
			p.FunctionResponse.ID = ""
		}
		own.Parts[i] = p
	}
	return own
}
