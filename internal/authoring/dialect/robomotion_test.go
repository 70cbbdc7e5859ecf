// SPDX-License-Identifier: Apache-2.0

package dialect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/dialect"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// outcome is what came of a flow that was imported and run, in the time of a
// bubble.
type outcome struct {
	def    *definition.Definition
	report *dialect.Report
	said   []string
	answer string
	stop   string
	took   time.Duration
	err    error
}

// flow imports nodes and runs them with a scripted model.
func flow(t *testing.T, text string, answers ...scripted.Answer) outcome {
	t.Helper()
	res, err := dialect.Import("flow.yaml", []byte(text), dialect.Options{Dialect: dialect.Robomotion})
	if err != nil {
		t.Fatal(err)
	}
	out := outcome{def: res.Definition, report: res.Report, err: res.Err()}
	if out.err != nil {
		return out
	}
	llm, err := scripted.New(scripted.Script{Answers: answers, RepeatLast: true})
	if err != nil {
		t.Fatal(err)
	}
	root, err := res.Definition.Build(t.Context(), definition.BuildConfig{
		DefaultModel: "scripted/x", Model: func(context.Context, string) (model.LLM, error) { return llm, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "a", Agent: root, Durable: true, AutoCreateSession: true, SessionService: session.InMemoryService()})
	if err != nil {
		t.Fatal(err)
	}
	state, err := res.Definition.InitialState(nil)
	if err != nil {
		t.Fatal(err)
	}
	var fold progress.Fold
	began := time.Now()
	msg := genai.NewContentFromText("rows of March", genai.RoleUser)
	for ev, err := range r.Run(t.Context(), "u", "thread-7", msg, agent.RunConfig{}, runner.WithStateDelta(state)) {
		if err != nil {
			out.err = err
			break
		}
		fold.Add(ev)
		if ev.Author != "user" && ev.Content != nil && len(ev.Content.Parts) == 1 && ev.Content.Parts[0].Text != "" {
			out.said = append(out.said, ev.Author)
		}
	}
	out.took, out.answer = time.Since(began), fold.Answer()
	if stop := fold.Stop(); stop != nil {
		out.stop = string(stop.Reason)
	}
	return out
}

// loopNode is a Loop Agent with two agents, and further lines of each node.
func loopNode(loop, first, second string) string {
	return fmt.Sprintf(`type: Loop Agent
Name: work
%s
sub-agents:
  - {type: LLM Agent, Name: first, Instructions: "Do {{user_input}}", Output Key: draft, %s}
  - {type: LLM Agent, Name: second, Instructions: "Check {{draft}}.", %s}
`, loop, first, second)
}

// A14, A15, A16, A17, A18, A19, A21, A22, C1, C11, C14, C15, C16, F1, F6, F7, G1, U8, U9, U11: every option,
// default, port and error of the Loop Agent node, by running it.
func TestLoopAgentNode(t *testing.T) {
	const order = "Custom Sub-Agents Order: "
	fails := scripted.Answer{Agent: "first", Error: &scripted.Failure{Status: 400}, Repeat: true}
	slow := func(who string, d time.Duration) scripted.Answer {
		return scripted.Answer{Agent: who, Text: who, Delay: d, Repeat: true}
	}
	quick := []scripted.Answer{slow("first", 0), slow("second", 0)}
	count := func(n int) func(*testing.T, outcome) {
		return func(t *testing.T, o outcome) {
			if o.stop != "max_iterations" || len(o.said) != 2*n || o.answer != "second" || o.err != nil {
				t.Errorf("stop %q, %d times said, answer %q, %v; want %d iterations", o.stop, len(o.said), o.answer, o.err, n)
			}
		}
	}
	refused := func(texts ...string) func(*testing.T, outcome) {
		return func(t *testing.T, o outcome) {
			for _, text := range texts {
				if o.err == nil || !strings.Contains(o.err.Error(), text) {
					t.Errorf("%v; want %q", o.err, text)
				}
			}
		}
	}
	took := func(d time.Duration, stop string) func(*testing.T, outcome) {
		return func(t *testing.T, o outcome) {
			if o.took != d || o.stop != stop || o.err != nil {
				t.Errorf("it took %s and stopped by %q, want %s and %q; %v", o.took, o.stop, d, stop, o.err)
			}
		}
	}
	for _, tt := range []struct {
		option  string
		text    string
		answers []scripted.Answer
		check   func(*testing.T, outcome)
	}{
		{"Name with a space", strings.Replace(loopNode("", "", ""), "Name: work", "Name: my work", 1), quick, func(t *testing.T, o outcome) {
			if o.def.Root.Name != "my_work" || o.def.Root.Shown() != "my work" {
				t.Errorf("name %q, shown %q", o.def.Root.Name, o.def.Root.Shown())
			}
		}},
		{"Name of the agent before that of the node", strings.Replace(loopNode("", "", ""), "Name: work", "Name: Loop Agent\ninputs: {Name: inner}", 1), quick, func(t *testing.T, o outcome) {
			if o.def.Root.Name != "inner" {
				t.Errorf("name %q", o.def.Root.Name)
			}
		}},
		{"Description", loopNode("Description: Does it.", "", ""), quick, func(t *testing.T, o outcome) {
			if o.def.Description != "Does it." {
				t.Errorf("%q", o.def.Description)
			}
		}},
		{"Color", loopNode(`Color: "#C3F"`, "Color: Red", "Color: mauve"), quick, func(t *testing.T, o outcome) {
			if s := o.def.Root.SubAgents; o.def.Root.Color != "#cc33ff" || s[0].Color != "red" || s[1].Color != "" {
				t.Errorf("%q %q %q", o.def.Root.Color, s[0].Color, s[1].Color)
			}
			told(t, o, dialect.Dropped, "Color", "mauve")
		}},
		{"Session ID", loopNode(`Session ID (optional): "{{sid}}"`, "", ""), quick, func(t *testing.T, o outcome) { told(t, o, dialect.Dropped, "Session ID", "run") }},
		{"Session ID that is fixed", loopNode(`Session ID (optional): may-1`, "", ""), quick, func(t *testing.T, o outcome) {
			if o.def.Session != "may-1" {
				t.Errorf("session %q", o.def.Session)
			}
		}},
		{"Query", loopNode("Query: rows of May", "", ""), quick, func(t *testing.T, o outcome) {
			if o.def.Query != "rows of May" {
				t.Errorf("query %q", o.def.Query)
			}
		}},
		{"Query of a message is the input", loopNode("Query: {scope: Message, name: text}", "", ""),
			[]scripted.Answer{{Agent: "first", MatchRequest: "Do rows of March", Text: "first", Repeat: true}, slow("second", 0)}, count(5)},
		{"Max Iterations by default", loopNode("", "", ""), quick, count(5)},
		{"Max Iterations", loopNode("Max Iterations: 2", "", ""), quick, count(2)},
		{"Max Iterations as text", loopNode(`Max Iterations: "3"`, "", ""), quick, count(3)},
		{"Max Iterations that is none", loopNode("Max Iterations: many", "", ""), quick, refused(`Max Iterations must be a whole number, got "many"`)},
		{"Max Iterations below 0", loopNode("Max Iterations: -1", "", ""), quick, refused(`Max Iterations must be a whole number`)},
		{"Max Iterations of a message", loopNode("Max Iterations: {scope: Message, name: n}", "", ""), quick, refused(`Max Iterations comes with the flow's message, in "n"`)},
		{"Timeout by default", loopNode("Max Iterations: 0", "", ""), []scripted.Answer{slow("first", time.Minute), slow("second", time.Minute)}, took(300*time.Second, "timeout")},
		{"Timeout", loopNode("Timeout (seconds): 90\nMax Iterations: 9", "", ""), []scripted.Answer{slow("first", 40*time.Second), slow("second", 40*time.Second)}, took(90*time.Second, "timeout")},
		{"Timeout leaves a Response", loopNode("Timeout (seconds): 90", "", ""), []scripted.Answer{slow("first", 40*time.Second), slow("second", 40*time.Second)}, func(t *testing.T, o outcome) {
			if o.answer != "second" {
				t.Errorf("answer %q", o.answer)
			}
		}},
		{"Timeout that is none", loopNode("Timeout (seconds): soon", "", ""), quick, refused(`Timeout must be a number of seconds above 0, got "soon"`)},
		{"Timeout of a sub-agent", loopNode("Max Iterations: 1", "Timeout (seconds): 10", ""), []scripted.Answer{slow("first", time.Minute), slow("second", time.Second)}, func(t *testing.T, o outcome) {
			if !slices.Equal(o.said, []string{"second"}) || o.took != 11*time.Second {
				t.Errorf("%v after %s", o.said, o.took)
			}
		}},
		{"Delay Before and Delay After of a sub-agent", loopNode("Max Iterations: 2", "Delay Before (sec): 3, Delay After (sec): 0.5", ""), quick, took(7*time.Second, "max_iterations")},
		{"Delay that is none", loopNode("", "Delay Before (sec): long", ""), quick, refused(`Delay Before must be a number of seconds, got "long"`)},
		{"delays of the node itself", loopNode("Delay Before (sec): 3\nDelay After (sec): 2", "", ""), quick, took(5*time.Second, "max_iterations")},
		{"Delay of 0", loopNode("Delay Before (sec): 0\nDelay After (sec): 0", "", ""), quick, took(0, "max_iterations")},
		{"Continue On Error by default", loopNode("", "", ""), []scripted.Answer{fails, slow("second", 0)}, func(t *testing.T, o outcome) {
			if o.err == nil || !strings.Contains(o.err.Error(), `"first"`) || len(o.said) > 0 {
				t.Errorf("%v said, %v", o.said, o.err)
			}
		}},
		{"Continue On Error of the loop", loopNode("Continue On Error: true\nMax Iterations: 3", "", ""), []scripted.Answer{fails, slow("second", 0)}, func(t *testing.T, o outcome) {
			if o.err == nil || !strings.Contains(o.err.Error(), "No iteration succeeded") || o.stop != "error" || len(o.said) > 0 {
				t.Errorf("%v said, stop %q, %v", o.said, o.stop, o.err)
			}
		}},
		{"Continue On Error of a sub-agent", loopNode("Max Iterations: 3", "Continue On Error: true", ""), []scripted.Answer{fails, slow("second", 0)}, func(t *testing.T, o outcome) {
			if o.err != nil || len(o.said) != 3 || o.answer != "second" {
				t.Errorf("%v said, answer %q, %v", o.said, o.answer, o.err)
			}
		}},
		{"Continue On Error that is neither", loopNode("Continue On Error: perhaps", "", ""), quick, refused(`Continue On Error must be true or false, got "perhaps"`)},
		{"Custom Sub-Agents Order", loopNode(order+"[second, first]\nMax Iterations: 1", "", ""), quick, func(t *testing.T, o outcome) {
			if !slices.Equal(o.said, []string{"second", "first"}) {
				t.Errorf("%v", o.said)
			}
		}},
		{"Custom Sub-Agents Order as JSON", loopNode(order+`'["second", "first"]'`+"\nMax Iterations: 1", "", ""), quick, func(t *testing.T, o outcome) {
			if !slices.Equal(o.said, []string{"second", "first"}) {
				t.Errorf("%v", o.said)
			}
		}},
		{"Order left out", loopNode("", "", ""), quick, func(t *testing.T, o outcome) { told(t, o, dialect.Changed, "Custom Sub-Agents Order", "connected") }},
		{"Order with an unknown name", loopNode(order+"[first, secnd]", "", ""), quick, refused("Order name not found in agent names: secnd (did you mean second?)")},
		{"Order with a strange name", loopNode(order+"[first, other, second]", "", ""), quick, refused("Order name not found in agent names: other")},
		{"Order with a name twice", loopNode(order+"[first, first, second]", "", ""), quick, refused(`Custom Sub-Agents Order names "first" twice`)},
		{"Order without a name", loopNode(order+"[first]", "", ""), quick, refused(`Custom Sub-Agents Order leaves out "second"`, "every connected sub-agent has to be in it")},
		{"Order that is none", loopNode(order+"first", "", ""), quick, refused("Custom Sub-Agents Order must be an array of names")},
		{"no sub-agents", "type: Loop Agent\nName: work\n", nil, refused("nothing is connected to the sub-agents port")},
		{"port callbacks", loopNode("callbacks: [{type: Callback In, Name: watch}]", "", ""), quick, func(t *testing.T, o outcome) { told(t, o, dialect.Dropped, "port callbacks", "watch") }},
		{"a mistyped option", loopNode("Max Iteration: 3", "", ""), quick, refused(`unknown property "Max Iteration"`, `did you mean "max iterations"?`)},
		{"an agent ends the loop", loopNode("", "", ""), []scripted.Answer{
			{Agent: "first", Text: "done"}, {Agent: "second", Calls: []scripted.Call{{Name: "exit_loop", Args: map[string]any{"reason": "good"}}}}, slow("second", 0),
		}, func(t *testing.T, o outcome) {
			if o.stop != "exit_loop" || o.answer != "done" {
				t.Errorf("stop %q, answer %q", o.stop, o.answer)
			}
		}},
	} {
		t.Run(tt.option, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { tt.check(t, flow(t, tt.text, tt.answers...)) })
		})
	}
}

// told looks for a line of the report.
func told(t *testing.T, o outcome, kind dialect.Kind, field, words string) {
	t.Helper()
	if o.err != nil {
		t.Fatal(o.err)
	}
	if !slices.ContainsFunc(o.report.Items, func(it dialect.Item) bool {
		return it.Kind == kind && it.Field == field && strings.Contains(it.Message+it.Advice, words) && it.Line > 0
	}) {
		t.Errorf("nothing about %s (%s): %+v", field, words, o.report.Items)
	}
}

// F7: a model that is not ready after 30 seconds, in the words of the node.
func TestLoopAgentNodeInitialization(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		res, err := dialect.Import("flow.yaml", []byte(loopNode("", "", "")), dialect.Options{Dialect: dialect.Robomotion})
		if err != nil || res.Err() != nil {
			t.Fatal(err, res.Err())
		}
		hang := make(chan struct{})
		defer close(hang)
		began := time.Now()
		_, err = res.Definition.Build(t.Context(), definition.BuildConfig{DefaultModel: "scripted/x", Model: func(context.Context, string) (model.LLM, error) {
			<-hang
			return nil, errors.New("too late")
		}})
		if err == nil || !strings.HasPrefix(err.Error(), "Agent initialization timed out, cannot process message") || time.Since(began) != 30*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// Values that come with a message of the flow are inputs, or are asked for.
func TestInstructionsOfAMessage(t *testing.T) {
	res, err := dialect.Import("flow.yaml", []byte(`type: LLM Agent
Name: a
Instructions: {scope: Message, name: msg.prompt}
`), dialect.Options{Dialect: dialect.Robomotion})
	if err != nil || res.Err() != nil {
		t.Fatal(err, res.Err())
	}
	if diff := cmp.Diff("{{msg_prompt}}", res.Definition.Root.LLM.Instructions); diff != "" || len(res.Definition.Inputs) != 1 {
		t.Errorf("%s%+v", diff, res.Definition.Inputs)
	}
}
