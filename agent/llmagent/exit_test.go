// SPDX-License-Identifier: Apache-2.0

package llmagent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/agenttool"
	"github.com/refrain-dev/refrain/tool/exitlooptool"
)

// escalate is a tool as one would write it for ADK: it sets nothing else.
func escalate(t *testing.T) tool.Tool {
	return function(t, "leave", func(ctx tool.Context) (map[string]any, error) {
		ctx.Actions().Escalate = true
		return nil, nil
	})
}

// T4, T7, T8, C3, C4, LOOP 4, 6, 8: an exit is drained and is the end, with no
// further call of the model and no output, be it by exit_loop, under either name
// and with or without a reason, or by Escalate alone; alone or beside other tools.
func TestExitEndsTheTurnAndTheLoop(t *testing.T) {
	exit := scripted.Answer{
		Text:  "It is good enough.",
		Calls: []scripted.Call{{Name: "look"}, {Name: "exit_loop", Args: map[string]any{"reason": "good enough"}}, {Name: "look"}},
	}
	alias, err := exitlooptool.NewWith(exitlooptool.Config{Name: exitlooptool.Alias})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		answer scripted.Answer
		want   []string
		reason string
	}{
		{"escalate", calls("leave"), []string{"a: call leave", "a: answer leave map[]"}, ""},
		{"exit_loop", calls("exit_loop"), []string{"a: call exit_loop", "a: answer exit_loop map[]"}, ""},
		{"exitLoop", scripted.Answer{Calls: []scripted.Call{{Name: "exitLoop", Args: map[string]any{"reason": "done"}}}}, []string{
			"a: call exitLoop", "a: answer exitLoop map[]",
		}, "done"},
		{"exit_loop with others", exit, []string{
			"a: It is good enough. | call look | call exit_loop | call look", "a: answer look map[text:x] | answer exit_loop map[] | answer look map[text:x]",
		}, "good enough"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := record(script(t, tt.answer, says("more")))
			a := newAgent(t, llmagent.Config{Name: "a", Model: rec, OutputKey: "doc", Tools: []tool.Tool{answering(t, "look", "x"), exitTool(t), alias, escalate(t)}})
			after := newAgent(t, llmagent.Config{Name: "after", Model: script(t)})
			th := newThread(t, newLoop(t, loopagent.Config{MaxIterations: 3}, a, after))
			evs, err := th.ask(t.Context(), "go")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, lines(evs)); diff != "" {
				t.Error(diff)
			}
			x := evs[len(evs)-1].Actions.Exit
			if x == nil || x.Reason != tt.reason || x.By != "a" || x.HandledBy != "refine" {
				t.Errorf("got exit %+v", x)
			}
			if len(rec.requests) != 1 || th.state("doc") != nil {
				t.Errorf("%d model calls, doc %v", len(rec.requests), th.state("doc"))
			}
		})
	}
}

// LOOP 4: so it is if a callback asks to leave.
func TestExitByACallback(t *testing.T) {
	a := newAgent(t, llmagent.Config{
		Name: "a", Model: script(t, calls("look"), says("more")), Tools: []tool.Tool{answering(t, "look", "x")},
		AfterModelCallbacks: []llmagent.AfterModelCallback{
			func(ctx agent.CallbackContext, _ *model.LLMResponse, _ error) (*model.LLMResponse, error) {
				ctx.Actions().Escalate = true
				return nil, nil
			},
		},
	})
	got := newThread(t, newLoop(t, loopagent.Config{MaxIterations: 3}, a)).must("go")
	if diff := cmp.Diff([]string{"a: call look", "a: answer look map[text:x]"}, got); diff != "" {
		t.Error(diff)
	}
}

// LOOP 7, T9, C5: an exit without permission is refused, recorded, and the loop
// goes on. The model reads the refusal and goes on with its task.
func TestExitWithoutPermission(t *testing.T) {
	var stopped *loop.StopRecord
	critic := newAgent(t, llmagent.Config{Name: "critic", Model: script(t, calls("exit_loop"), says("too long"), calls("leave"),
		says("too short")), Tools: []tool.Tool{exitTool(t), escalate(t)}})
	editor := newAgent(t, llmagent.Config{Name: "editor", Model: script(t, says("one"), calls("exit_loop")), Tools: []tool.Tool{exitTool(t)}})
	root := newLoop(t, loopagent.Config{
		MaxIterations: 5, Rules: loop.Plan{CanExit: []string{"editor"}},
		OnStop: func(_ agent.InvocationContext, rec *loop.StopRecord) { stopped = rec },
	}, critic, editor)
	evs, err := newThread(t, root).ask(t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	const no = "map[error:The loop goes on: critic may not end the loop refine: it does not have can_exit_loop: true. Do not ask to leave it again; go on with your task.]"
	want := []string{
		"critic: call exit_loop", "critic: answer exit_loop " + no, "critic: too long", "editor: one",
		"critic: call leave", "critic: answer leave " + no, "critic: too short", "editor: call exit_loop", "editor: answer exit_loop map[]",
	}
	if diff := cmp.Diff(want, lines(evs)); diff != "" {
		t.Fatal(diff)
	}
	for _, i := range []int{1, 5} {
		if x := evs[i].Actions.Exit; x == nil || x.By != "critic" || !strings.Contains(x.Refused, "critic may not end the loop refine") || evs[i].Actions.Escalate {
			t.Errorf("event %d: %+v", i, x)
		}
	}
	if stopped == nil || stopped.Reason != loop.ReasonExit || stopped.Iteration != 2 {
		t.Fatalf("got %+v", stopped)
	}
	if got := stopped.Refused; len(got) != 2 || got[0].By != "critic" || got[1].Iteration != 2 {
		t.Errorf("refused %+v", got)
	}
}

// LOOP 7: a model that was not given the tool and calls it nonetheless is refused like
// one that was, and recorded; if it does nothing else its step ends without an answer.
// It does not fail, and the loop goes on.
func TestExitWithoutTheTool(t *testing.T) {
	var stopped *loop.StopRecord
	again := scripted.Answer{Calls: []scripted.Call{{Name: "exitLoop", Args: map[string]any{"reason": "tired"}}}, Repeat: true}
	critic := newAgent(t, llmagent.Config{Name: "critic", Model: script(t, again)})
	editor := newAgent(t, llmagent.Config{Name: "editor", Model: script(t, scripted.Answer{Text: "one", Repeat: true}), Tools: []tool.Tool{exitTool(t)}})
	root := newLoop(t, loopagent.Config{
		MaxIterations: 2, Rules: loop.Plan{CanExit: []string{"editor"}},
		OnStop: func(_ agent.InvocationContext, rec *loop.StopRecord) { stopped = rec },
	}, critic, editor)
	evs, err := newThread(t, root).ask(t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	edits := 0
	for _, ev := range evs {
		if ev.Author == "editor" {
			edits++
		}
	}
	if len(evs) != 2*(2*3+1) || edits != 2 { // three attempts of a turn
		t.Errorf("got %q", lines(evs))
	}
	if stopped == nil || stopped.Reason != loop.ReasonMaxIterations {
		t.Fatalf("got %+v", stopped)
	}
	if diff := cmp.Diff([]loop.Refusal{{Iteration: 1, By: "critic", Reason: "tired"}, {Iteration: 2, By: "critic", Reason: "tired"}},
		stopped.Refused); diff != "" {
		t.Error(diff)
	}
	for _, c := range stopped.Conditions {
		if c.Name == "exit_loop" && c.Value != "asked by critic, who may not" {
			t.Errorf("condition %+v", c)
		}
	}
}

// LOOP 6, 7: what an agent asks that another has for a tool, the other asks, and needs
// the permission for.
func TestExitByAnAgentThatIsATool(t *testing.T) {
	for _, may := range []bool{true, false} {
		var stopped *loop.StopRecord
		helper := newAgent(t, llmagent.Config{Name: "helper", Description: "Helps.", Model: script(t, calls("exit_loop"), says("x")),
			Tools: []tool.Tool{exitTool(t)}})
		caller := newAgent(t, llmagent.Config{
			Name: "caller", Tools: []tool.Tool{agenttool.New(helper, nil)},
			Model: script(t, scripted.Answer{Calls: []scripted.Call{{Name: "helper", Args: map[string]any{"request": "help"}}}}, says("y")),
		})
		cfg := loopagent.Config{MaxIterations: 1, Rules: loop.Plan{CanExit: []string{"helper"}}, OnStop: func(_ agent.InvocationContext, rec *loop.StopRecord) { stopped = rec }}
		if cfg.Rules.CanExit = []string{"other"}; may {
			cfg.Rules.CanExit = []string{"caller"}
		}
		other := newAgent(t, llmagent.Config{Name: "other", Model: script(t, says("z"))})
		if _, err := newThread(t, newLoop(t, cfg, caller, other)).ask(t.Context(), "go"); err != nil {
			t.Fatal(err)
		}
		want := loop.ReasonMaxIterations
		if may {
			want = loop.ReasonExit
		}
		if stopped == nil || stopped.Reason != want || may && stopped.By != "caller" {
			t.Errorf("may %v: got %+v", may, stopped)
		}
	}
}

// T11: nor may the finalizer exit, though it has the tool: what the loop stopped
// for stays.
func TestFinalizerThatExits(t *testing.T) {
	var stopped *loop.StopRecord
	writer := newAgent(t, llmagent.Config{Name: "writer", Model: script(t, scripted.Answer{Text: "draft", Repeat: true})})
	closing := newAgent(t, llmagent.Config{Name: "closing", Model: script(t, calls("exit_loop")), Tools: []tool.Tool{exitTool(t)}})
	root := newLoop(t, loopagent.Config{
		MaxIterations: 2, Rules: loop.Plan{Steps: []loop.Step{{Name: "closing", Finalizer: true}}, CanExit: []string{"closing"}},
		OnStop: func(_ agent.InvocationContext, rec *loop.StopRecord) { stopped = rec },
	}, writer, closing)
	evs, err := newThread(t, root).ask(t.Context(), "go")
	if err != nil || len(evs) != 4 {
		t.Fatalf("got %q, %v", lines(evs), err)
	}
	if x := evs[3].Actions.Exit; x == nil || !strings.Contains(x.Refused, "closing is the finalizer") || evs[3].Actions.Escalate {
		t.Errorf("got %+v", x)
	}
	if stopped == nil || stopped.Reason != loop.ReasonMaxIterations {
		t.Errorf("got %+v", stopped)
	}
}

// T5: the model is told what the tool is for.
func TestExitToolIsDescribed(t *testing.T) {
	rec := record(script(t, says("x")))
	newThread(t, newAgent(t, llmagent.Config{Name: "a", Model: rec, Tools: []tool.Tool{exitTool(t)}})).must("go")
	decls := rec.requests[0].Config.Tools[0].FunctionDeclarations
	if len(decls) != 1 || decls[0].Name != "exit_loop" ||
		!strings.HasPrefix(decls[0].Description, "Call this function ONLY when the critique indicates no further changes are needed.") {
		t.Errorf("got %+v", decls)
	}
}

// An exit with wrong arguments ends nothing: the model is told, and tries again.
func TestExitWithWrongArguments(t *testing.T) {
	wrong := scripted.Answer{Calls: []scripted.Call{{Name: "exit_loop", Args: map[string]any{"status": "tired"}}}}
	gives := scripted.Answer{Calls: []scripted.Call{{Name: "exit_loop", Args: map[string]any{"status": "impossible", "reason": "no cat"}}}}
	a := newAgent(t, llmagent.Config{Name: "a", Model: script(t, wrong, gives), Tools: []tool.Tool{exitTool(t)}})
	evs, err := newThread(t, newLoop(t, loopagent.Config{MaxIterations: 3}, a)).ask(t.Context(), "go")
	if err != nil || len(evs) != 4 {
		t.Fatalf("got %q, %v", lines(evs), err)
	}
	if evs[1].Actions.Escalate || !strings.Contains(words(evs[1].Content), "error") {
		t.Errorf("wrong arguments: %s, %+v", words(evs[1].Content), evs[1].Actions)
	}
	if x := evs[3].Actions.Exit; x == nil || x.Status != session.ExitImpossible || x.Reason != "no cat" {
		t.Errorf("got %+v", x)
	}
}

// LOOP 10, 23: a model that never calls the tool works until the limit of
// iterations, and so does one that calls it for ever without permission; without
// such a limit, or within one turn, the limit of calls stops it. One that gets the
// tool's arguments wrong again and again has failed.
func TestModelsThatNeverLeave(t *testing.T) {
	wrong := []scripted.Call{{Name: "exit_loop", Args: map[string]any{"status": "tired"}}}
	for _, tt := range []struct {
		name       string
		answer     scripted.Answer
		iterations uint
		events     int
		ends       error // nil: by the limit of iterations
	}{
		{"never calls it", says("more"), 3, 3, nil},
		{"may not, within a limit", calls("exit_loop"), 3, 18, nil},
		{"may not, without a limit", calls("exit_loop"), 0, 20, agent.ErrTooManyModelCalls},
		{"with wrong arguments", scripted.Answer{Calls: wrong}, 3, 6, new(llmagent.AnswerError)},
		{"calls another", calls("look"), 0, 20, agent.ErrTooManyModelCalls},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stopped *loop.StopRecord
			tt.answer.Repeat = true
			a := newAgent(t, llmagent.Config{Name: "a", Model: script(t, tt.answer), Tools: []tool.Tool{exitTool(t), answering(t, "look", "x")}})
			cfg := loopagent.Config{
				MaxIterations: tt.iterations,
				OnStop:        func(_ agent.InvocationContext, rec *loop.StopRecord) { stopped = rec },
			}
			if strings.HasPrefix(tt.name, "may not") {
				cfg.Rules.CanExit = []string{}
			}
			th := newThread(t, newLoop(t, cfg, a))
			th.cfg.MaxLLMCalls = 10
			evs, err := th.ask(t.Context(), "go")
			if _, flawed := errors.AsType[*llmagent.AnswerError](tt.ends); flawed {
				if _, is := errors.AsType[*llmagent.AnswerError](err); is {
					err = tt.ends
				}
			}
			if len(evs) != tt.events || !errors.Is(err, tt.ends) {
				t.Errorf("got %d events, %v", len(evs), err)
			}
			if tt.ends == nil && (stopped == nil || stopped.Reason != loop.ReasonMaxIterations) {
				t.Errorf("got %+v", stopped)
			}
			if cfg.Rules.CanExit == nil {
				return
			}
			for i, ev := range evs {
				if x := ev.Actions.Exit; i%2 == 1 && (x == nil || x.Refused == "") {
					t.Errorf("event %d: exit %+v", i, x)
				}
			}
		})
	}
}

// C4, LOOP 6: the exit tool answers to either of its names, and where it may not
// be called, to none.
func TestExitToolAnswersToBothNames(t *testing.T) {
	for _, name := range []string{exitlooptool.Name, exitlooptool.Alias} {
		exit, err := exitlooptool.NewWith(exitlooptool.Config{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		for _, called := range []string{exitlooptool.Name, exitlooptool.Alias} {
			var asked []string
			cfg := llmagent.Config{Name: "a", Tools: []tool.Tool{exit}, BeforeToolCallbacks: []llmagent.BeforeToolCallback{
				func(_ agent.ToolContext, f tool.Tool, _ map[string]any) (map[string]any, error) {
					asked = append(asked, f.Name())
					return nil, nil
				},
			}}
			cfg.Model = script(t, call(called, map[string]any{"reason": "good"}), says("go on"))
			th := newThread(t, newLoop(t, loopagent.Config{MaxIterations: 1}, newAgent(t, cfg)))
			evs, err := th.ask(t.Context(), "go")
			if err != nil || !exited(evs) || len(asked) != 1 || asked[0] != name {
				t.Errorf("%s, called %s: got %q, %v, callbacks were asked about %q", name, called, lines(evs), err, asked)
			}

			cfg.Tools = []tool.Tool{answering(t, "look", "x")}
			cfg.Model = script(t, calls(called), says("go on"))
			th = newThread(t, newLoop(t, loopagent.Config{MaxIterations: 1}, newAgent(t, cfg)))
			if evs, err := th.ask(t.Context(), "go"); err != nil || exited(evs) {
				t.Errorf("without the tool, called %s: got %q, %v", called, lines(evs), err)
			}
		}
	}
}
