// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/values/uuid"
)

// ownID is the prefix of the IDs that the agent makes, for calls to which the model gave no ID, or one that the session
// cannot keep.
const ownID = "call-"

// newCallID returns a new ID for a call without one. The log needs it, and the model never sees it.
func newCallID() string { return ownID + uuid.New().String() }

// mostIDBytes is the largest length of an ID from the model that the log keeps.
const mostIDBytes = 200

// fits reports whether the log can keep an ID that a model gave a call.
func fits(id string) bool {
	return len(id) <= mostIDBytes && utf8.ValidString(id) && !strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) })
}

// givenID returns the ID that the model gave a call; empty if it gave none. Own reports whether the agent has replaced
// it by its own ID.
func givenID(id string) (given string, own bool) {
	rest, ok := strings.CutPrefix(id, ownID)
	if !ok || len(rest) < 36 || !uuid.Valid(rest[:36]) {
		return id, false
	}
	if rest = rest[36:]; rest == "" {
		return "", true
	}
	given, own = strings.CutPrefix(rest, "~")
	if !own {
		return id, false
	}
	return given, true
}

// isOwnID reports whether the agent made an ID.
func isOwnID(id string) bool {
	_, own := givenID(id)
	return own
}

// withIDs returns c with an ID for each call that is unique in the session. It does not change c.
func (r *run) withIDs(c *genai.Content) *genai.Content {
	calls := callsOf(c)
	if len(calls) == 0 {
		return c
	}
	given := make([]string, len(calls))
	for i, call := range calls {
		if fits(call.ID) && !isOwnID(call.ID) {
			given[i] = call.ID
		}
	}
	ids := drive.At(r.ctx).ClaimCalls(given, func(i, n int) string { return r.ownID(calls[i].ID, n) })
	if slices.Equal(ids, given) {
		return c
	}
	c = &genai.Content{Role: c.Role, Parts: slices.Clone(c.Parts)}
	for i, p := range c.Parts {
		if p == nil || p.FunctionCall == nil {
			continue
		}
		if id := ids[0]; id != p.FunctionCall.ID {
			part, call := *p, *p.FunctionCall
			call.ID = id
			part.FunctionCall = &call
			c.Parts[i] = &part
		}
		ids = ids[1:]
	}
	return c
}

// ownID returns an ID for a call that has none, or whose ID another call of the session has. The new ID contains the
// given one, if the log can keep that, because the model gets the answer under the given one. n distinguishes calls
// with the same given ID.
func (r *run) ownID(given string, n int) string {
	id := ownID + uuid.Named(fmt.Append(nil, r.ctx.Session().ID(), "\x00", n, "\x00", given)).String()
	if given == "" || !fits(given) {
		return id
	}
	return id + "~" + given
}

// bare is a content with calls, and the content with their answers, with the IDs that the model gave instead of the
// agent's own.
type bare struct {
	answers *genai.Content // the content with the answers in the history; nil if there is none

	calls, answered *genai.Content
}

// bareList is the beginning of a conversation without the agent's own IDs.
type bareList struct {
	list []*genai.Content
	open *genai.Content // the last content, if its calls have own IDs, because its form depends on the next content
}

// withoutIDs removes the agent's own IDs from a conversation, and returns the result. b holds the beginning of the
// result from the last call. Changed contents are copies, which stay the same from request to request.
func (h *history) withoutIDs(b *bareList, list []*genai.Content) []*genai.Content {
	instead := b.open // replaces the next content; nil if that is not replaced
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

// bareOf returns the bare form of a content with calls and of the content with their answers, which may be nil. It
// keeps the own IDs if the answers are not in the order of the calls.
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

// inOrder reports whether the names, and the IDs that the model gave, are enough to tell which answer belongs to which
// call. This holds if calls with the same name, or with the same given ID, are answered in the order in which they were
// made.
func inOrder(calls, answers *genai.Content) bool {
	open := make(map[string][]string) // name, or given ID -> IDs
	keys := func(id, name string) []string {
		if given, _ := givenID(id); given != "" {
			return []string{"name " + name, "id " + given}
		}
		return []string{"name " + name}
	}
	for _, c := range callsOf(calls) {
		for _, key := range keys(c.ID, c.Name) {
			open[key] = append(open[key], c.ID)
		}
	}
	for _, p := range answers.Parts {
		f := p.FunctionResponse
		if f == nil {
			continue
		}
		for _, key := range keys(f.ID, f.Name) {
			ids := open[key]
			if len(ids) == 0 || ids[0] != f.ID {
				return false
			}
			open[key] = ids[1:]
		}
	}
	return true
}

// withoutOwnIDs returns a copy of a content with the IDs that the model gave instead of the agent's own. It returns nil
// for nil.
func withoutOwnIDs(c *genai.Content) *genai.Content {
	if c == nil {
		return nil
	}
	given := &genai.Content{Role: c.Role, Parts: make([]*genai.Part, len(c.Parts))}
	for i, p := range c.Parts {
		switch {
		case p.FunctionCall != nil && isOwnID(p.FunctionCall.ID):
			p = new(*p)
			p.FunctionCall = new(*p.FunctionCall)
			p.FunctionCall.ID, _ = givenID(p.FunctionCall.ID)
		case p.FunctionResponse != nil && isOwnID(p.FunctionResponse.ID):
			p = new(*p)
			p.FunctionResponse = new(*p.FunctionResponse)
			p.FunctionResponse.ID, _ = givenID(p.FunctionResponse.ID)
		}
		given.Parts[i] = p
	}
	return given
}
