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
)

// escalate is a tool as one would write it for ADK: it sets nothing else.
func escalate(t *testing.T) tool.Tool {
	return function(t, "leave", func(ctx tool.Context) (map[string]any, error) {
		ctx.Actions().Escalate = true
		return nil, nil
	})
}

// LOOP 4, 6: an exit is drained and is the end, with no further call of the
// model, be it by exit_loop or by Escalate alone, alone or beside other tools.
func TestExitEndsTheTurnAndTheLoop(t *testing.T) {
	exit := scripted.Answer{Calls: []scripted.Call{{Name: "look"}, {Name: "exit_loop", Args: map[string]any{"reason": "good enough"}}, {Name: "look"}}}
	for _, tt := range []struct {
		name   string
		answer scripted.Answer
		want   []string
		reason string
	}{
		{"escalate", calls("leave"), []string{"a: call leave", "a: answer leave map[]"}, ""},
		{"exit_loop with others", exit, []string{
			"a: call look | call exit_loop | call look", "a: answer look map[text:x] | answer exit_loop map[] | answer look map[text:x]",
		}, "good enough"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rec := record(script(t, tt.answer, says("more")))
			a := newAgent(t, llmagent.Config{Name: "a", Model: rec, OutputKey: "doc", Tools: []tool.Tool{answering(t, "look", "x"), exitTool(t), escalate(t)}})
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

// LOOP 7, C5: an exit without permission is refused, recorded, and the loop goes
// on.
func TestExitWithoutPermission(t *testing.T) {
	var stopped *loop.StopRecord
	critic := newAgent(t, llmagent.Config{Name: "critic", Model: script(t, calls("exit_loop"), calls("leave")), Tools: []tool.Tool{exitTool(t), escalate(t)}})
	editor := newAgent(t, llmagent.Config{Name: "editor", Model: script(t, says("one"), calls("exit_loop")), Tools: []tool.Tool{exitTool(t)}})
	root := newLoop(t, loopagent.Config{
		MaxIterations: 5, CanExit: []string{"editor"},
		OnStop: func(_ agent.InvocationContext, rec *loop.StopRecord) { stopped = rec },
	}, critic, editor)
	evs, err := newThread(t, root).ask(t.Context(), "go")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"critic: call exit_loop", "critic: answer exit_loop map[]", "editor: one",
		"critic: call leave", "critic: answer leave map[]", "editor: call exit_loop", "editor: answer exit_loop map[]",
	}
	if diff := cmp.Diff(want, lines(evs)); diff != "" {
		t.Fatal(diff)
	}
	for _, i := range []int{1, 4} {
		if x := evs[i].Actions.Exit; x == nil || !strings.Contains(x.Refused, "critic may not end the loop refine") || evs[i].Actions.Escalate {
			t.Errorf("event %d: %+v", i, x)
		}
	}
	if stopped == nil || stopped.Reason != loop.ReasonExit || stopped.Iteration != 2 {
		t.Errorf("got %+v", stopped)
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

// A model that never calls the tool works until the limit; one that calls another
// for ever is stopped by the limit of calls.
func TestModelsThatNeverLeave(t *testing.T) {
	never := newAgent(t, llmagent.Config{Name: "a", Model: script(t, scripted.Answer{Text: "more", Repeat: true}), Tools: []tool.Tool{exitTool(t)}})
	if got := newThread(t, newLoop(t, loopagent.Config{MaxIterations: 3}, never)).must("go"); len(got) != 3 {
		t.Errorf("got %q", got)
	}
	spins := newAgent(t, llmagent.Config{
		Name: "a", Model: script(t, scripted.Answer{Calls: []scripted.Call{{Name: "look"}}, Repeat: true}),
		Tools: []tool.Tool{exitTool(t), answering(t, "look", "x")},
	})
	th := newThread(t, newLoop(t, loopagent.Config{}, spins))
	th.cfg.MaxLLMCalls = 10
	if evs, err := th.ask(t.Context(), "go"); !errors.Is(err, agent.ErrTooManyModelCalls) || len(evs) != 20 {
		t.Errorf("got %d events, %v", len(evs), err)
	}
}
