// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"encoding/json"
	"slices"

	"google.golang.org/genai"
)

// Recall records that an agent has got an answer in an earlier part of a resumed run, so that the
// script of a new model continues after that answer. Call it for each answer in order, but not for
// failures: a resumed run may meet a failure again.
func (m *Model) Recall(agent string, said *genai.Content) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turns[agent]++
	for i, r := range m.rules {
		if m.given[i] || r.Agent != "" && r.Agent != agent || r.Turn != 0 && r.Turn != m.turns[agent] ||
			r.Error != nil {
			continue
		}
		if same(r.response().Content, said) {
			m.given[i] = true
			return
		}
	}
}

// same reports whether two answers say the same and call the same functions with the
// same arguments.
func same(a, b *genai.Content) bool {
	words := func(c *genai.Content) (text string, calls []string) {
		for _, p := range c.Parts {
			switch {
			case p == nil:
			case p.FunctionCall != nil:
				args := []byte("{}")
				if len(p.FunctionCall.Args) > 0 {
					args, _ = json.Marshal(p.FunctionCall.Args) // they were JSON
				}
				calls = append(calls, p.FunctionCall.Name+" "+string(args))
			case !p.Thought:
				text += p.Text
			}
		}
		return text, calls
	}
	if a == nil || b == nil {
		return false
	}
	textA, callsA := words(a)
	textB, callsB := words(b)
	return textA == textB && slices.Equal(callsA, callsB)
}
