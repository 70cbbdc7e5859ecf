// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session"
)

// late says whether the newest event is an answer that comes long after its call.
type late struct {
	at int // index of the content with the call; -1 if the newest event is no such answer

	user *genai.Content // the user's last message
	run  string         // the invocation that it began
}

// hear takes note of an event before its content is added.
func (l *late) hear(ev *session.Event, c *genai.Content) {
	l.at = -1
	if ev.Author == "user" {
		l.user, l.run = c, ev.InvocationID
	} else if l.run != ev.InvocationID {
		l.user = nil
	}
}

// lateLast is the conversation as the model gets it. A late answer stands last, as
// it does in ADK: what was said while it was pending is left out of this request,
// but for the message that began the invocation. Later requests have all of it,
// behind the answer. The slice is the caller's, with room for one more.
func (h *history) lateLast() []*genai.Content {
	all := append(make([]*genai.Content, 0, len(h.contents)+1), h.contents...)
	if h.late.at < 0 {
		return all
	}
	end := h.late.at + 2
	for _, c := range all[end:] {
		if c == h.late.user {
			return append(all[:end], c)
		}
	}
	return all[:end]
}
