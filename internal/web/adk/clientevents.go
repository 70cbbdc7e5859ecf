// SPDX-License-Identifier: Apache-2.0

package adk

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// camel returns a JSON object with the names of fields as ADK for Go writes them: new_message is newMessage. ADK for Python
// reads both. The names in state, arguments and answers are the client's own and stay. Other JSON stays as it is.
func camel(text []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var body map[string]any
	if d.Decode(&body) != nil || d.More() {
		return text
	}
	renamed, err := json.Marshal(camelNames(body))
	if err != nil {
		return text
	}
	return renamed
}

func camelNames(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = camelNames(v[i])
		}
	case map[string]any:
		for name, inner := range v {
			words := strings.Split(name, "_")
			for i, w := range words[1:] {
				if w != "" {
					words[i+1] = strings.ToUpper(w[:1]) + w[1:]
				}
			}
			to := strings.Join(words, "")
			switch to {
			case "state", "stateDelta", "finalSessionState", "args", "response", "customMetadata":
			default:
				inner = camelNames(inner)
			}
			if _, both := v[to]; to == name || !both {
				delete(v, name)
				v[to] = inner
			}
		}
	}
	return v
}

// readEvents reads the events with which a client begins a session. They have an author, a content, a time and a change of the
// state. What would let a client act for an agent is left out, because no agent has made it.
func readEvents(events []any) (all []*session.Event, err error) {
	for i, e := range events {
		text, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		var in struct {
			ID, InvocationID, Author string
			Content                  *genai.Content
			Timestamp                float64
			StateDelta               map[string]any
			Actions                  struct{ StateDelta map[string]any }
		}
		if err := json.Unmarshal(camel(text), &in); err != nil {
			return nil, problem.Bad("read event %d: %v", i+1, err)
		}
		if in.Author == "" {
			return nil, problem.Bad("event %d has no author: give user, or the name of an agent", i+1)
		}
		ev := &session.Event{ID: in.ID, InvocationID: in.InvocationID, Author: in.Author}
		if ev.Content = in.Content; ev.Content != nil {
			for _, p := range ev.Content.Parts {
				if p != nil && p.FunctionCall != nil && p.FunctionCall.Name == toolconfirmation.FunctionCallName {
					return nil, problem.Bad("event %d asks for a confirmation: only an agent can ask for one", i+1)
				}
			}
		}
		if ev.Actions.StateDelta = in.Actions.StateDelta; ev.Actions.StateDelta == nil {
			ev.Actions.StateDelta = in.StateDelta
		}
		if err := givable(ev.Actions.StateDelta); err != nil {
			return nil, err
		}
		if in.Timestamp > 0 {
			ev.Timestamp = time.UnixMicro(int64(in.Timestamp * 1e6))
		}
		if err := ev.Normalize(); err != nil {
			return nil, problem.Bad("event %d: %v", i+1, err)
		}
		all = append(all, ev)
	}
	return all, nil
}
