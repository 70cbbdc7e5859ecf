// SPDX-License-Identifier: Apache-2.0

package session

import (
	"encoding/json"

	"github.com/refrain-dev/refrain/session/mark"
)

// RunOf returns a session's record of its last run; nil if it has no run.
func RunOf(s Session) *mark.Run {
	var text string
	if v, ok := s.(*View); ok {
		v.mu.Lock()
		text = v.run
		v.mu.Unlock()
	} else if val, err := s.State().Get(mark.KeyRun); err == nil {
		text, _ = val.(string)
	}
	r := new(mark.Run)
	if text == "" || json.Unmarshal([]byte(text), r) != nil {
		return nil
	}
	return r
}

// NewRunEvent returns an event with a mark of a run as a whole. Appending it makes
// [RunOf] return r. data is the mark's data.
func NewRunEvent(r mark.Run, author string, kind mark.Kind, data any) (*Event, error) {
	m, err := mark.New(kind, data)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	ev := &Event{InvocationID: r.ID, Author: author, Mark: m}
	ev.Actions.StateDelta = map[string]any{mark.KeyRun: string(text)}
	return ev, nil
}
