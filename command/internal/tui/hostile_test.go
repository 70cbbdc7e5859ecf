// SPDX-License-Identifier: Apache-2.0

//go:build unix

package tui_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/command/internal/tui"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// bad says its name and then commands the terminal: with what the view's renderer
// drops by itself, and with a link, which it takes for its own. It has nothing in it
// that addresses have a meaning for.
func bad(name string) string {
	return name + "\a\u009b\u202e\u2066\x7f\u200f\x1bc\x1b]8;;mailto:x\a" + name + "\x1b]8;;\a"
}

// renamed is a log in which a name is a bad one.
func renamed(t *testing.T, log []*session.Event, name string) []*session.Event {
	t.Helper()
	to, err := json.Marshal(bad(name))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(log)
	if err != nil {
		t.Fatal(err)
	}
	var out []*session.Event
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), name, strings.Trim(string(to), `"`))), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// marked is an event of a step with a mark.
func marked(t *testing.T, like *session.Event, kind mark.Kind, data any) *session.Event {
	t.Helper()
	text, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	ev := *like
	ev.Mark = &mark.Mark{Kind: kind, Data: text}
	return &ev
}

// T6, U10: each text that the view shows is made harmless, one at a time: nothing
// that is shown beside it covers for it.
func TestEachHostileText(t *testing.T) {
	const here = "refinador_conteudo_iterativo[3]/feedback_collector"
	log := upTo(t, seedRun(t), here)
	last := log[len(log)-1]
	for name, tt := range map[string]struct {
		log  []*session.Event
		says string
	}{
		"loop":     {renamed(t, log, "refinador_conteudo_iterativo"), "refinador_conteudo_iterativo"},
		"step":     {renamed(t, log, "quality_analyzer"), "quality_analyzer"},
		"question": {append(log[:len(log):len(log)], marked(t, last, mark.KindAsked, mark.Question{ID: "q1", Kind: mark.AskText, Text: bad("may I")})), "may I"},
		"tool":     {append(log[:len(log):len(log)], calling(last, bad("burn"))), "calls burn"},
		"words":    {append(log[:len(log):len(log)], saying(last, bad("so far"))), "so far"},
		"rejected": {rejected(t, log, false), "rejected: worse"},
		"undone":   {rejected(t, log, true), "undone: worse"},
		"failure":  {append(log[:len(log):len(log)], marked(t, last, mark.KindStepFinished, mark.StepFinished{Error: bad("broken")})), "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTerminal(t, 200, 50)
			v := start(x, tui.Hooks{Interrupt: func() {}})
			for _, ev := range tt.log {
				v.Add(ev)
			}
			x.shows(tt.says)
			harmless(t, x)
			v.Finish()
			harmless(t, x)
		})
	}
}

// calling is an event of a step that calls a tool.
func calling(like *session.Event, tool string) *session.Event {
	ev := *like
	ev.Mark, ev.Author = nil, "feedback_collector"
	ev.Content = &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{genai.NewPartFromFunctionCall(tool, nil)}}
	return &ev
}

// saying is a piece of what a step says.
func saying(like *session.Event, text string) *session.Event {
	ev := *like
	ev.Mark, ev.Author, ev.Partial = nil, "feedback_collector", true
	ev.Content = genai.NewContentFromText(text, genai.RoleModel)
	return &ev
}

// rejected is a log in which the first iteration was not accepted.
func rejected(t *testing.T, log []*session.Event, undone bool) []*session.Event {
	t.Helper()
	var out []*session.Event
	for _, ev := range log {
		if ev.Mark != nil && ev.Mark.Kind == mark.KindIterationFinished &&
			!slices.ContainsFunc(out, func(e *session.Event) bool { return e.Mark != nil && e.Mark.Kind == mark.KindIterationFinished }) {
			var rec loop.IterationRecord
			if err := ev.Mark.Decode(&rec); err != nil {
				t.Fatal(err)
			}
			rec.Rejected, rec.Best = bad("worse"), false
			out = append(out, marked(t, ev, mark.KindIterationFinished, rec))
			if undone {
				out = append(out, marked(t, ev, mark.KindRolledBack, mark.RolledBack{Iteration: 1, Reason: bad("worse")}))
			}
			continue
		}
		out = append(out, ev)
	}
	return out
}

// harmless fails if the terminal was sent anything but the view's own commands, all
// of which begin with an escape.
func harmless(t *testing.T, x *terminal) {
	t.Helper()
	sent := x.written()
	for _, r := range sent {
		if r != '\x1b' && r != '\r' && r != '\n' && r != '\b' && r != '\t' && unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r) {
			t.Fatalf("%U came through", r)
		}
	}
	for _, own := range []string{"\x1bc", "\x1b]"} {
		if strings.Contains(sent, own) {
			t.Fatalf("%q came through", own)
		}
	}
}
