// SPDX-License-Identifier: Apache-2.0

package verify_test

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	_ "github.com/refrain-dev/refrain/expr/cel"
	"github.com/refrain-dev/refrain/internal/history/progress/verify"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// sealedLog is the log of a loop in a loop, as a store would give it back.
func sealedLog(t *testing.T) []*session.Event {
	t.Helper()
	speak, err := agent.New(agent.Config{Name: "speak", Run: agentSays("good")})
	if err != nil {
		t.Fatal(err)
	}
	inner, err := loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "inner", SubAgents: []agent.Agent{speak}, BeforeAgentCallbacks: []agent.BeforeAgentCallback{
			func(ctx agent.CallbackContext) (*genai.Content, error) { return nil, ctx.State().Set("begun", true) },
		}},
		MaxIterations: 2, OutputKey: "result",
	})
	if err != nil {
		t.Fatal(err)
	}
	outer, err := loopagent.New(loopagent.Config{
		AgentConfig: agent.Config{Name: "outer", SubAgents: []agent.Agent{inner}}, MaxIterations: 2,
		Rules: loop.Plan{Score: &loop.Score{Expr: "iteration"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	svc := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: "a", Agent: outer, SessionService: svc, AutoCreateSession: true, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second run of the session is sealed by itself
		for _, err := range r.Run(t.Context(), "u", "s", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := svc.Get(t.Context(), &session.GetRequest{AppName: "a", UserID: "u", SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	var evs []*session.Event
	for ev := range got.Session.Events().All() {
		b, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		back := new(session.Event)
		if err := json.Unmarshal(b, back); err != nil {
			t.Fatal(err)
		}
		evs = append(evs, back)
	}
	return evs
}

// M18: a log that nobody has touched agrees with its stop records.
func TestVerifyAgreesWithAnUntouchedLog(t *testing.T) {
	seals := verify.Of(slices.Values(sealedLog(t))).Loops()
	if len(seals) != 6 {
		t.Fatalf("%d stop records, want 6", len(seals))
	}
	for _, s := range seals {
		if s.Problem != "" {
			t.Errorf("%s at %d: %s", s.Loop, s.Seq, s.Problem)
		}
	}
}

func TestVerifyNoticesChanges(t *testing.T) {
	indexOf := func(evs []*session.Event, is func(*session.Event) bool) int {
		for i, ev := range evs {
			if is(ev) {
				return i
			}
		}
		t.Fatal("no such event")
		return 0
	}
	says := func(ev *session.Event) bool { return ev.Author == "speak" && ev.Text() != "" }
	stops := func(ev *session.Event) bool { return ev.Mark != nil && ev.Mark.Kind == mark.KindLoopStopped }
	for _, tt := range []struct {
		name   string
		change func([]*session.Event) []*session.Event
		want   string
	}{
		{"words", func(evs []*session.Event) []*session.Event {
			evs[indexOf(evs, says)].Content.Parts[0].Text = "bad"
			return evs
		}, "was changed"},
		{"state", func(evs []*session.Event) []*session.Event {
			evs[indexOf(evs, says)].Actions.StateDelta = map[string]any{"x": 1}
			return evs
		}, "was changed"},
		{"an event is gone", func(evs []*session.Event) []*session.Event {
			i := indexOf(evs, says)
			return append(evs[:i:i], evs[i+1:]...)
		}, "which was made from"},
		{"an event is new", func(evs []*session.Event) []*session.Event {
			i := indexOf(evs, says)
			return append(evs[:i+1:i+1], evs[i:]...)
		}, "was changed"},
		{"an event is new before the record", func(evs []*session.Event) []*session.Event {
			i := indexOf(evs, stops)
			return append(evs[:i:i], evs[i-1:]...)
		}, "was added"},
		{"the record", func(evs []*session.Event) []*session.Event {
			ev := evs[indexOf(evs, stops)]
			ev.Mark.Data = json.RawMessage(strings.Replace(string(ev.Mark.Data), "max_iterations", "exit_loop", 1))
			return evs
		}, "was changed"},
		{"no digest", func(evs []*session.Event) []*session.Event {
			ev := evs[indexOf(evs, stops)]
			ev.Mark.Data = json.RawMessage(`{}`)
			return evs
		}, "no digest"},
		{"no record", func(evs []*session.Event) []*session.Event {
			ev := evs[indexOf(evs, stops)]
			ev.Mark.Data = json.RawMessage(`[`)
			return evs
		}, "cannot be read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seals := verify.Of(slices.Values(tt.change(sealedLog(t)))).Loops()
			var bad []string
			for _, s := range seals {
				if s.Problem != "" {
					bad = append(bad, string(s.Loop)+": "+s.Problem)
				}
			}
			if len(bad) != 3 || !strings.Contains(bad[0], tt.want) { // the inner loop, the one after it, and the outer one
				t.Errorf("problems: %q, want three, the first with %q", bad, tt.want)
			}
		})
	}
}

func agentSays(text string) func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
	return func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			ev := &session.Event{}
			ev.Content = genai.NewContentFromText(text, genai.RoleModel)
			yield(ev, nil)
		}
	}
}
