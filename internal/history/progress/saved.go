// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"encoding/json"

	"github.com/refrain-dev/refrain/session"
)

// metadataContext is llmagent.MetadataContext, which is for those who have agents.
const metadataContext = "refrain:context"

// Saved is the part of a run's requests that its agents' context policies left out, compared with sending the whole
// conversation each time. It is negative if digests are longer than the texts that they replace.
type Saved struct {
	// Chars are the characters of conversations, as [llmagent.Saving] counts them, Requests the number of requests.
	Chars, Requests int
}

// Tokens estimates the tokens, at four characters each.
func (s Saved) Tokens() int { return s.Chars / 4 }

// MarshalJSON adds the estimated tokens.
func (s Saved) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]int{"chars": s.Chars, "requests": s.Requests, "tokens": s.Tokens()})
}

// add counts an answer. A repeated answer from a cache took no request.
func (s *Saved) add(ev *session.Event) {
	m, ok := ev.CustomMetadata[metadataContext].(map[string]any)
	if !ok || ev.Partial || ev.CustomMetadata["cached"] == true {
		return
	}
	chars, _ := m["savedChars"].(float64)
	s.Chars += int(chars)
	s.Requests++
}
