// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"

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
	Chars    int `json:"chars"`
	Requests int `json:"requests"`
}

// Tokens estimates the tokens, at four characters each.
func (s Saved) Tokens() int { return s.Chars / 4 }

// String is such as "context_saved_chars=48210 context_saved_tokens=12052"; empty
// if nothing was left out.
func (s Saved) String() string {
	if s.Chars == 0 {
		return ""
	}
	return fmt.Sprintf("context_saved_chars=%d context_saved_tokens=%d", s.Chars, s.Tokens())
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

// Saved is what context policies have left out so far.
func (f *Fold) Saved() Saved { return f.saved }
