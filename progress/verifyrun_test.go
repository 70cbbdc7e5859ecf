// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/supervisor"
)

// endedLog is the log of two runs in one session, without a loop.
func endedLog(t *testing.T) []*session.Event {
	t.Helper()
	speak, err := agent.New(agent.Config{Name: "speak", Run: agentSays("good")})
	if err != nil {
		t.Fatal(err)
	}
	store := session.InMemoryService()
	sup, err := supervisor.New(supervisor.Config{
		Service: store, AppName: "a", UserID: "u",
		Build: func(context.Context, session.RunStarted) (*supervisor.Program, error) {
			return &supervisor.Program{Agent: speak}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sup.Close(context.Background()) })
	for range 2 {
		run, err := sup.Start(t.Context(), supervisor.Request{
			SessionID: "s", Message: genai.NewContentFromText("go", genai.RoleUser), State: map[string]any{"topic": "cats"},
			Started: session.RunStarted{Name: "test", Program: json.RawMessage(`{"definition": "name: test"}`)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := run.Wait(t.Context()); err != nil || out.Err != nil {
			t.Fatal(err, out.Err)
		}
	}
	got, err := store.Get(t.Context(), &session.GetRequest{AppName: "a", UserID: "u", SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	var evs []*session.Event
	for ev := range got.Session.Events().All() {
		data, err := json.Marshal(ev)
		c := new(session.Event)
		if err == nil {
			err = json.Unmarshal(data, c)
		}
		if err != nil {
			t.Fatal(err)
		}
		evs = append(evs, c)
	}
	return evs
}

// G9: the end of a run covers what it was started with, and all that it did; each run
// of a session by itself.
func TestRunSealsNoticeEveryChange(t *testing.T) {
	log := endedLog(t)
	problems := func(evs []*session.Event) (bad []bool) {
		for _, s := range progress.VerifyRuns(evs, nil) {
			bad = append(bad, s.Problem != "")
		}
		return bad
	}
	if got := problems(log); !slices.Equal(got, []bool{false, false}) {
		t.Fatalf("as it was written: %v", progress.VerifyRuns(log, nil))
	}
	first := len(log) / 2
	for _, tt := range []struct {
		name   string
		change func(ev *session.Event)
		is     func(ev *session.Event) bool
	}{
		{"the definition", func(ev *session.Event) {
			ev.Mark.Data = json.RawMessage(strings.Replace(string(ev.Mark.Data), "name: test", "name: other", 1))
		}, func(ev *session.Event) bool { return ev.Mark != nil && ev.Mark.Kind == session.MarkRunStarted }},
		{"an input", func(ev *session.Event) { ev.Actions.StateDelta["topic"] = "dogs" }, func(ev *session.Event) bool { return ev.Actions.StateDelta["topic"] != nil }},
		{"the message", func(ev *session.Event) { ev.Content.Parts[0].Text = "stop" }, func(ev *session.Event) bool { return ev.Author == "user" }},
		{"what a step said", func(ev *session.Event) { ev.Content.Parts[0].Text = "bad" }, func(ev *session.Event) bool { return ev.Text() == "good" }},
		{"how it ended", func(ev *session.Event) {
			ev.Mark.Data = json.RawMessage(strings.Replace(string(ev.Mark.Data), "completed", "failed", 1))
		}, func(ev *session.Event) bool { return ev.Mark != nil && ev.Mark.Kind == session.MarkRunEnded }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			log := endedLog(t)
			tt.change(log[slices.IndexFunc(log[first:], tt.is)+first])
			if got := problems(log); !slices.Equal(got, []bool{false, true}) {
				t.Errorf("the runs are changed: %v, want the second", got)
			}
		})
	}
	if got := problems(slices.Delete(slices.Clone(log), first+1, first+2)); !slices.Equal(got, []bool{false, true}) {
		t.Errorf("without an event: %v", got)
	}
	if got := problems(log[1:]); !slices.Equal(got, []bool{false}) { // of the first run, nobody knows
		t.Errorf("without its beginning: %v", got)
	}
}
