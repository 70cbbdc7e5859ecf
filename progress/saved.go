// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"encoding/json"

	"github.com/refrain-dev/refrain/session"
)

// metadataContext is llmagent.MetadataContext, which is for those who have agents.
const metadataContext = "refrain:context"

// Saved is what the context policies of a run's agents have left out of its
// requests, against sending all that was said each time. With digests that have
// more than what they stand for, it is less than 0.
type Saved struct {
	// Chars are characters of conversations, as llmagent.Saving counts them, in
	// so many Requests.
	Chars, Requests int
}

// Tokens estimates the tokens, at four characters each.
func (s Saved) Tokens() int { return s.Chars / 4 }

// MarshalJSON writes the tokens too.
func (s Saved) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]int{"chars": s.Chars, "requests": s.Requests, "tokens": s.Tokens()})
}

// add takes in what an answer says. One that is said again from a cache took no
// request.
func (s *Saved) add(ev *session.Event) {
	m, ok := ev.CustomMetadata[metadataContext].(map[string]any)
	if !ok || ev.Partial || ev.CustomMetadata["cached"] == true {
		return
	}
	chars, _ := m["savedChars"].(float64)
	s.Chars += int(chars)
	s.Requests++
}
