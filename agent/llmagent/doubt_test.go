// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// durable is one session in which a tree runs durably, in one process after the
// other.
type durable struct {
	*testing.T
	svc  session.Service
	grow func() agent.Agent
	id   string
}

func newDurable(t *testing.T, grow func() agent.Agent) *durable {
	return &durable{T: t, svc: session.InMemoryService(), grow: grow}
}

// run starts the run, or resumes it, for as long as more says so.
func (d *durable) run(more func(*session.Event) bool) error {
	d.Helper()
	return d.runUnder(d.Context(), more)
}

func (d *durable) runUnder(ctx context.Context, more func(*session.Event) bool) error {
	d.Helper()
	r, err := runner.New(runner.Config{AppName: "app", Agent: d.grow(), SessionService: d.svc, AutoCreateSession: true, Durable: true})
	if err != nil {
		d.Fatal(err)
	}
	cfg := agent.RunConfig{Pause: new(agent.Pause)}
	seq := r.Resume(ctx, "ana", "s1", d.id, cfg)
	if d.id == "" {
		seq = r.Run(ctx, "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), cfg)
	}
	for ev, err := range seq {
		if err != nil {
			return err
		}
		if d.id = ev.InvocationID; more != nil && !more(ev) {
			return nil
		}
	}
	return nil
}

func (d *durable) session() session.Session {
	d.Helper()
	got, err := d.svc.Get(d.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err != nil {
		d.Fatal(err)
	}
	return got.Session
}

// answer answers what the run waits for.
func (d *durable) answer(waits error, value any) {
	d.Helper()
	w, ok := errors.AsType[*agent.WaitingError](waits)
	if !ok {
		d.Fatalf("got error %v, want that the run waits for a person", waits)
	}
	data, err := json.Marshal(value)
	if err != nil {
		d.Fatal(err)
	}
	a := mark.Answer{ID: w.Question.ID, Value: data}
	if err := w.Question.Check(&a); err != nil {
		d.Error(err)
	}
	m, err := mark.New(mark.KindAnswered, a)
	if err == nil {
		err = d.svc.AppendEvent(d.Context(), d.session(), &session.Event{InvocationID: d.id, Author: "user", Mark: m})
	}
	if err != nil {
		d.Fatal(err)
	}
}

// said is what was said, without marks.
func (d *durable) said() []string {
	var evs []*session.Event
	for ev := range d.session().Events().All() {
		if ev.Mark == nil || ev.Mark.Kind == mark.KindAsked {
			evs = append(evs, ev)
		}
	}
	return lines(evs)
}

// LOOP 32, needs 17: in a durable run a tool that asks a person makes the run wait,
// in the middle of a loop, and the answer takes it up again there.
func TestConfirmationInALoopWaits(t *testing.T) {
	for _, tt := range []struct {
		name      string
		confirmed bool
		want      string
	}{
		{"yes", true, "publisher: answer publish map[args:map[n:1] call:call_publisher_1_1 payload:twice]"},
		{"no", false, `publisher: answer publish map[error:error tool "publish" call is rejected]`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := record(script(t))
			script := func() model.LLM {
				rec = record(script(t,
					scripted.Answer{Agent: "writer", Text: "draft 1"},
					scripted.Answer{Agent: "publisher", Calls: []scripted.Call{{Name: "publish", Args: map[string]any{"n": 1}}}},
					scripted.Answer{Agent: "publisher", Text: "published"},
					scripted.Answer{Agent: "writer", Text: "draft 2"},
					scripted.Answer{Agent: "publisher", Text: "nothing to publish"},
				))
				return rec
			}
			d := newDurable(t, func() agent.Agent {
				llm := script()
				publisher := llmagent.Config{Name: "publisher", Model: llm, Toolsets: []tool.Toolset{guarded(t, "publish")}}
				return newLoop(t, loopagent.Config{MaxIterations: 2}, newAgent(t, llmagent.Config{Name: "writer", Model: llm}), newAgent(t, publisher))
			})
			d.answer(d.run(nil), map[string]any{"confirmed": tt.confirmed, "payload": "twice"})
			if err := d.run(nil); err != nil {
				t.Fatal(err)
			}
			want := []string{
				"user: go", "writer: draft 1", "publisher: call publish",
				`publisher: answer publish map[error:error tool "publish" requires confirmation, please approve or reject]`,
				"publisher: call adk_request_confirmation", tt.want, "publisher: published",
				"writer: draft 2", "publisher: nothing to publish",
			}
			got := d.said()
			if n := len(got); n > 0 && got[n-1] == "refine: nothing to publish" {
				got = got[:n-1] // the loop's result
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if n := len(rec.requests); n != 3 {
				t.Errorf("after the answer the model was asked %d times, want 3", n)
			}
			answers := 0
			for _, c := range rec.requests[0].Contents {
				for _, p := range c.Parts {
					if p.FunctionResponse != nil {
						answers++
					}
				}
			}
			if answers != 1 {
				t.Errorf("the model sees %d answers to one call", answers)
			}
		})
	}
}

// needs 13: a tool that must not be called twice is not, whenever the run is cut
// off: what nobody knows a person has to say.
func TestCallInDoubt(t *testing.T) {
	for _, tt := range []struct {
		name   string
		action mark.Resolution
		want   string
		calls  int
	}{
		{"made", mark.Resolution{Action: mark.ResolveResult, Result: "paid 5"}, "map[result:paid 5]", 1},
		{"retried", mark.Resolution{Action: mark.ResolveRetry}, "map[paid:2]", 2},
		{"left", mark.Resolution{Action: mark.ResolveSkip}, "map[error:the call was cut off, and a person decided to leave it]", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			calls, looks := 0, 0
			var ids []string
			d := newDurable(t, func() agent.Agent {
				pay, err := functiontool.New(functiontool.Config{Name: "pay", Effect: agent.AtMostOnce}, func(ctx tool.Context, _ struct{}) (map[string]any, error) {
					calls++
					ids = append(ids, drive.At(ctx).ToolCallID(ctx.FunctionCallID()))
					return map[string]any{"paid": calls}, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				look, err := functiontool.New(functiontool.Config{Name: "look", Effect: agent.Pure}, func(tool.Context, struct{}) (map[string]any, error) {
					looks++
					return map[string]any{"seen": true}, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				llm := script(t,
					scripted.Answer{Calls: []scripted.Call{{Name: "pay"}, {Name: "look"}}},
					scripted.Answer{Text: "thanks"},
				)
				return newAgent(t, llmagent.Config{Name: "buyer", Model: llm, Tools: []tool.Tool{pay, look}})
			})
			// It is killed when the calls were made, and before what they came to is kept.
			real := d.svc
			d.svc = &losing{Service: real, loses: func(ev *session.Event) bool {
				return ev.Content != nil && ev.Content.Role == genai.RoleUser && ev.Author == "buyer"
			}}
			if err := d.run(nil); !errors.Is(err, errLost) || calls != 1 {
				t.Fatalf("got error %v and %d calls", err, calls)
			}
			d.svc = real
			waits := d.run(nil)
			if looks != 1 || calls != 1 {
				t.Errorf("while it waits pay was called %d times, look %d times", calls, looks)
			}
			if err := d.run(nil); !errors.Is(err, agent.ErrWaiting) {
				t.Errorf("resumed without an answer: %v", err)
			}
			d.answer(waits, tt.action)
			if err := d.run(nil); err != nil {
				t.Fatal(err)
			}
			if calls != tt.calls {
				t.Errorf("pay was called %d times, want %d", calls, tt.calls)
			}
			if len(ids) == 2 && ids[0] != ids[1] {
				t.Errorf("the calls have the IDs %q", ids)
			}
			got := d.said()
			want := "buyer: answer pay " + tt.want + " | answer look map[seen:true]"
			if n := len(got); n < 2 || got[n-1] != "buyer: thanks" || got[n-2] != want {
				t.Errorf("got %q, want %q before the last", got, want)
			}
		})
	}
}

var errLost = errors.New("the power is off")

// losing is a store that is gone from a certain event on.
type losing struct {
	session.Service
	loses func(*session.Event) bool
	gone  bool
}

func (l *losing) AppendEvent(ctx context.Context, s session.Session, ev *session.Event) error {
	if l.gone = l.gone || l.loses(ev); l.gone {
		return errLost
	}
	return l.Service.AppendEvent(ctx, s, ev)
}

func (r *recorder) Recall(agent string, said *genai.Content) {
	if m, ok := r.LLM.(*scripted.Model); ok {
		m.Recall(agent, said)
	}
}
