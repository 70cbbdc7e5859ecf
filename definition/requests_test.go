// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model/modeltest"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
)

const family = `name: book
goal: A story that a child likes.
instructions: Be quick.
score: {key: words, target: 100}
max_iterations: 2
state: {words: 1}
sub_agents:
  - {name: critic, instructions: Review., output_key: critique}
  - name: review
    type: sequential
    sub_agents:
      - name: editor
        instructions: Edit.
        tools:
          - agent: {name: facts, description: Knows facts., instructions: Look it up.}
      - name: polish
        goal: No typos.
        stop_when: state.words > 3
        sub_agents: [{name: proof, instructions: Read., can_exit_loop: true}]
  - {name: refiner, instructions: Refine., can_exit_loop: true}
  - {name: publisher, instructions: Publish., output_key: loop_output}
`

// asked is what a server was asked, by the agent that asked last.
type asked struct {
	system map[string]string // without who the agent is
	tools  map[string]string // names and, of exit_loop, what it is for
	models map[string]string
}

func askedOf(t *testing.T, requests []*modeltest.Request) *asked {
	t.Helper()
	a := &asked{make(map[string]string), make(map[string]string), make(map[string]string)}
	for _, req := range requests {
		system, who, ok := strings.Cut(req.Config.SystemInstruction.Parts[0].Text, "You are an agent. Your internal name is ")
		if !ok {
			t.Fatalf("nobody asks: %s", system)
		}
		name := strings.Split(who, `"`)[1]
		a.system[name], a.tools[name], a.models[name] = strings.TrimSpace(system), "", req.Model
		for _, made := range req.Config.Tools {
			for _, d := range made.FunctionDeclarations {
				a.tools[name] += d.Name
				if when, ok := strings.CutPrefix(d.Description, "Call this function ONLY when "); ok {
					a.tools[name] += ": " + strings.Split(when, ". It ends")[0]
				}
			}
		}
	}
	return a
}

// C12, C30, C5, T5, T9, T10, T11: what goes over the wire. The goals and the
// instructions of the loops around reach every agent; exit_loop is offered, with
// the loop's own criteria, to those that may end that loop, and to nobody else.
func TestWhatEveryAgentIsAskedInALoop(t *testing.T) {
	script := scripted.Script{RepeatLast: true, Answers: []scripted.Answer{
		{Agent: "critic", Text: "Longer."},
		{Agent: "editor", Calls: []scripted.Call{{Name: "facts", Args: map[string]any{"request": "cats"}}}},
		{Agent: "editor", Text: "Edited."},
		{Agent: "facts", Text: "Cats sleep."},
		exitCall("proof"), {Agent: "refiner", Text: "Refined."}, {Agent: "publisher", Text: "A book."},
	}}
	const (
		outer = "\n\nThe goal of book: A story that a child likes.\n\nHow book goes about it: Be quick."
		ends  = "exit_loop: the goal is reached (A story that a child likes) and the score is at least 100"
	)
	want := &asked{
		system: map[string]string{
			"critic": "Review." + outer, "editor": "Edit." + outer, "facts": "Look it up." + outer, "refiner": "Refine." + outer,
			"publisher": "Publish." + outer, "proof": "Read." + outer + "\n\nThe goal of polish: No typos.",
		},
		tools: map[string]string{
			"critic": "", "editor": "facts", "facts": "", "publisher": "", "refiner": ends,
			"proof": "exit_loop: the goal is reached (No typos) and this holds: state.words > 3",
		},
		models: map[string]string{"critic": "m", "editor": "m", "facts": "m", "proof": "m", "publisher": "m", "refiner": "m"},
	}
	for name, p := range providers(t, script) {
		if p.server == nil {
			continue
		}
		run(t, parse(t, family), definition.BuildConfig{DefaultModel: "m", Model: p.open}, nil)
		if diff := cmp.Diff(want, askedOf(t, p.server.Requests()), cmp.AllowUnexported(asked{})); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// C5, T9: hiding the tool is not enough. A model that calls exit_loop without
// permission is refused in words that it can read, one that asks in another way is
// refused, and both times the loop goes on.
func TestExitWithoutPermissionGoesOn(t *testing.T) {
	d := parse(t, `name: l
max_iterations: 2
sub_agents:
  - {name: sly, instructions: a, tools: [give_up]}
  - {name: other, instructions: b, can_exit_loop: true}
`)
	giveUp, err := functiontool.New(functiontool.Config{Name: "give_up"}, func(ctx tool.Context, _ struct{}) (string, error) {
		ctx.Actions().Escalate = true
		return "bye", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rec, cfg := record(t,
		exitCall("sly"), scripted.Answer{Agent: "sly", MatchRequest: `The loop goes on: sly may not end the loop l`, Text: "Well."},
		scripted.Answer{Agent: "other", Text: "One."},
		call("sly", "give_up", nil), scripted.Answer{Agent: "sly", Text: "Then not."}, scripted.Answer{Agent: "other", Text: "Two."})
	cfg.Tools = []tool.Tool{giveUp}
	built, err := d.Build(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.NewInMemory("test", built)
	if err != nil {
		t.Fatal(err)
	}
	var refused *session.Exit
	for ev, err := range r.Run(t.Context(), "u", "s", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
		if x := ev.Actions.Exit; x != nil && x.Refused != "" {
			refused = x
		}
	}
	if len(rec.requests) != 6 || declared(rec.requests[0].Config) != "give_up" || declared(rec.requests[2].Config) != "exit_loop" {
		t.Errorf("%d requests", len(rec.requests))
	}
	if refused == nil {
		t.Error("nobody was refused")
	}
}
