// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/internal/history/progress/verify"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// endedLog is the log of two runs in one session, without a loop.
func endedLog(t *testing.T) []*session.Event {
	t.Helper()
	speak, err := agent.New(agent.Config{Name: "speak", Run: agentSays("good")})
	if err != nil {
		t.Fatal(err)
	}
	return endedLogOf(t, speak)
}

// endedLogOf is the log of two runs of an agent in one session.
func endedLogOf(t *testing.T, root agent.Agent) []*session.Event {
	t.Helper()
	store := session.InMemoryService()
	sup, err := supervisor.New(supervisor.Config{
		Service: store, AppName: "a", UserID: "u",
		Build: func(context.Context, mark.RunStarted) (*supervisor.Program, error) {
			return &supervisor.Program{Agent: root}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sup.Close(context.Background()) })
	for range 2 {
		run, err := sup.Start(t.Context(), supervisor.Request{
			SessionID: "s", Message: genai.NewContentFromText("go", genai.RoleUser), State: map[string]any{"topic": "cats"},
			Started: mark.RunStarted{Name: "test", Program: json.RawMessage(`{"definition": "name: test"}`)},
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
		for _, s := range verify.Of(slices.Values(evs)).Runs() {
			bad = append(bad, s.Problem != "")
		}
		return bad
	}
	if got := problems(log); !slices.Equal(got, []bool{false, false}) {
		t.Fatalf("as it was written: %v", verify.Of(slices.Values(log)).Runs())
	}
	first := len(log) / 2
	for _, tt := range []struct {
		name   string
		change func(ev *session.Event)
		is     func(ev *session.Event) bool
	}{
		{"the definition", func(ev *session.Event) {
			ev.Mark.Data = json.RawMessage(strings.Replace(string(ev.Mark.Data), "name: test", "name: other", 1))
		}, func(ev *session.Event) bool { return ev.Mark != nil && ev.Mark.Kind == mark.KindRunStarted }},
		{"an input", func(ev *session.Event) { ev.Actions.StateDelta["topic"] = "dogs" }, func(ev *session.Event) bool { return ev.Actions.StateDelta["topic"] != nil }},
		{"the message", func(ev *session.Event) { ev.Content.Parts[0].Text = "stop" }, func(ev *session.Event) bool { return ev.Author == "user" }},
		{"what a step said", func(ev *session.Event) { ev.Content.Parts[0].Text = "bad" }, func(ev *session.Event) bool { return ev.Text() == "good" }},
		{"how it ended", func(ev *session.Event) {
			ev.Mark.Data = json.RawMessage(strings.Replace(string(ev.Mark.Data), "completed", "failed", 1))
		}, func(ev *session.Event) bool { return ev.Mark != nil && ev.Mark.Kind == mark.KindRunEnded }},
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
	part := verify.Of(slices.Values(log[1:])).Runs() // nothing is known of the first run
	if len(part) != 2 || part[0].Problem != "" || part[0].Unsealed == "" || part[0].Digest != "" || part[1].Problem != "" || part[1].Unsealed != "" {
		t.Errorf("without its beginning: %+v", part)
	}
}

// G9, 12g: what stands behind an end, is taken from it, or is renamed, is noticed.
func TestRunSealsNoticeTheirOwnEnd(t *testing.T) {
	isEnd := func(ev *session.Event) bool { return ev.Mark != nil && ev.Mark.Kind == mark.KindRunEnded }
	of := func(ev *session.Event, kind mark.Kind, status mark.RunStatus, delta map[string]any) *session.Event {
		made, err := session.NewRunEvent(mark.Run{ID: ev.InvocationID, Status: status}, "refrain", kind, struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		made.Seq = ev.Seq + 1
		maps.Copy(made.Actions.StateDelta, delta)
		return made
	}
	renamed := func(from, to string) func([]*session.Event) []*session.Event {
		return func(log []*session.Event) []*session.Event {
			end := log[len(log)-1]
			end.Mark.Data = json.RawMessage(strings.Replace(string(end.Mark.Data), `"`+from+`"`, `"`+to+`"`, 1))
			return log
		}
	}
	appended := func(kind mark.Kind, status mark.RunStatus, delta map[string]any) func([]*session.Event) []*session.Event {
		return func(log []*session.Event) []*session.Event {
			return append(log, of(log[len(log)-1], kind, status, delta))
		}
	}
	for name, tt := range map[string]struct {
		change   func([]*session.Event) []*session.Event
		want     string // a problem of the second run
		unsealed string // or why it has no seal
	}{
		"nothing": {func(log []*session.Event) []*session.Event { return log }, "", ""},
		"an event behind it": {func(log []*session.Event) []*session.Event {
			ev := *log[len(log)-2]
			ev.Seq += 2
			return append(log, &ev)
		}, "after its end neither", ""},
		"an event of nobody behind it": {func(log []*session.Event) []*session.Event {
			return append(log, &session.Event{Seq: log[len(log)-1].Seq + 1, InvocationID: "x", Author: "user"})
		}, "after its end neither", ""},
		"another end":                          {appended(mark.KindRunEnded, mark.RunCompleted, nil), "after its end neither", ""},
		"the run begins once more":             {appended(mark.KindRunStarted, mark.RunRunning, nil), "after its end neither", ""},
		"taken up, and completed all the same": {appended(mark.KindRunTaken, mark.RunCompleted, nil), "after its end neither", ""},
		"taken up, with a key":                 {appended(mark.KindRunTaken, mark.RunRunning, map[string]any{"approved": true}), "after its end neither", ""},
		"paused behind its end":                {appended(mark.KindRunPaused, mark.RunIsPaused, nil), "after its end neither", ""},
		"taken up":                             {appended(mark.KindRunTaken, mark.RunRunning, nil), "", "it has not ended"},
		"resumed by a runner":                  {appended(mark.KindRunResumed, mark.RunRunning, nil), "", "it has not ended"},
		"the seal is renamed":                  {renamed("seal", "sael"), "its end has no seal: it was taken out", ""},
		"the seal is renamed a little":         {renamed("seal", "Seal"), "was changed", ""},
		"the number of events is renamed":      {renamed("events", "evens"), "its end has no seal: it was taken out", ""},
		"the last event is renamed":            {renamed("last", "lost"), "its seal is over", ""},
		"the end is renamed":                   {func(log []*session.Event) []*session.Event { log[len(log)-1].Mark.Kind = "run_end"; return log }, "", "it has not ended"},
		"the end has an address":               {func(log []*session.Event) []*session.Event { log[len(log)-1].Address = "speak"; return log }, "has the address of a step", ""},
		"the end changes the state": {func(log []*session.Event) []*session.Event {
			log[len(log)-1].Actions.StateDelta["approved"] = true
			return log
		}, "was changed", ""},
		"the end says more": {func(log []*session.Event) []*session.Event {
			log[len(log)-1].Content = genai.NewContentFromText("x", "model")
			return log
		}, "was changed", ""},
		"the end is gone": {func(log []*session.Event) []*session.Event { return log[:len(log)-1] }, "", "it has not ended"},
		"an event of nobody before it": {func(log []*session.Event) []*session.Event {
			n := len(log) - 1
			moved := *log[n]
			moved.Seq++
			return append(slices.Clone(log[:n]), &session.Event{Seq: moved.Seq - 1, InvocationID: "x"}, &moved)
		}, "is over", ""},
		"the first run has no end": {func(log []*session.Event) []*session.Event {
			log[slices.IndexFunc(log, isEnd)].Mark.Kind = "run_end"
			return log
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			seals := verify.Of(slices.Values(tt.change(endedLog(t)))).Runs()
			last := seals[len(seals)-1]
			if name == "the first run has no end" {
				if first := seals[0]; !strings.Contains(first.Problem, "it has no end, and event") {
					t.Errorf("got %+v", seals)
				}
				return
			}
			for _, s := range seals {
				if s.Run == last.Run && s.Problem != "" {
					last = s
					break
				}
			}
			if (last.Problem == "") != (tt.want == "") || !strings.Contains(last.Problem, tt.want) ||
				!strings.Contains(last.Unsealed, tt.unsealed) || (last.Unsealed == "") != (tt.unsealed == "") {
				t.Errorf("got %+v", seals)
			}
		})
	}
}

// Ends that were written before ends had a seal are no alarm, and no comfort.
func TestEndsOfOldRunsAreUnsealed(t *testing.T) {
	log := endedLog(t)
	for _, ev := range log {
		if ev.Mark == nil {
			continue
		}
		switch ev.Mark.Kind {
		case mark.KindRunStarted:
			ev.Mark.Data = json.RawMessage(strings.Replace(string(ev.Mark.Data), `,"sealed":true`, "", 1))
		case mark.KindRunEnded:
			ev.Mark.Data = json.RawMessage(`{"status":"completed"}`)
		}
	}
	seals := verify.Of(slices.Values(log)).Runs()
	for _, s := range seals {
		if s.Problem != "" || !strings.Contains(s.Unsealed, "written before ends had one") {
			t.Errorf("got %+v", s)
		}
	}
	first := log[:len(log)/2] // the second run notes what there was
	if len(seals) != 2 || verify.Of(slices.Values(first)).TellsState() || !verify.Of(slices.Values(endedLog(t)[:len(first)])).TellsState() {
		t.Errorf("%d ends, and all of the state: %v", len(seals), verify.Of(slices.Values(first)).TellsState())
	}
}
