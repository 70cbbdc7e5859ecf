// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/session/sessiontest"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s\nstored events must stay readable; if this is meant, run with -update and keep the old file under another name", path, diff)
	}
}

// E4: stored events and clients of ADK v2 rely on these names.
func TestEventJSON(t *testing.T) {
	full := sessiontest.FullEvent()
	full.Seq, full.Partial = 42, true
	for name, ev := range map[string]*session.Event{
		"event_full.json":  full,
		"event_empty.json": session.NewEvent(t.Context(), "e-1"),
	} {
		got, err := json.MarshalIndent(ev, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name, append(got, '\n'))
	}
}

// E4
func TestStoredEventsStayReadable(t *testing.T) {
	data, err := os.ReadFile("testdata/event_full.json")
	if err != nil {
		t.Fatal(err)
	}
	var got session.Event
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	want := sessiontest.FullEvent()
	want.Seq, want.Partial = 42, true
	if diff := cmp.Diff(want, &got, cmpopts.EquateEmpty(), sessiontest.MarkByMeaning()); diff != "" {
		t.Errorf("decoded event (-want +got):\n%s", diff)
	}
}

// ADK in Python writes seconds, and in a fraction.
func TestEventReadsTimestampsThatAreNumbers(t *testing.T) {
	for text, want := range map[string]time.Time{
		`1767323045`:             time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		`1767323045.250001`:      time.Date(2026, 1, 2, 3, 4, 5, 250_001_000, time.UTC),
		`0`:                      time.Unix(0, 0).UTC(),
		`"2026-01-02T03:04:05Z"`: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	} {
		var got session.Event
		err := json.Unmarshal([]byte(`{"id":"7","timestamp":`+text+`,"author":"ana","content":{"parts":[{"text":"hi"}]}}`), &got)
		if err != nil || !got.Timestamp.Equal(want) || got.ID != "7" || got.Text() != "hi" || got.Author != "ana" {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{`0`, `"1970-01-01T00:00:00Z"`} { // fields that are not in the JSON stay, as in ADK
		got := session.Event{ID: "7", Author: "ana", Timestamp: time.Now()}
		got.Content = genai.NewContentFromText("hi", genai.RoleModel)
		err := json.Unmarshal([]byte(`{"timestamp":`+text+`,"author":"eve"}`), &got)
		if err != nil || got.Timestamp.Unix() != 0 || got.ID != "7" || got.Text() != "hi" || got.Author != "eve" {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{`{"timestamp":1e300}`, `{"timestamp":true}`, `{"timestamp":1,"author":2}`, `{"timestamp":-1e12}`} {
		if err := json.Unmarshal([]byte(text), new(session.Event)); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}

// FuzzEventJSON: whatever is stored, decoding does not panic, and what was
// decoded once keeps its meaning.
func FuzzEventJSON(f *testing.F) {
	for _, ev := range []*session.Event{sessiontest.FullEvent(), {}} {
		data, err := json.Marshal(ev)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"actions":{"stateDelta":{"a":null}},"mark":{"kind":"x","data":null},"timestamp":"2026-01-02T03:04:05+23:59"}`))
	f.Add([]byte(`{"id":"1","timestamp":1767323045.25,"author":"a"}`))
	f.Add([]byte(`{"content":{"parts":[null,{"text":"\ud800"}]},"mark":{"data":{"b": [1, 2]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var ev session.Event
		if json.Unmarshal(data, &ev) != nil {
			return
		}
		ev.IsFinalResponse()
		ev.Text()
		_ = ev.Address.Parent().Under(ev.Address)
		first, err := json.Marshal(&ev)
		if err != nil {
			t.Fatalf("encode what was decoded: %v", err)
		}
		var again session.Event
		if err := json.Unmarshal(first, &again); err != nil {
			t.Fatalf("decode what was encoded: %v\n%s", err, first)
		}
		second, err := json.Marshal(&again)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, second) {
			t.Errorf("encoding is not stable:\n%s\n%s", first, second)
		}
	})
}

// T2, C2: after such an event an agent's turn is over.
func TestIsFinalResponse(t *testing.T) {
	text, call := &genai.Part{Text: "hello"}, &genai.Part{FunctionCall: &genai.FunctionCall{Name: "f"}}
	answer := &genai.Part{FunctionResponse: &genai.FunctionResponse{Name: "f"}}
	result := &genai.Part{CodeExecutionResult: &genai.CodeExecutionResult{Output: "1"}}
	for _, tt := range []struct {
		name  string
		parts []*genai.Part
		set   func(*session.Event)
		want  bool
	}{
		{name: "nothing", want: true},
		{name: "text", parts: []*genai.Part{text}, want: true},
		{name: "thought only", parts: []*genai.Part{{Text: "hm", Thought: true}}, want: true},
		{name: "partial text", parts: []*genai.Part{text}, set: func(e *session.Event) { e.Partial = true }},
		{name: "function call", parts: []*genai.Part{text, call}},
		{name: "function response", parts: []*genai.Part{answer}},
		{name: "call then text", parts: []*genai.Part{call, text}},
		{name: "skip summarization", parts: []*genai.Part{answer}, set: func(e *session.Event) { e.Actions.SkipSummarization = true }, want: true},
		{name: "long running", parts: []*genai.Part{call}, set: func(e *session.Event) { e.LongRunningToolIDs = []string{"1"} }, want: true},
		{name: "partial but long running", parts: []*genai.Part{call}, set: func(e *session.Event) { e.Partial, e.LongRunningToolIDs = true, []string{"1"} }, want: true},
		{name: "code result last", parts: []*genai.Part{text, result}},
		{name: "code result then text", parts: []*genai.Part{result, text}, want: true},
		{name: "escalate does not matter", parts: []*genai.Part{call}, set: func(e *session.Event) { e.Actions.Escalate = true }},
		{name: "error code", set: func(e *session.Event) { e.ErrorCode = "SAFETY" }, want: true},
		{name: "nil part", parts: []*genai.Part{nil}, want: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ev := &session.Event{}
			if tt.parts != nil {
				ev.Content = &genai.Content{Parts: tt.parts}
			}
			if tt.set != nil {
				tt.set(ev)
			}
			if got := ev.IsFinalResponse(); got != tt.want {
				t.Errorf("got %t, want %t", got, tt.want)
			}
		})
	}
}

func TestTextIsWhatIsSaidInWords(t *testing.T) {
	for _, tt := range []struct {
		name  string
		parts []*genai.Part
		want  string
	}{
		{"nothing", nil, ""},
		{"one part", []*genai.Part{{Text: "a"}}, "a"},
		{"several parts", []*genai.Part{{Text: "a"}, {Text: "b"}}, "ab"},
		{"a thought", []*genai.Part{{Text: "hm", Thought: true}}, ""},
		{"a thought and words", []*genai.Part{{Text: "hm", Thought: true}, {Text: "a"}}, "a"},
		{"a call and words", []*genai.Part{{FunctionCall: &genai.FunctionCall{Name: "f"}}, {Text: "a"}}, "a"},
		{"a nil part", []*genai.Part{nil}, ""},
		{"nil among others", []*genai.Part{nil, {Text: "a"}}, "a"},
	} {
		ev := &session.Event{}
		ev.Content = &genai.Content{Parts: tt.parts}
		if got := ev.Text(); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if got := new(session.Event).Text(); got != "" {
		t.Errorf("no content: got %q", got)
	}
}

// E4: both generations of ADK write into the delta of a new event at once.
func TestNewEventHasADeltaToWriteTo(t *testing.T) {
	for _, ev := range []*session.Event{session.NewEvent(t.Context(), "e-1"), session.NewEventWithContext(t.Context(), "e-1")} {
		ev.Actions.StateDelta["k"], ev.Actions.ArtifactDelta["f"] = 1, 1
		if ev.InvocationID != "e-1" || ev.ID != "" || !ev.Timestamp.IsZero() {
			t.Errorf("got %+v", ev)
		}
	}
}

func TestMarkKeepsItsData(t *testing.T) {
	m, err := mark.New(mark.KindStepFinished, mark.StepFinished{Error: "boom", Seconds: 1.5})
	if err != nil {
		t.Fatal(err)
	}
	var got mark.StepFinished
	if err := m.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(mark.StepFinished{Error: "boom", Seconds: 1.5}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if m, err := mark.New(mark.KindStepStarted, nil); err != nil || m.Data != nil {
		t.Errorf("a mark without data: got %v, %v", m, err)
	}
	if _, err := mark.New("odd", make(chan int)); err == nil {
		t.Error("a mark with data that has no JSON: want an error")
	}
	if err := (&mark.Mark{Kind: "odd", Data: []byte(`{`)}).Decode(&got); err == nil {
		t.Error("a mark with broken data: want an error")
	}
}
