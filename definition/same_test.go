// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// A12, B8, D1, D18, T9: a definition gives the same events from a scripted model
// and from each provider's wire format, streaming and not. What differs by
// nature is masked; see same.
func TestSameEventsFromEveryModel(t *testing.T) {
	d, err := definition.Load("testdata/same/loop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := readFile(t, "testdata/same/script.yaml")
	script, err := scripted.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/same/events.golden"
	var first dialogMessage
	for _, name := range []string{"scripted", "openai", "anthropic", "gemini"} {
		for _, mode := range []agent.StreamingMode{agent.StreamingModeNone, agent.StreamingModeSSE} {
			t.Run(fmt.Sprintf("%s/%s", name, mode), func(t *testing.T) {
				got := say(t, d, providers(t, script)[name], mode)
				if first.events == nil {
					first = got
					if *update {
						if err := os.WriteFile(golden, []byte(got.text()), 0o644); err != nil {
							t.Fatal(err)
						}
					}
				}
				if diff := cmp.Diff(strings.Split(readFile(t, golden), "\n"), strings.Split(got.text(), "\n")); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(first.marks, got.marks); diff != "" {
					t.Errorf("what the log says of steps and loops (-scripted +got):\n%s", diff)
				}
				if mode == agent.StreamingModeNone {
					if got.pieces != nil {
						t.Errorf("pieces that nobody asked for: %q", got.pieces)
					}
					return
				}
				if first.pieces == nil {
					first.pieces = got.pieces
				}
				if diff := cmp.Diff(first.pieces, got.pieces); diff != "" || len(got.pieces) < 12 {
					t.Errorf("%d pieces (-scripted +got):\n%s", len(got.pieces), diff)
				}
			})
		}
	}
}

// dialogMessage is what came of one run.
type dialogMessage struct {
	events []string // whole ones that somebody said, one JSON text each
	marks  []string
	pieces []string // of streamed ones
}

func (s dialogMessage) text() string { return strings.Join(s.events, "\n") + "\n" }

// say runs the definition and checks what is no matter of other models: that
// pieces come to the whole, and that the log has what was said.
func say(t *testing.T, d *definition.Definition, from local, mode agent.StreamingMode) dialogMessage {
	t.Helper()
	count, err := functiontool.New(functiontool.Config{Name: "count_words", Description: "Counts words."},
		func(_ tool.Context, in struct {
			Text string `json:"text"`
		}) (int, error) {
			return len(strings.Fields(in.Text)), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	root, err := d.Build(t.Context(), definition.BuildConfig{DefaultModel: "m", Model: from.open, Tools: []tool.Tool{count}})
	if err != nil {
		t.Fatal(err)
	}
	store := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: "same", Agent: root, SessionService: store, AutoCreateSession: true, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	state, err := d.InitialState(nil)
	if err != nil {
		t.Fatal(err)
	}
	var s dialogMessage
	var words, thoughts string // of the pieces since the last whole event
	for ev, err := range r.Run(t.Context(), "ana", "s1", genai.NewContentFromText("Go.", genai.RoleUser), agent.RunConfig{StreamingMode: mode},
		runner.WithStateDelta(state)) {
		if err != nil {
			t.Fatal(err)
		}
		text, thought := wordsOf(ev)
		if ev.Partial {
			words, thoughts = words+text, thoughts+thought
			s.pieces = append(s.pieces, fmt.Sprintf("%s %q %q", ev.Address, text, thought))
			continue
		}
		if words+thoughts != "" && (words != text || thoughts != thought) {
			t.Errorf("%s: the pieces come to %q and %q, the whole is %q and %q", ev.Address, words, thoughts, text, thought)
		}
		words, thoughts = "", ""
		s.note(t, ev)
	}
	got, err := store.Get(t.Context(), &session.GetRequest{AppName: "same", UserID: "ana", SessionID: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	var log dialogMessage
	for ev := range got.Session.Events().All() {
		if ev.Author != "user" {
			log.note(t, ev)
		}
	}
	if diff := cmp.Diff(s.events, log.events); diff != "" {
		t.Errorf("the log is not what was said: %s", diff)
	}
	s.events = append(s.events, "in the end "+asJSON(t, maps.Collect(got.Session.State().All())))
	return s
}

// wordsOf are an event's text and its thoughts.
func wordsOf(ev *session.Event) (text, thought string) {
	if ev.Content == nil {
		return "", ""
	}
	for _, p := range ev.Content.Parts {
		if p.Thought {
			thought += p.Text
		}
	}
	return ev.Text(), thought
}

func (s *dialogMessage) note(t *testing.T, ev *session.Event) {
	t.Helper()
	if ev.Mark != nil && ev.Mark.Kind == mark.KindRequested {
		return // a scripted model has no requests to count
	}
	if line := same(t, ev); ev.Mark != nil {
		s.marks = append(s.marks, line)
	} else {
		s.events = append(s.events, line)
	}
}

// same is an event as JSON, without what differs by nature:
//
//   - its ID, its time and the ID of its invocation: they are made anew each time;
//   - its number in the log, which counts marks too: the order of the lines
//     says the same;
//   - when steps ran and how long that took, in marks, and the digest over the
//     log with all this, and with the marks of requests, which only servers have;
//   - customMetadata.scripted: the scripted model says what it is, the servers
//     do not know that they follow a script;
//   - the signatures of thoughts: the provider's own, which only it can read.
//
// All else is the same: texts, thoughts, calls with their IDs, answers, reasons
// to finish, tokens, the model's version, actions, state, addresses, order.
func same(t *testing.T, ev *session.Event) string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(asJSON(t, ev)), &m); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"id", "timestamp", "invocationId"} {
		if m[key] == nil {
			t.Errorf("an event without %s: %v", key, m)
		}
		delete(m, key)
	}
	delete(m, "seq")
	if meta, ok := m["customMetadata"].(map[string]any); ok {
		if delete(meta, "scripted"); len(meta) == 0 {
			delete(m, "customMetadata")
		}
	}
	if mk, ok := m["mark"].(map[string]any); ok {
		if data, ok := mk["data"].(map[string]any); ok {
			withoutTimes(data)
		}
	}
	if content, ok := m["content"].(map[string]any); ok {
		parts, _ := content["parts"].([]any)
		for _, p := range parts {
			delete(p.(map[string]any), "thoughtSignature")
		}
	}
	return asJSON(t, m)
}

// withoutTimes takes out of a mark's data what a clock says, and the digest.
func withoutTimes(data map[string]any) {
	for _, key := range []string{"seconds", "elapsed", "digest", "events"} {
		delete(data, key)
	}
	conditions, _ := data["conditions"].([]any)
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["name"] == "timeout" {
			delete(c, "value")
			delete(c, "have")
		}
	}
	if outcome, ok := data["outcome"].(map[string]any); ok {
		for _, key := range []string{"started", "finished", "waited_ns"} {
			delete(outcome, key)
		}
	}
}
