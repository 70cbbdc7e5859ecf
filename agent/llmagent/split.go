// SPDX-License-Identifier: Apache-2.0

package llmagent

import "google.golang.org/genai"

// split returns a content in pieces if it answers calls of several contents, as when a person has confirmed calls of
// more than one turn. Each piece must follow its calls. Other parts go into the last piece, and answers to unknown
// calls are left out. In the usual case split returns nil, and the content stays whole.
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

// callOf returns the index of the content that has the call that a part answers.
func (h *history) callOf(p *genai.Part) (int, bool) {
	if p.FunctionResponse == nil {
		return 0, false
	}
	at, ok := h.calls[p.FunctionResponse.ID]
	return at, ok
}
