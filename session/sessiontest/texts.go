// SPDX-License-Identifier: Apache-2.0

package sessiontest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/seal"
	"github.com/refrain-dev/refrain/session"
)

// textsOf is an event with a long text of every kind and in every place. The texts
// begin with their number.
func textsOf(n int) *session.Event {
	text := fmt.Sprintf("%d: ", n) + strings.Repeat("\"quoted\" <b>\u00e4\u2028\x00\n", 60)
	rows := []any{text, map[string]any{"n": 1.5, "why": nil}}
	ev := says(text + "\n")
	ev.Content.Parts = append(ev.Content.Parts,
		&genai.Part{Text: strings.ToUpper(text), Thought: true},
		&genai.Part{Text: "bytes \xff" + text},
		&genai.Part{Text: jsonOf(rows) + "\n"},
		&genai.Part{InlineData: &genai.Blob{MIMEType: "image/png", Data: []byte("\xff\x00" + text)}},
		&genai.Part{FunctionCall: &genai.FunctionCall{ID: "c", Name: "write", Args: map[string]any{"body": text, "n": 2.0}}},
		&genai.Part{FunctionResponse: &genai.FunctionResponse{ID: "c", Name: "write", Response: map[string]any{"out": text, "in": []any{text}}}},
		&genai.Part{Text: "short"},
	)
	ev.Actions.StateDelta = map[string]any{
		"draft": text, "rows": rows, "short": "x", "gone": nil, "": text, "other": strings.Repeat("o", 2000),
		"iteration:note": text, "user:note": text, "flat": strings.Repeat("[", 600),
	}
	return ev
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is ours
	}
	return string(b)
}

// plain is an event as its JSON has it.
func plain(ev *session.Event) (v any) {
	if err := json.Unmarshal([]byte(jsonOf(ev)), &v); err != nil {
		panic(err)
	}
	return v
}

// Long texts, however a store keeps them, are read as they were written, and its
// events have the same hash and the same chain.
func (s *suite) longTexts() {
	made := s.make("s1", nil)
	live, stored := seal.New(), seal.New()
	chain := func(of session.Session) string {
		c, err := session.ViewOf(of).Chain(textsOf(0).InvocationID)
		s.must(err)
		return fmt.Sprint(c.Events, " ", c.String())
	}
	view := session.ViewBehind(made)
	if view != nil {
		chain(view) // from now on the view adds each event as it is appended
	}
	for n := range 70 {
		ev := textsOf(n)
		s.must(live.Add(s.append(made, ev)))
	}
	if view != nil {
		if got, want := chain(s.get("s1")), chain(view); got != want || !strings.HasPrefix(got, "70 ") {
			s.Errorf("the chain of the stored events is %s, that of those appended %s", got, want)
		}
	}
	n := 0
	for ev := range s.get("s1").Events().All() {
		want := textsOf(n)
		want.ID, want.Timestamp, want.Seq = ev.ID, ev.Timestamp, ev.Seq
		if diff := cmp.Diff(plain(want), plain(ev)); diff != "" {
			s.Fatalf("a stored event reads otherwise than it was written (-want +got):\n%s", diff)
		}
		s.must(stored.Add(ev))
		n++
	}
	if stored.String() != live.String() {
		s.Errorf("the digest of the stored events is %s, that of those appended %s", stored, live)
	}
}

// An outline is the log without long texts; each event can be read whole.
func (s *suite) outline() {
	made := s.make("s1", nil)
	for n := range 70 {
		s.append(made, textsOf(n))
		s.append(made, says("short"))
	}
	view := session.ViewOf(s.get("s1"))
	var seq int64
	for ev := range view.Log().Outline() {
		if seq++; ev.Seq != seq {
			s.Fatalf("event %d of the outline has Seq %d", seq, ev.Seq)
		}
		whole := view.Log().At(int(seq - 1))
		got := view.Log().Full(ev)
		if diff := cmp.Diff(plain(whole), plain(got)); diff != "" || got.Omitted != 0 {
			s.Fatalf("an event of the outline, read whole, is not that of the log (-want +got):\n%s", diff)
		}
		if ev.Omitted == 0 {
			if diff := cmp.Diff(plain(whole), plain(ev)); diff != "" {
				s.Fatalf("an event of the outline that says it is whole is not (-want +got):\n%s", diff)
			}
			continue
		}
		if ev.Text() == "" || !strings.HasPrefix(whole.Text(), strings.TrimSuffix(ev.Content.Parts[0].Text, "…")) {
			s.Fatalf("an outline has the beginnings of texts, got %q", ev.Text())
		}
		for key := range whole.Actions.StateDelta {
			if _, ok := ev.Actions.StateDelta[key]; !ok {
				s.Fatalf("an outline has all keys of the state delta: %q is not there", key)
			}
		}
		if err := seal.New().Add(ev); err == nil {
			s.Fatal("there is no digest of an event without its texts")
		}
	}
	if err := view.Err(); err != nil || seq != 140 {
		s.Errorf("the outline has %d events, want 140: %v", seq, err)
	}
}
