// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"errors"
	"fmt"
	"iter"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/agenttool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

// E5: a tool that must not be called twice and was cut off finds out by itself what
// became of the call; where it cannot, a person is asked. A second crash, behind what
// was found out, changes nothing: it is not asked again.
func TestCallInDoubtFindsOut(t *testing.T) {
	for _, tt := range []struct {
		name  string
		found agent.Reconciliation
		err   error
		panic bool
		want  string
		calls int
		asks  string // what a person is told
	}{
		{"it was made", agent.Happened(map[string]any{"paid": "yes"}), nil, false, "map[paid:yes]", 1, ""},
		{"with a text for its result", agent.Happened("paid 5"), nil, false, "map[result:paid 5]", 1, ""},
		{"it was not made", agent.DidNotHappen(), nil, false, "map[paid:2]", 2, ""},
		{"nobody knows", agent.Unknown("the bank is closed"), nil, false, "map[result:by phone]", 1, "It could not be found out: the bank is closed"},
		{"it fails", agent.Reconciliation{}, errors.New("no line"), false, "map[result:by phone]", 1, "It could not be found out: no line"},
		{"it panics", agent.Reconciliation{}, nil, true, "map[result:by phone]", 1, "It could not be found out: panic: broken"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			calls, looks := 0, 0
			var asked []agent.Doubt
			var ids []string
			d := newDurable(t, func() agent.Agent {
				pay, err := functiontool.New(functiontool.Config{
					Name: "pay", Effect: agent.AtMostOnce,
					Reconcile: func(ctx agent.InvocationContext, call agent.Doubt) (agent.Reconciliation, error) {
						looks++
						asked = append(asked, call)
						if _, ok := ctx.(tool.Context); !ok {
							t.Errorf("ctx is a %T", ctx)
						}
						if tt.panic {
							panic("broken")
						}
						return tt.found, tt.err
					},
				}, func(ctx tool.Context, _ struct{ N int }) (map[string]any, error) {
					calls++
					ids = append(ids, drive.At(ctx).ToolCallID(ctx.FunctionCallID()))
					return map[string]any{"paid": calls}, nil
				})
				if err != nil {
					t.Fatal(err)
				}
				llm := script(t, scripted.Answer{Calls: []scripted.Call{{Name: "pay", Args: map[string]any{"N": 7}}}}, scripted.Answer{Text: "thanks"})
				return newAgent(t, llmagent.Config{Name: "buyer", Model: llm, Tools: []tool.Tool{pay}})
			})
			sound := d.svc
			lose := func(is func(*session.Event) bool) {
				d.svc = &losing{Service: sound, loses: is}
				if err := d.run(nil); !errors.Is(err, errLost) {
					t.Fatalf("it did not die: %v", err)
				}
				d.svc = sound
			}
			lose(func(ev *session.Event) bool {
				return ev.Content != nil && ev.Content.Role == genai.RoleUser && ev.Author == "buyer"
			})
			// It dies again, when it has found it out.
			lose(func(ev *session.Event) bool {
				return looks > 0 && (ev.Mark == nil || ev.Mark.Kind != mark.KindReconciled)
			})
			if tt.asks != "" {
				waits := d.run(nil)
				w, ok := errors.AsType[*agent.WaitingError](waits)
				if !ok {
					t.Fatalf("got %v, want that it waits", waits)
				}
				if want := `buyer was cut off while it called pay({"N":7}), which must not be called twice. Was the call made? (its call ID is ` + ids[0] + `) ` + tt.asks; w.Question.Text != want {
					t.Errorf("asked %s, want %s", w.Question.Text, want)
				}
				d.answer(waits, mark.Resolution{Action: mark.ResolveResult, Result: "by phone"})
			}
			if err := d.run(nil); err != nil {
				t.Fatal(err)
			}
			if calls != tt.calls || looks != 1 {
				t.Errorf("called %d times, looked up %d times; want %d and once", calls, looks, tt.calls)
			}
			c := asked[0]
			if c.ID != ids[0] || c.Tool != "pay" || fmt.Sprint(c.Args) != "map[N:7]" || c.Call == "" || c.Address != "buyer" {
				t.Errorf("asked about %+v", c)
			}
			got := d.said()
			if n, want := len(got), "buyer: answer pay "+tt.want; n < 2 || got[n-1] != "buyer: thanks" || got[n-2] != want {
				t.Errorf("got %q, want %q before the last", got, want)
			}
		})
	}
}

// E5: what an agent does that is a tool has the ID of the call, also when the run is
// resumed behind other calls of it, and that is the ID that a person is told.
func TestToolThatIsAnAgentKeepsItsCallID(t *testing.T) {
	var ids []string
	d := newDurable(t, func() agent.Agent {
		pays, err := agent.New(agent.Config{Name: "pay", Run: func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				ids = append(ids, drive.At(ctx).CallID())
				ev := &session.Event{}
				ev.Content = genai.NewContentFromText("paid", genai.RoleModel)
				yield(ev, nil)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		llm := script(t,
			scripted.Answer{Calls: []scripted.Call{{Name: "pay", Args: map[string]any{"request": "one"}}}},
			scripted.Answer{Calls: []scripted.Call{{Name: "pay", Args: map[string]any{"request": "two"}}}},
			scripted.Answer{Text: "thanks"},
		)
		return newAgent(t, llmagent.Config{Name: "buyer", Model: llm, Tools: []tool.Tool{agenttool.New(pays, nil)}})
	})
	sound, answers := d.svc, 0
	d.svc = &losing{Service: sound, loses: func(ev *session.Event) bool {
		if ev.Content != nil && ev.Content.Role == genai.RoleUser && ev.Author == "buyer" {
			answers++
		}
		return answers == 2
	}}
	if err := d.run(nil); !errors.Is(err, errLost) {
		t.Fatal(err)
	}
	d.svc = sound
	if err := d.run(nil); err != nil {
		t.Fatal(err)
	}
	if len(ids) != 3 || ids[0] == ids[1] || ids[1] != ids[2] {
		t.Errorf("the calls have the IDs %q: want one each, and that of the second again", ids)
	}
}

// A Reconcile is for what must not be done twice.
func TestReconcileNeedsItsEffect(t *testing.T) {
	find := func(agent.InvocationContext, agent.Doubt) (agent.Reconciliation, error) {
		return agent.DidNotHappen(), nil
	}
	_, err := functiontool.New(functiontool.Config{Name: "pay", Reconcile: find}, func(tool.Context, struct{}) (string, error) { return "", nil })
	if err == nil {
		t.Error("a tool has a Reconcile, and may be called twice")
	}
	_, err = taskagent.NewText(taskagent.TextConfig{Config: taskagent.Config{Name: "pay", Reconcile: find}, Text: "a"})
	if err == nil {
		t.Error("a task has a Reconcile, and may be done twice")
	}
}
