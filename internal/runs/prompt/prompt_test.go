// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// recorder is a model that answers by a function, and takes down what it was really sent, by address.
type recorder struct {
	answer func(agent string, n int) *model.LLMResponse
	mu     sync.Mutex
	sent   map[session.Address][]*Request
	count  map[string]int
}

func (*recorder) Name() string { return "recorder" }

func (m *recorder) GenerateContent(ctx context.Context, req *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		at := drive.At(ctx.(agent.InvocationContext)).Address()
		got, err := Take(req)
		if err != nil {
			yield(nil, err)
			return
		}
		m.mu.Lock()
		m.count[at.Agent()]++
		resp := m.answer(at.Agent(), m.count[at.Agent()])
		if resp != nil {
			m.sent[at] = append(m.sent[at], got)
		}
		m.mu.Unlock()
		if resp == nil {
			yield(nil, &model.APIError{Provider: "recorder", Status: 503, Message: "busy", Retryable: true})
			return
		}
		yield(resp, nil)
	}
}

func says(text string) *model.LLMResponse {
	return &model.LLMResponse{Content: genai.NewContentFromText(text, genai.RoleModel), ModelVersion: "recorder"}
}

func calls(name string, args map[string]any) *model.LLMResponse {
	return &model.LLMResponse{ModelVersion: "recorder", Content: genai.NewContentFromFunctionCall(name, args, genai.RoleModel)}
}

// play runs a definition and returns its log, and what its models were sent.
func play(t *testing.T, text string, answer func(string, int) *model.LLMResponse, more ...string) (log, fork *runlog.Run, sent map[session.Address][]*Request) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "loop.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &program.Program{Dir: dir, Root: dir, DefaultModel: "none/recorder"}
	def, err := p.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	m := &recorder{answer: answer, sent: map[session.Address][]*Request{}, count: map[string]int{}}
	svc := session.InMemoryService()
	sup, err := supervisor.New(supervisor.Config{Service: svc, AppName: "app", UserID: "ana",
		Build: func(ctx context.Context, _ mark.RunStarted) (*supervisor.Program, error) {
			cfg := p.BuildConfig()
			cfg.Model = func(context.Context, string) (model.LLM, error) { return m, nil }
			root, err := def.Build(ctx, cfg)
			return &supervisor.Program{Agent: root, RunConfig: def.RunConfig(p.Limits)}, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	started, err := p.Started(def)
	if err != nil {
		t.Fatal(err)
	}
	state, err := def.InitialState(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, message := range append([]string{"a landing page"}, more...) {
		_, err := sup.Start(t.Context(), supervisor.Request{SessionID: "r_1", Started: started, State: state,
			Message: genai.NewContentFromText(message, genai.RoleUser)})
		if err != nil {
			t.Fatal(err)
		}
		if end, err := sup.Wait(t.Context(), "r_1"); err != nil || end.Status != mark.RunCompleted {
			t.Fatalf("%+v, %v", end, err)
		}
	}
	other, err := sup.Fork(t.Context(), "r_1", supervisor.Checkpoint{Iteration: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := sup.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	read := func(id string) *runlog.Run {
		log, err := runlog.Read(t.Context(), svc, lease.Key{AppName: "app", UserID: "ana", SessionID: id})
		if err != nil {
			t.Fatal(err)
		}
		return log
	}
	return read("r_1"), read(other), m.sent
}

// What is rebuilt is what the model was really sent: in each iteration, sample and turn, with tools,
// schemas, undone iterations, inner loops, branches, commands in between and requests sent again.
func TestRebuiltIsWhatWasSent(t *testing.T) {
	for name, text := range map[string]string{
		"refine": `name: refine
goal: A text that says what was asked for
max_iterations: 4
score: {key: review, judge: {step: judge, samples: 2}}
on_regression: rollback
sub_agents:
  - {name: writer, instructions: "Improve {{draft?}} by {{feedback?}}. {{#rejected.reason}}Undone: {{rejected.reason}}{{/rejected.reason}}", output_key: draft}
  - {name: length, command: [sh, -c, "echo $RANDOM$$"], output_key: length}
  - {name: judge, instructions: "Score {{draft}} of {{length}}", output_key: review}
  - name: critic
    instructions: "Say what to mend in {{draft}} ({{review}})"
    output_key: feedback
    tools: [exit_loop]
  - name: editor
    instructions: "Finish {{draft}}"
    output_key: loop_output
`,
		"nested": `name: outer
max_iterations: 2
sub_agents:
  - name: inner
    max_iterations: 2
    sub_agents:
      - {name: writer, instructions: "Go on {{draft?}}", output_key: draft, context: {last: 1}, temperature: 0.3}
  - name: both
    type: parallel
    sub_agents:
      - {name: left, instructions: "Left of {{draft}}", output_key: l}
      - {name: right, instructions: "Right of {{draft}}", output_key: r, context: none}
  - name: shaped
    instructions: "As JSON"
    output_key: shape
    output_schema: {type: object, properties: {n: {type: integer}}, required: [n]}
`,
	} {
		t.Run(name, func(t *testing.T) {
			scores := []string{"5", "5.2", "7", "7.2", "3", "3.1", "8", "8.1"}
			log, fork, sent := play(t, text, func(agent string, n int) *model.LLMResponse {
				switch {
				case agent == "judge":
					return says("Score: " + scores[(n-1)%len(scores)])
				case agent == "writer" && n == 2:
					return nil // sent again
				case agent == "critic" && n == 4:
					return calls("exit_loop", map[string]any{"reason": "good"})
				case agent == "shaped" && n == 1:
					return says(`{"n": "many"}`)
				case agent == "shaped":
					return says(`{"n": 3}`)
				}
				return says(fmt.Sprintf("words of %s, %d", agent, n))
			})
			if len(sent) < 8 {
				t.Fatalf("%d steps have asked a model", len(sent))
			}
			forked := 0
			for at, want := range sent {
				for i, w := range want {
					got, err := Of(t.Context(), program.Code{}, log, at, i+1)
					if err != nil {
						t.Fatalf("%s, request %d: %v", at, i+1, err)
					}
					w.Number, w.Count = i+1, len(want)
					if diff := cmp.Diff(w, got); diff != "" {
						t.Errorf("%s, request %d (-sent +rebuilt):\n%s", at, i+1, diff)
					}
				}
				waiting := with(log, log.Log()[:promptsBefore(log.Log(), at)[0]]) // as it was before the first answer
				first, err := Of(t.Context(), program.Code{}, waiting, at, 0)
				if err != nil || first.System != want[0].System || first.Number != 1 {
					t.Errorf("%s, without an answer: %+v, %v", at, first, err)
				}
				if len(promptsBefore(fork.Log(), at)) > 0 { // a fork has the same events
					copied, err := Of(t.Context(), program.Code{}, fork, at, 1)
					if err != nil || copied.System != want[0].System {
						t.Errorf("%s, of a fork: %+v, %v", at, copied, err)
					}
					forked++
				}
				last, err := Of(t.Context(), program.Code{}, log, at, 0)
				if err != nil || last.Number != len(want) {
					t.Errorf("%s: the last one: %+v, %v", at, last, err)
				}
			}
			if forked == 0 {
				t.Error("the fork has no requests")
			}
		})
	}
}

// with is a run whose log has other events, as that of a file has.
func with(run *runlog.Run, events []*session.Event) *runlog.Run {
	return &runlog.Run{ID: run.ID, FileEvents: events, Wholes: run.Wholes, Initial: run.Initial}
}

// Of a conversation of two runs, the requests are those of the last one.
func TestRequestsOfAConversation(t *testing.T) {
	text := "name: x\nmax_iterations: 1\nsub_agents:\n  - {name: chat, instructions: Talk, output_key: said}\n"
	log, _, sent := play(t, text, func(_ string, n int) *model.LLMResponse { return says(fmt.Sprint("words ", n)) }, "and then")
	want := sent["x[1]/chat"]
	if len(want) != 2 {
		t.Fatalf("%d requests were sent", len(want))
	}
	got, err := Of(t.Context(), program.Code{}, log, "x[1]/chat", 0)
	if err != nil {
		t.Fatal(err)
	}
	want[1].Number, want[1].Count = 1, 1
	if diff := cmp.Diff(want[1], got); diff != "" {
		t.Errorf("(-sent +rebuilt):\n%s", diff)
	}
}

// What a step has sent in vain is rebuilt too.
func TestRequestOfAStepThatFailed(t *testing.T) {
	text := `name: x
max_iterations: 1
sub_agents:
  - {name: a, instructions: "First", output_key: a}
  - {name: b, instructions: "Then {{a}}", output_key: b, on_error: skip_step, request_retry: 1}
`
	log, _, _ := play(t, text, func(agent string, _ int) *model.LLMResponse {
		if agent == "b" {
			return nil
		}
		return says("words")
	})
	got, err := Of(t.Context(), program.Code{}, log, "x[1]/b", 0)
	if err != nil || got.Count != 1 || !strings.HasPrefix(got.System, "Then words") {
		t.Errorf("%+v, %v", got, err)
	}
}

// A step that asks no model has no request, and what cannot be known is said.
func TestWhatCannotBeRebuilt(t *testing.T) {
	text := `name: x
max_iterations: 1
sub_agents:
  - {name: c, set: {n: "1"}}
  - {name: sh, command: [echo, hello], output_key: h}
  - {name: w, instructions: "Go on", output_key: out}
`
	log, _, _ := play(t, text, func(string, int) *model.LLMResponse { return says("words") })
	for _, at := range []session.Address{"x[1]/c", "x[1]/sh", "x[2]/w", "x"} {
		if _, err := Of(t.Context(), program.Code{}, log, at, 0); !errors.Is(err, ErrNotAsked) {
			t.Errorf("%s: %v", at, err)
		}
	}
	if _, err := Of(t.Context(), program.Code{}, log, "x[1]/w", 2); !errors.Is(err, ErrNotAsked) {
		t.Errorf("a second request: %v", err)
	}
	gone := with(log, slices.DeleteFunc(slices.Clone(log.Log()), func(ev *session.Event) bool {
		return ev.Mark != nil && ev.Mark.Kind == mark.KindRunStarted
	}))
	var not *NotRebuiltError
	if _, err := Of(t.Context(), program.Code{}, gone, "x[1]/w", 0); !errors.As(err, &not) {
		t.Errorf("without the definition: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Of(ctx, program.Code{}, log, "x[1]/w", 0); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
