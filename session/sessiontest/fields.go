// SPDX-License-Identifier: Apache-2.0

package sessiontest

import (
	"encoding/json"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// FullEvent returns an event in which every field that is stored has a value, for tests of
// stores and of wire formats. Seq is 0.
func FullEvent() *session.Event {
	ev := &session.Event{
		ID:           "event-1",
		Timestamp:    time.Date(2026, 1, 2, 12, 30, 15, 123456000, time.UTC),
		InvocationID: "e-1",
		Branch:       "panel.judge",
		Author:       "critic",
		Actions: session.EventActions{
			StateDelta: map[string]any{"draft": "Once upon a time", "score": 8.5, "app:motto": "more",
				"gone": nil},
			ArtifactDelta:   map[string]int64{"report.md": 3},
			TransferToAgent: "editor",
			Exit: &session.Exit{
				By: "critic", Reason: "nothing to add", Status: session.ExitBlocked, Score: new(9.0),
				Scope: session.ScopeAll, HandledBy: "story/refine", Refused: "not listed", Plain: true,
			},
			SkipSummarization: true,
			Escalate:          true,
		},
		LongRunningToolIDs: []string{"call-1", "call-2"},
		Address:            "story/refine[3]/critic#2",
		Iteration:          3,
		Attempt:            2,
		Mark:               &mark.Mark{Kind: mark.KindStepFinished, Data: json.RawMessage(`{"seconds":1.5}`)},
	}
	decode(`{"call-1": {"hint": "Count them?", "confirmed": true, "payload": {"limit": 5}}}`,
		&ev.Actions.RequestedToolConfirmations)
	fillAnswer(ev)
	return ev
}

// fillAnswer fills in what a model may say.
func fillAnswer(ev *session.Event) {
	ev.Content = &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{
		{Text: "thinking", Thought: true, ThoughtSignature: []byte{0, 1, 254}},
		{Text: "Once upon a time"},
		{FunctionCall: &genai.FunctionCall{ID: "call-1", Name: "count", Args: map[string]any{"what": "cats", "n": 2.5}}},
		{FunctionResponse: &genai.FunctionResponse{ID: "call-1", Name: "count", Response: map[string]any{"result": []any{"a", true}}}},
		{InlineData: &genai.Blob{MIMEType: "image/png", Data: []byte{0x89, 0x50, 0x4e, 0x47, 0}}},
		{FileData: &genai.FileData{MIMEType: "text/plain", FileURI: "file:///tmp/x"}},
	}}
	ev.CitationMetadata = &genai.CitationMetadata{Citations: []*genai.Citation{{Title: "A book",
		URI: "https://example.com", StartIndex: 1, EndIndex: 9}}}
	ev.GroundingMetadata = &genai.GroundingMetadata{WebSearchQueries: []string{"cats"}}
	ev.UsageMetadata = &genai.GenerateContentResponseUsageMetadata{
		PromptTokenCount: 12, CandidatesTokenCount: 34, ThoughtsTokenCount: 5, CachedContentTokenCount: 6,
		TotalTokenCount: 51,
	}
	ev.CustomMetadata = map[string]any{"provider": "scripted", "tries": 2.0, "nested": map[string]any{"ok": true}}
	ev.LogprobsResult = &genai.LogprobsResult{ChosenCandidates: []*genai.LogprobsResultCandidate{{Token: "Once",
		TokenID: 7, LogProbability: -0.5}}}
	ev.ModelVersion = "scripted-1"
	ev.ErrorCode, ev.ErrorMessage = "SAFETY", "blocked"
	ev.FinishReason = genai.FinishReasonMaxTokens
	ev.AvgLogprobs = -0.25
	ev.TurnComplete, ev.Interrupted = true, true
}

func decode(text string, v any) {
	if err := json.Unmarshal([]byte(text), v); err != nil {
		panic(err) // the text is above
	}
}

func (s *suite) fields() {
	made := s.make("s1", nil)
	s.append(made, FullEvent())
	s.append(made, &session.Event{Author: "quiet"})
	want := FullEvent()
	want.Seq = 1

	for name, from := range map[string]session.Session{"Get": s.get("s1"), "the appending session": made} {
		got := from.Events().At(0)
		if !got.Timestamp.Equal(want.Timestamp) {
			s.Errorf("%s: an event's Timestamp comes back, to the microsecond at least: got %v, want %v", name,
				got.Timestamp, want.Timestamp)
		}
		same := *got
		same.Timestamp = want.Timestamp
		if diff := cmp.Diff(asJSON(s.T, want), asJSON(s.T, &same)); diff != "" {
			s.Errorf("%s: every field of an event comes back; as JSON (-want +got):\n%s", name, diff)
		}
		// What a mark's data and a payload look like is JSON's business; the
		// rest is typed and comes back in its type.
		if diff := cmp.Diff(want, &same, cmpopts.EquateEmpty(), MarkByMeaning()); diff != "" {
			s.Errorf("%s: every field of an event comes back; as values (-want +got):\n%s", name, diff)
		}
	}
	quiet := s.get("s1").Events().At(1)
	if quiet.Content != nil || quiet.Mark != nil || quiet.Actions.Exit != nil || quiet.UsageMetadata != nil ||
		quiet.Iteration != 0 || quiet.Address != "" {
		s.Errorf("fields that are not set come back as not set, got %+v", quiet)
	}
}

// MarkByMeaning returns an option with which cmp compares the data of marks as JSON values, so
// that spaces do not matter.
func MarkByMeaning() cmp.Option {
	return cmp.Transformer("MarkByMeaning", func(m mark.Mark) [2]any {
		var data any
		_ = json.Unmarshal(m.Data, &data)
		return [2]any{m.Kind, data}
	})
}
