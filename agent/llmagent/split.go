// SPDX-License-Identifier: Apache-2.0

package llmagent

import "google.golang.org/genai"

// split returns a content in pieces if it has answers to calls of several contents, as when a
// person has confirmed calls of more than one turn: each piece belongs behind its calls. Parts that
// are no answer stay with the last piece. split returns nil in the usual case, in which the content
// stays whole.
func (h *history) split(c *genai.Content) []*genai.Content {
	first, several := -1, false
	for _, p := range c.Parts {
		if at, ok := h.callOf(p); ok {
			several = several || first >= 0 && at != first
			first = at
		}
	}
	if !several {
		return nil
	}
	var pieces []*genai.Content
	places := make(map[int]*genai.Content)
	for _, p := range c.Parts {
		at, ok := h.callOf(p)
		if !ok {
			continue
		}
		if places[at] == nil {
			places[at] = &genai.Content{Role: c.Role}
			pieces = append(pieces, places[at])
		}
		places[at].Parts = append(places[at].Parts, p)
	}
	last := pieces[len(pieces)-1]
	for _, p := range c.Parts {
		if _, ok := h.callOf(p); !ok && p.FunctionResponse == nil {
			last.Parts = append(last.Parts, p)
		}
	}
	return pieces
}

// callOf is the index of the content with the call that a part answers.
func (h *history) callOf(p *genai.Part) (int, bool) {
	if p.FunctionResponse == nil {
		return 0, false
	}
	at, ok := h.calls[p.FunctionResponse.ID]
	return at, ok
}
