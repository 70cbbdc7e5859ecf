// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"slices"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session"
)

// late says whether the newest event answers a call that was made before other contents.
type late struct {
	at int // index of the content with the call; -1 if the newest event is no such answer

	user *genai.Content // the user's last message
	run  string         // the invocation that it began
}

// hear updates l with an event, before its content is added.
func (l *late) hear(ev *session.Event, c *genai.Content) {
	l.at = -1
	if ev.Author == "user" {
		l.user, l.run = c, ev.InvocationID
	} else if l.run != ev.InvocationID {
		l.user = nil
	}
}

// lateLast returns the conversation for a request whose newest event is a late answer. The answer
// is last, as in ADK, so the request omits the contents that came while it was pending, except the
// message that began the invocation. Later requests have all of them, after the answer.
func (h *history) lateLast() []*genai.Content {
	end := h.late.at + 2
	list := slices.Clip(h.contents[:end])
	for _, c := range h.contents[end:] {
		if c == h.late.user {
			return append(list, c)
		}
	}
	return list
}
