// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/session"
)

// Nothing runs, nothing is sent, and no key is needed, whatever a definition
// has.
func TestNothingLeavesTheProcess(t *testing.T) {
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer server.Close()
	mark := filepath.Join(t.TempDir(), "touched")
	t.Setenv("OPENAI_API_KEY", "")
	def := parse(t, fmt.Sprintf(`name: busy
model: openai/gpt-5-mini
max_iterations: 3
callbacks:
  before_run: [{command: [touch, %[1]q]}]
  after_iteration: [{webhook: %[2]q, secret_env: NOT_SET}]
  before_model: [{func: told}]
sub_agents:
  - {name: run, command: [touch, %[1]q], output_key: ran}
  - {name: send, url: %[2]q, output_key: sent}
  - {name: elsewhere, endpoint: %[2]q, output_key: heard}
  - {name: person, type: human, question: "Is {{ran}} right?", output_key: said}
  - name: thinker
    instructions: "{{ran}} {{sent}} {{heard}} {{said}}"
    can_exit_loop: true
    tools:
      - {mcp: {command: [touch, %[1]q], env: [SECRET_NOT_SET]}}
      - {mcp: {url: %[2]q}}
      - {command: [touch, %[1]q], name: toucher, description: touches}
      - {func: compute}
`, mark, server.URL))
	r := rehearse(t, def, rehearsal.Config{})
	if n := hits.Load(); n > 0 {
		t.Errorf("the server was asked %d times", n)
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a command ran")
	}
	var text strings.Builder
	if err := r.Format(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"a scripted model answers for thinker", "commands that did not run: run, toucher", "requests that were not sent: send", "remote agents that were not called: elsewhere",
		"servers of tools that were not started, of thinker", "functions and agents that were not called: compute", "people who were not asked: person", "callbacks that were not called, of busy",
		"busy ends by exit_loop by thinker",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, &text)
		}
	}
}

// clock is an agent that says what time it is.
func clock(a *definition.Agent) (agent.Agent, bool) {
	if a.Name != "clock" {
		return nil, false
	}
	made, err := agent.New(agent.Config{Name: a.Name, Run: func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
		return func(yield func(*session.Event, error) bool) {
			now := time.Now().String()
			ev := &session.Event{}
			ev.Content = genai.NewContentFromText(now, genai.RoleModel)
			ev.Actions.StateDelta = map[string]any{"now": now}
			yield(ev, nil)
		}
	}})
	return made, err == nil
}

// LOOP 30: an agent that reads the clock is found where the run crashes.
func TestCrashFindsAClock(t *testing.T) {
	def := parse(t, `name: tick
max_iterations: 2
sub_agents:
  - {name: clock, command: [date], output_key: now}
  - {name: keep, set: {seen: state.now}}
`)
	cfg := rehearsal.Config{Faults: []rehearsal.Fault{rehearsal.Crash}}
	if f := rehearse(t, def, cfg).Findings[0]; f.Status != rehearsal.Caught || f.Points < 10 {
		t.Errorf("with a stand-in: %+v", f)
	}
	cfg.Agent = clock
	f := rehearse(t, def, cfg).Findings[0]
	if f.Status != rehearsal.Uncaught || f.Differ == 0 || !strings.Contains(f.Detail, "state.now differs") {
		t.Errorf("with a clock: %+v", f)
	}
}

// LOOP 12: stand-ins answer in every form in which a loop reads a score, a
// condition or an exit.
func TestForms(t *testing.T) {
	const judge = `sub_agents: [{name: judge, instructions: judge, output_key: k%s}]`
	for _, tt := range []struct{ name, text, ends string }{
		{"a number", `score: {key: k, target: 7}` + "\n" + fmt.Sprintf(judge, ""), "score.target"},
		{"lower is better", `score: {key: k, target: 2, lower_is_better: true}` + "\n" + fmt.Sprintf(judge, ""), "score.target"},
		{"a label", `score: {key: k, target: 70, label: "Mark:"}` + "\n" + fmt.Sprintf(judge, ""), "score.target"},
		{"a field", `score: {key: k, target: 0.9, field: quality.total}` + "\n" + fmt.Sprintf(judge, ""), "score.target"},
		{"parts", `score: {key: k, dimensions: [a, b], dimension_target: 8}` + "\n" + fmt.Sprintf(judge, ""), "score.target"},
		{"a schema", `score: {key: k, target: 4}` + "\n" + fmt.Sprintf(judge, `, output_schema: {type: object, properties: {score: {type: integer, minimum: 1, maximum: 5}, why: {type: string, maxLength: 9}, kind: {type: string, enum: [x, y]}, all: {type: array, minItems: 2, items: {type: boolean}}}, required: [score, why, kind, all]}`), "score.target"},
		{"a schema that is a number", `score: {key: k, target: 4}` + "\n" + fmt.Sprintf(judge, `, output_schema: {type: integer, maximum: 5}`), "score.target"},
		{"a schema and a tool", `score: {key: k, target: 4}` + "\n" + fmt.Sprintf(judge, `, tools: [{func: look}], output_schema: {type: object, properties: {score: {type: number}}, required: [score]}`), "score.target"},
		{"an expression", "score: {expr: state.k.a / state.k.b, target: 3}\nsub_agents: [{name: measure, command: [measure], json: true, output_key: k}]", "score.target"},
		{"improvement", `score: {key: k, min_delta: 0.5, patience: 2}` + "\n" + fmt.Sprintf(judge, ""), "score that hardly improves"},
		{"a phrase", "stop_when: {text: No issues, of: judge}\n" + fmt.Sprintf(judge, ""), "stop_when"},
		{"a condition", "stop_when: {all: [state.k.failed == 0, state.k.passed > 10]}\nsub_agents: [{name: test, command: [test], json: true, output_key: k}]", "stop_when"},
		{"JSON in a text", `stop_when: json(state.k).done == true` + "\n" + fmt.Sprintf(judge, ""), "stop_when"},
		{"an exit code", "sub_agents: [{name: ask, command: [ask], ok_exit_codes: [0, 3], exit_when: result.exit_code == 3}]", "exit_when of ask"},
		{"a status", "sub_agents: [{name: ask, url: 'http://localhost/', ok_status: [200, 202], exit_when: result.status == 200}]", "exit_when of ask"},
		{"words of a program", "sub_agents: [{name: ask, command: [ask], exit_when: 'result.stdout.contains(\"ready\")'}]", "exit_when of ask"},
		{"a tool", "sub_agents: [{name: a, instructions: a}, {name: b, instructions: b, can_exit_loop: true}]", "exit_loop by b"},
		{"a condition of what is computed", `state: {bid: 0, ask: 120}
stop_when: state.bid >= state.ask
sub_agents:
  - {name: buyer, instructions: b, output_key: buys, output_schema: {type: object, properties: {price: {type: number}, says: {type: string}}, required: [price, says]}}
  - {name: bids, set: {bid: "math.greatest(state.bid, json(state.buys).price)", said: json(state.buys).says}}`, "stop_when"},
		{"a condition that reads findings", `state: {t: {passed: 0}}
stop_when: state.t.passed > 41 + size(findings)
sub_agents: [{name: t, command: [t], json: true, output_key: t}]`, "stop_when"},
		{"two things at once", `state: {lowest: 70, highest: 90, agreed: false}
stop_when: state.agreed
sub_agents:
  - {name: clerk, instructions: c, output_key: k, output_schema: {type: object, properties: {yes: {type: boolean}, price: {type: number}}, required: [yes, price]}}
  - {name: check, set: {agreed: json(state.k).yes && json(state.k).price >= state.lowest && json(state.k).price <= state.highest}}`, "stop_when"},
		{"a score of exit codes and a number", `score: {key: quality, target: 10}
sub_agents:
  - {name: vet, command: [vet], ok_exit_codes: [0, 1], result_key: vet}
  - {name: cover, command: [cover], json: true, output_key: covered}
  - {name: weigh, value: "(state.vet.exit_code == 0 ? 7.0 : 0.0) + 3.0 * math.least(1.0, state.covered / 90.0)", output_key: quality}`, "score.target"},
		{"the best of a list", `score: {key: k, field: profit}
sub_agents:
  - {name: simulate, command: [simulate], json: true, output_key: k}
  - {name: best, value: "state.k.around.filter(a, a.profit == math.greatest(state.k.around.map(b, b.profit)))[0]", output_key: found}
  - {name: decide, type: expression, exit_when: state.found.profit <= state.k.profit}`, "exit_when of decide"},
		{"what a function writes", `state: {counted: 0}
stop_when: state.counted == 5
sub_agents: [{name: count, instructions: c, tools: [{func: count_things}], can_exit_loop: false}]`, "stop_when"},
		{"a text that is short enough", `sub_agents:
  - {name: cut, instructions: c, output_key: text, can_exit_loop: false}
  - {name: count, set: {words: 'size(state.text.trim().split(" "))'}, exit_when: state.words <= 12}`, "exit_when of count"},
		{"a person's no without a reason", `state: {review: {approved: false, reason: x}}
stop_when: "!state.review.approved && state.review.reason == ''"
sub_agents: [{name: a, instructions: a, output_key: k, can_exit_loop: false}, {name: p, type: human, question: '{{k}}?', can_exit_loop: true, output_key: review}]`, "stop_when"},
		{"an approval", "sub_agents: [{name: a, instructions: a, output_key: k}, {name: p, type: human, ask: approve, question: '{{k}}?', can_exit_loop: true}]", "approval by p"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			def := parse(t, "name: l\nmax_iterations: 6\n"+tt.text)
			r := rehearse(t, def, rehearsal.Config{Faults: []rehearsal.Fault{rehearsal.NeverExits}})
			found := false
			for _, e := range r.Endings {
				found = found || e.Way == tt.ends && e.Reached && e.Iterations >= 3
			}
			if !found {
				t.Errorf("it does not end by %s: %+v", tt.ends, r.Endings)
			}
			if f := r.Findings[0]; f.Status != rehearsal.Caught {
				t.Errorf("never exits: %+v", f)
			}
		})
	}
}

// What stand-ins cannot know, a script says.
func TestScript(t *testing.T) {
	def := parse(t, `name: search
max_iterations: 5
sub_agents:
  - {name: look, command: [look], json: true, output_key: seen}
  - {name: pick, value: 'state.seen.id.split("-")[2]', output_key: found}
  - {name: done, type: expression, exit_when: state.found == "c"}
`)
	r := rehearse(t, def, rehearsal.Config{})
	open := r.Open()
	if len(open) == 0 || open[0].Status != rehearsal.Unknown || !strings.Contains(open[0].Advice, "pass them with --script: look") {
		t.Errorf("without a script: %+v", open)
	}
	script, err := scripted.Parse([]byte(`answers:
  - {agent: look, json: {id: x-y-a}}
  - {agent: look, json: {id: x-y-c}}
`))
	if err != nil {
		t.Fatal(err)
	}
	r = rehearse(t, def, rehearsal.Config{Script: &script})
	if e := r.Endings[0]; !e.Reached || e.Iterations != 2 {
		t.Errorf("with a script: %s", e)
	}
	for _, f := range r.Findings {
		if f.Status == rehearsal.Unknown {
			t.Errorf("with a script: %+v", f)
		}
	}
}

// A script for one agent leaves the stand-ins of the others as they are. Here
// the person's answers are not in the script.
func TestScriptOfOneAgent(t *testing.T) {
	def := parse(t, `name: approve
max_iterations: 4
state: {review: {approved: false, reason: ""}}
stop_when: "!state.review.approved && state.review.reason == ''"
sub_agents:
  - {name: writer, instructions: Write., output_key: draft, can_exit_loop: false}
  - {name: editor, type: human, question: "{{draft}}?", can_exit_loop: true, output_key: review}
`)
	script, err := scripted.Parse([]byte("answers: [{agent: writer, text: Your parcel is late.}]"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range rehearse(t, def, rehearsal.Config{Script: &script}).Endings {
		if !e.Reached || e.Iterations != 3 {
			t.Errorf("%s", e)
		}
	}
}

// A fault that there is not, and a context that is over, are errors.
func TestErrors(t *testing.T) {
	def := parse(t, "name: l\nsub_agents: [{name: a, set: {k: 1}}]")
	if _, err := rehearsal.Run(t.Context(), def, rehearsal.Config{Faults: []rehearsal.Fault{"rain"}}); err == nil ||
		!strings.Contains(err.Error(), `there is no fault "rain"`) {
		t.Errorf("an unknown fault: %v", err)
	}
	if _, err := rehearsal.Run(t.Context(), def, rehearsal.Config{Values: map[string]string{"nothing": "x"}}); err == nil {
		t.Error("an unknown input is no error")
	}
}
