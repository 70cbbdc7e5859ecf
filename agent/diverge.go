// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/session"
)

// ErrDiverged is what every [*DivergedError] is, for errors.Is.
var ErrDiverged = errors.New("the run diverged from its log")

// DivergedError says where a resumed run would go another way than its log: its
// agents are others than those that the log was written by, or what they do
// depends on something else than the log, such as the time or chance.
type DivergedError struct {
	// Address is the step that is not as it was.
	Address session.Address
	// Recorded is what the log has, and Said what the run has now; in JSON,
	// where they are two versions of one thing.
	Recorded, Said string
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("%v: at %s the log has %s; now there is: %s. Resume it with the agents that it was started with, or start a new run", ErrDiverged, e.Address, e.Recorded, e.Said)
}

// Is reports whether target is [ErrDiverged].
func (e *DivergedError) Is(target error) bool { return target == ErrDiverged }

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
func compare(recorded, said *session.Event) *DivergedError {
	if sameMark(recorded, said) {
		return nil
	}
	a, b := lasting(recorded), lasting(said)
	if bytes.Equal(a, b) {
		return nil
	}
	return &DivergedError{Address: recorded.Address, Recorded: string(a), Said: string(b)}
}

// sameMark is compare for two events that are nothing but marks, as most are.
func sameMark(a, b *session.Event) bool {
	bare := func(ev *session.Event) bool {
		return ev.Mark != nil && ev.Content == nil && ev.Actions.StateDelta == nil && ev.Actions.Exit == nil && ev.CustomMetadata == nil
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
			if len(delta) == 0 || delta[session.KeyNoted] != nil { // the runner's, on a mark
				delete(actions, "stateDelta")
			}
		}
	}
	if mark, ok := m["mark"].(map[string]any); ok {
		if data, ok := mark["data"].(map[string]any); ok {
			for _, key := range [...]string{"seconds", "elapsed", "events", "digest", "usage"} {
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
