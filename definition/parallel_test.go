// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// branchOrders are the orders in which the branches of a panel end.
var branchOrders = [][]string{
	{"critic", "voice", "words"}, {"critic", "words", "voice"}, {"voice", "critic", "words"},
	{"voice", "words", "critic"}, {"words", "critic", "voice"}, {"words", "voice", "critic"},
}

// inOrder makes Go agents that say their name and iteration, in an order if they run at the same time.
func inOrder(order []string) map[string]definition.NewAgent {
	return map[string]definition.NewAgent{"say": func(cfg agent.Config) (agent.Agent, error) {
		cfg.Run = func(ctx agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(yield func(*session.Event, error) bool) {
				for i, name := range order {
					if name == cfg.Name {
						time.Sleep(time.Duration(i) * time.Second)
					}
				}
				ev, text := &session.Event{}, cfg.Name
				if l := drive.At(ctx).Loop(); l != nil {
					text = fmt.Sprint(text, " ", l.Iteration)
				}
				ev.Content = genai.NewContentFromText(text, genai.RoleModel)
				yield(ev, nil)
			}
		}
		return agent.New(cfg)
	}}
}

// result is what the log says that the run hands back.
func (h *house) result() string {
	h.Helper()
	var f progress.Fold
	for ev := range h.view().(*session.View).Events().All() {
		f.Add(ev)
	}
	return f.Answer()
}

// LOOP 16: what a run hands back, and what an output key gets, does not depend on which branch of a parallel agent
// ends last; live, and when the run is cut off and its branches end in another order afterwards.
func TestResultIsNoChance(t *testing.T) {
	const (
		draft = "{name: draft, func: say, output_key: draft}"
		panel = "{name: panel, type: parallel, sub_agents: [{name: words, func: say}, {name: critic, func: say, output_key: review}, {name: voice, func: say}]}"
		score = `{name: rate, set: {rating: "iteration"}}`
		loop  = "name: refine\nmax_iterations: 2\nscore: rating\noutput_key: answer\nsub_agents: "
	)
	list := func(agents ...string) string { return "[" + strings.Join(agents, ", ") + "]\n" }
	line := func(agents ...string) string {
		return "{name: line, type: sequential, output_key: kept, sub_agents: " + list(agents...) + "}"
	}
	panelAtRoot := "name: panel\ntype: parallel\noutput_key: each\nsub_agents: [{name: words, func: say}, {name: critic, func: say}, {name: voice, func: say}]\n"
	nested := strings.ReplaceAll(strings.TrimSpace(loop), "\n", ", ") + " " + list(draft, panel, score)
	for name, tt := range map[string]struct {
		text, want string
		keys       map[string]any
	}{
		"a draft, and a panel that reviews it": {loop + list(draft, panel, score), "draft 2", map[string]any{"answer": "draft 2"}},
		"both in a sequence":                   {loop + list(line(draft, panel), score), "draft 2", map[string]any{"answer": "draft 2", "kept": "draft 2"}},
		"a sequence in a branch": {loop + list(draft, "{name: all, type: parallel, sub_agents: "+list(line(panel))+"}", score), "draft 2",
			map[string]any{"answer": "draft 2", "kept": "critic 2"}},
		"the panel alone":             {loop + list(panel, score), "critic 2", map[string]any{"answer": "critic 2"}},
		"somebody else behind it":     {loop + list(draft, panel, "{name: editor, func: say}", score), "editor 2", map[string]any{"answer": "editor 2"}},
		"the key of a branch":         {"result: review\n" + loop + list(draft, panel, score), "critic 2", map[string]any{"answer": "critic 2"}},
		"a finalizer in branches":     {loop + list(draft, strings.Replace(panel, "sub_agents", "output_key: loop_output, sub_agents", 1), score), "critic 2", map[string]any{"answer": "critic 2"}},
		"a loop in a loop":            {"name: outer\nmax_iterations: 1\nsub_agents: " + list("{"+nested+"}", `{name: end, set: {x: "1"}}`), "draft 2", map[string]any{"answer": "draft 2"}},
		"a sequence at the root":      {"name: line\ntype: sequential\noutput_key: kept\nsub_agents: " + list(draft, panel), "draft", map[string]any{"kept": "draft"}},
		"a sequence of a panel alone": {"name: line\ntype: sequential\noutput_key: kept\nsub_agents: " + list(panel), "critic", map[string]any{"kept": "critic"}},
		"a panel at the root":         {panelAtRoot, "critic", map[string]any{"each": map[string]any{"words": "words", "critic": "critic", "voice": "voice"}}},
	} {
		t.Run(name, func(t *testing.T) {
			for i, order := range branchOrders {
				synctest.Test(t, func(t *testing.T) {
					check := func(h *house, when string) {
						t.Helper()
						if got := h.result(); got != tt.want {
							t.Fatalf("%s, the branches ended as %v: the run hands back %q, want %q", when, order, got, tt.want)
						}
						for key, want := range tt.keys {
							if diff := cmp.Diff(want, h.state(key)); diff != "" {
								t.Fatalf("%s, the branches ended as %v: %s (-want +got):\n%s", when, order, key, diff)
							}
						}
					}
					h := newHouse(t, tt.text, definition.BuildConfig{Agents: inOrder(order)})
					if err := h.run(); err != nil {
						t.Fatal(err)
					}
					check(h, "live")
					for cut := 1 + i; cut < len(h.events); cut += longtest.N(7, 3) {
						again := newHouse(t, tt.text, definition.BuildConfig{Agents: inOrder(order)})
						n := 0
						again.after = func(*session.Event) bool { n++; return n == cut }
						if err := again.run(); !errors.Is(err, errDied) {
							t.Fatal(err)
						}
						again.after, again.cfg.Agents = nil, inOrder(branchOrders[(i+1+cut)%len(branchOrders)])
						if err := again.run(); err != nil && !errors.Is(err, runner.ErrFinished) {
							t.Fatal(err)
						}
						check(again, fmt.Sprintf("resumed after %d events", cut))
					}
				})
			}
		})
	}
}

// LOOP 16, 34: preflight says what is handed back in place of what branches say, and how to change that.
func TestBranchesThatAnswerAreNoted(t *testing.T) {
	const (
		loop  = "name: refine\nmax_iterations: 2\nscore: rating\nsub_agents:\n"
		draft = "  - {name: draft, text: a draft, output_key: draft}\n"
		panel = "  - {name: panel, type: parallel, sub_agents: [{name: words, text: good, output_key: w}, {name: critic, text: bad, output_key: c}]}\n"
		rate  = "  - {name: rate, set: {rating: size(state.draft + state.w + state.c)}}\n"
		line  = "name: line\ntype: sequential\nsub_agents:\n"
	)
	for name, tt := range map[string]struct{ text, want string }{
		"the step before counts": {loop + draft + panel + rate, `6:12: note: the branches of "panel" can end in any order, so "refine" hands ` +
			`back what "draft" says [LOOP050] (if you want something else, give the loop a result, the key that holds it, or a finalizer)`},
		"the first name counts": {strings.Replace(loop+panel+rate, "state.draft + ", "", 1), `so "refine" hands back what "critic" says`},
		"a result":              {"result: c\n" + loop + draft + panel + rate, ""},
		"a finalizer":           {loop + draft + panel + rate + "  - {name: end, text: \"{{draft}}\", output_key: loop_output}\n", ""},
		"somebody behind them":  {loop + draft + panel + "  - {name: editor, text: \"{{w}} {{c}}\"}\n" + rate, ""},
		"a sequence":            {line + draft + panel, `so "line" hands back what "draft" says [LOOP050] (put a step behind it that says what you want, such as text: "{{key}}")`},
		"a sequence's key":      {"output_key: kept\n" + line + draft + panel, `so "line" hands back what "draft" says`},
		"the root": {"name: panel\ntype: parallel\nsub_agents: [{name: words, text: good}, {name: critic, text: bad}]\n",
			`so "panel" hands back what "critic" says [LOOP050] (put it into a sequence, with a step behind it that says what you want, such as text: "{{key}}")`},
		"branches that say nothing": {line + draft + "  - {name: panel, type: parallel, sub_agents: [{name: a, set: {x: \"1\"}}, {name: b, set: {y: \"2\"}}]}\n", ""},
	} {
		d := parse(t, tt.text)
		got := []string{}
		for _, p := range d.Notes() {
			if p.Code == definition.CodeResult {
				got = append(got, p.Error()+" ("+p.Hint+")")
			}
		}
		if len(got) > 1 || tt.want == "" && len(got) > 0 || tt.want != "" && !strings.Contains(strings.Join(got, "\n"), tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
		for _, p := range d.Warnings() {
			if p.Code == definition.CodeResult {
				t.Errorf("%s: it is known what is handed back: %v", name, p)
			}
		}
	}
}
