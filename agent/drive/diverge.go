// SPDX-License-Identifier: Apache-2.0

package drive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// describe names an event in few words.
func describe(ev *session.Event) string {
	if ev.Mark != nil {
		return fmt.Sprintf("%s of %s", ev.Mark.Kind, ev.Address)
	}
	what := fmt.Sprintf("an event of %s", ev.Address)
	if text := ev.Text(); text != "" {
		if r := []rune(text); len(r) > 60 {
			text = string(r[:60]) + "…"
		}
		what += fmt.Sprintf(" that says %q", text)
	}
	return what
}

// compare holds what a step says again against what the log has. It does not
// look at what is new by nature, such as times and numbers.
func compare(recorded, said *session.Event) *agent.DivergedError {
	if sameMark(recorded, said) {
		return nil
	}
	a, b := lasting(recorded), lasting(said)
	if bytes.Equal(a, b) {
		return nil
	}
	return &agent.DivergedError{Address: recorded.Address, Recorded: string(a), Said: string(b)}
}

// sameMark is compare for two events that are nothing but marks, as most are.
func sameMark(a, b *session.Event) bool {
	bare := func(ev *session.Event) bool {
		return ev.Mark != nil && ev.Content == nil && ev.Actions.StateDelta == nil && ev.Actions.Exit == nil &&
			ev.CustomMetadata == nil
	}
	return bare(a) && bare(b) && a.Author == b.Author && a.Iteration == b.Iteration &&
		a.Mark.Kind == b.Mark.Kind && bytes.Equal(a.Mark.Data, b.Mark.Data)
}

// lasting is an event as JSON without what is new by nature. Numbers are all of
// one kind, as they are after a journey through a store.
func lasting(ev *session.Event) []byte {
	first, err := json.Marshal(ev)
	if err != nil {
		return []byte(err.Error())
	}
	var m map[string]any
	if err := json.Unmarshal(first, &m); err != nil {
		return []byte(err.Error())
	}
	for _, key := range [...]string{"id", "timestamp", "seq", "invocationId", "attempt", "branch", "usageMetadata"} { // the address tells the branch
		delete(m, key)
	}
	if metadata, ok := m["customMetadata"].(map[string]any); ok {
		delete(metadata, metadataCallback)
		delete(metadata, mark.MetadataWarning)
		if delete(metadata, MetadataTemp); len(metadata) == 0 {
			delete(m, "customMetadata")
		}
	}
	if actions, ok := m["actions"].(map[string]any); ok {
		if delta, ok := actions["stateDelta"].(map[string]any); ok {
			for k := range delta {
				if strings.HasPrefix(k, session.KeyPrefixTemp) {
					delete(delta, k)
				}
			}
			if len(delta) == 0 || delta[mark.KeyNoted] != nil { // the runner's, on a mark
				delete(actions, "stateDelta")
			}
		}
	}
	if said, ok := m["mark"].(map[string]any); ok {
		if data, ok := said["data"].(map[string]any); ok {
			// A warning depends on limits, which another definition may raise.
			for _, key := range [...]string{"seconds", "elapsed", "events", "digest", "usage", "warning"} {
				delete(data, key)
			}
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}
