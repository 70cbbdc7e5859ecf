// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/process/hook"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/session"
)

// listener is a Go function that is told.
type listener struct {
	mu   sync.Mutex
	told []hook.Event
	says func(hook.Event) error
}

func (l *listener) hear(_ context.Context, ev hook.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, ev)
	if l.says != nil {
		return l.says(ev)
	}
	return nil
}

func (l *listener) config() definition.BuildConfig {
	return definition.BuildConfig{Callbacks: map[string]hook.Func{"hear": l.hear}}
}

// ids are those of all that was told, without what is the run's.
func (l *listener) ids() []string {
	var ids []string
	for _, ev := range l.told {
		ids = append(ids, strings.Replace(ev.ID, ev.ID[len("call-"):len("call-")+26], "", 1)+" "+ev.Data.Address)
	}
	return ids
}

// hearing is the callbacks of all points but some.
func hearing(but ...hook.Point) string {
	var all []string
	for _, p := range hook.Points() {
		if !slices.Contains(but, p) {
			all = append(all, string(p)+": [{func: hear}]")
		}
	}
	return "callbacks: {" + strings.Join(all, ", ") + "}\n"
}

const searching = `name: search
max_iterations: 2
score: {key: mark}
CALLBACKSsub_agents:
  - name: ask
    instructions: Look it up.
    tools:
      - agent: {name: look, description: Looks it up., text: found}
    output_key: answer
  - name: mark
    value: "5 + iteration"
    output_key: mark
    callbacks: {before_agent: [{func: hear}], after_agent: [{func: hear}]}
`

func opens(t *testing.T, answers ...scripted.Answer) func(context.Context, string) (model.LLM, error) {
	return func(context.Context, string) (model.LLM, error) {
		llm, err := scripted.New(scripted.Script{Answers: answers, RepeatLast: true})
		if err != nil {
			t.Error(err)
		}
		return llm, err
	}
}

// E7, U8: whoever monitors a run is told each iteration, agent, model call and tool
// call, before and after, with the score.
func TestCallbacksTellARun(t *testing.T) {
	l := new(listener)
	cfg, thought := l.config(), &scripted.Usage{Prompt: 10, Output: 4, Thoughts: 3}
	cfg.DefaultModel, cfg.Model = "m", opens(t,
		scripted.Answer{Calls: []scripted.Call{{ID: "c1", Name: "look", Args: map[string]any{"request": "cats"}}}, Usage: thought},
		scripted.Answer{Text: "cats", Usage: thought})
	h := newHouse(t, strings.Replace(searching, "CALLBACKS", hearing(), 1), cfg)
	if err := h.run(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"call--before_run search", "call--before_agent search",
		"call--before_iteration-1 search",
		"call--before_model-1 search[1]/ask", "call--after_model-1 search[1]/ask", "call--before_tool search[1]/ask", "call--after_tool search[1]/ask",
		"call--before_model-2 search[1]/ask", "call--after_model-2 search[1]/ask",
		"call--before_agent search[1]/mark", "call--after_agent search[1]/mark",
		"call--after_iteration-1 search", "call--before_iteration-2 search",
		"call--before_model-1 search[2]/ask", "call--after_model-1 search[2]/ask",
		"call--before_agent search[2]/mark", "call--after_agent search[2]/mark",
		"call--after_iteration-2 search", "call--after_agent search", "call--after_run search",
	}
	if diff := cmp.Diff(want, l.ids()); diff != "" {
		t.Error(diff)
	}
	for _, ev := range l.told {
		d := ev.Data
		switch {
		case d.Run != h.id || d.Session != "s1" || d.App != "app" || strings.Contains(ev.ID, "."):
			t.Errorf("%+v", ev)
		case ev.Type == hook.BeforeTool && (d.Tool.Name != "look" || d.Tool.CallID != "c1" || d.Tool.Args["request"] != "cats"):
			t.Errorf("%+v", d.Tool)
		case ev.Type == hook.AfterModel && (d.Model.Name != "scripted" || d.Model.InputTokens != 10 || d.Model.OutputTokens != 7):
			t.Errorf("%+v", d.Model)
		case ev.Type == hook.AfterRun && d.Stop != "max_iterations":
			t.Errorf("it stopped because of %q", d.Stop)
		case ev.ID == l.told[17].ID && (*d.Score != 7 || *d.Improvement != 1 || d.Iteration != 2 || d.MaxIterations != 2):
			t.Errorf("%+v", d)
		}
	}
}

// E7: a veto stops the run, the iteration, the agent or the tool call, and says who
// and why.
func TestCallbackVeto(t *testing.T) {
	for _, tt := range []struct {
		at    string // what is vetoed: the end of an event's ID
		says  string // in the error
		stage string // the last that was told
	}{
		{"-before_run", "(search): before agent callback: function hear vetoes the run: enough", "before_run"},
		{"-before_agent search", "(search): before agent callback: function hear vetoes the agent: enough", "before_agent"},
		{"-before_iteration-2", "(search): iteration callback: function hear vetoes the iteration: enough", "before_iteration"},
		{"-before_model-1", "(search[1]/ask): before model callback: function hear vetoes the model call: enough", "before_model"},
		{"-before_agent search[1]/mark", "(search[1]/mark): before agent callback: function hear vetoes the agent: enough", "before_agent"},
		{"-before_tool", "", "after_run"},
	} {
		l := new(listener)
		l.says = func(ev hook.Event) error {
			if strings.Contains(ev.ID+" "+ev.Data.Address+" ", tt.at+" ") {
				return &hook.VetoError{Reason: "enough"}
			}
			return nil
		}
		cfg := l.config()
		cfg.DefaultModel, cfg.Model = "m", opens(t,
			scripted.Answer{Calls: []scripted.Call{{ID: "c1", Name: "look", Args: map[string]any{"request": "cats"}}}}, scripted.Answer{Text: "no cats"})
		h := newHouse(t, strings.Replace(searching, "CALLBACKS", hearing(hook.AfterModel), 1), cfg)
		err := h.run()
		if (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got error %v", tt.at, err)
		}
		veto, ok := errors.AsType[*hook.VetoError](err)
		if err != nil && (!ok || veto.By != "function hear") {
			t.Errorf("%s: got error %#v", tt.at, err)
		}
		last := l.told[len(l.told)-1]
		if strings.Contains(tt.at, "iteration-2") || strings.Contains(tt.at, "mark") || strings.Contains(tt.at, "model") {
			// The root is a loop that failed, which whoever is told the end of the run hears.
			if last.Type != hook.AfterRun || !strings.Contains(last.Data.Error, "enough") || last.Data.Stop != "error" {
				t.Errorf("%s: the end was told as %+v", tt.at, last)
			}
			last = l.told[len(l.told)-2]
		}
		if string(last.Type) != tt.stage {
			t.Errorf("%s: the last that was told is %s", tt.at, last.ID)
		}
		if tt.says == "" && !strings.Contains(fmt.Sprint(h.events[indexOf(h.events, "c1")].Content.Parts[0].FunctionResponse.Response),
			"vetoes the tool call: enough") {
			t.Error("the model is not told of the veto")
		}
	}
}

// indexOf is the event with the answer to a call.
func indexOf(events []*session.Event, id string) int {
	return slices.IndexFunc(events, func(ev *session.Event) bool {
		return ev.Content != nil && len(ev.Content.Parts) > 0 && ev.Content.Parts[0].FunctionResponse != nil && ev.Content.Parts[0].FunctionResponse.ID == id
	})
}

// A loop treats a veto like any other failure of its step, but for trying again.
func TestVetoedStepIsSkipped(t *testing.T) {
	l := &listener{says: func(ev hook.Event) error {
		if ev.Data.Iteration == 1 {
			return &hook.VetoError{Reason: "not yet"}
		}
		return nil
	}}
	h := newHouse(t, `name: x
max_iterations: 2
on_error: skip_step
sub_agents:
  - {name: a, set: {n: iteration}, retry: 3, callbacks: {before_agent: [{func: hear}]}}
`, l.config())
	if err := h.run(); err != nil || h.state("n") != int64(2) && fmt.Sprint(h.state("n")) != "2" || len(l.told) != 2 {
		t.Errorf("got %v, n is %v, told %q", err, h.state("n"), l.ids())
	}
}

// E7, U8: a resumed run tells nothing again that it answers from its log: whatever
// is told twice is what the process died at, and has the same ID.
func TestResumedRunTellsNothingAgain(t *testing.T) {
	text := strings.Replace(`name: outer
max_iterations: 2
CALLBACKSsub_agents:
  - name: line
    type: sequential
    output_key: said
    callbacks: {before_agent: [{func: hear}], after_agent: [{func: hear}]}
    sub_agents:
      - {name: one, text: "{{iteration}}", callbacks: {before_agent: [{func: hear}], after_agent: [{func: hear}]}}
      - name: inner
        max_iterations: 2
        callbacks: {before_iteration: [{func: hear}], after_iteration: [{func: hear}], after_agent: [{func: hear}]}
        sub_agents: [{name: two, set: {n: iteration}}]
  - name: ask
    instructions: Ask.
  - {name: both, type: parallel, callbacks: {before_agent: [{func: hear}], after_agent: [{func: hear}]}, sub_agents: [{name: three, text: a}]}
`, "CALLBACKS", hearing(), 1)
	whole := new(listener)
	start := func(l *listener) *house {
		cfg := l.config()
		cfg.DefaultModel, cfg.Model = "m", opens(t, scripted.Answer{Text: "yes"})
		return newHouse(t, text, cfg)
	}
	h := start(whole)
	if err := h.run(); err != nil {
		t.Fatal(err)
	}
	total, twice := len(h.events), 0
	for n := range total - 1 {
		first, second := new(listener), new(listener)
		h := start(first)
		left := n
		h.after = func(*session.Event) bool { left--; return left < 0 }
		if err := h.run(); err != errDied {
			t.Fatalf("it did not die: %v", err)
		}
		h.after, h.cfg = nil, start(second).cfg
		if err := h.run(); err != nil {
			t.Fatalf("after event %d: %v", n, err)
		}
		var again []string
		all := ids(first.told)
		for _, id := range ids(second.told) {
			if slices.Contains(all, id) {
				again = append(again, id)
			} else {
				all = append(all, id)
			}
		}
		twice += len(again)
		last := ids(first.told)[len(first.told)-min(len(first.told), len(again)):]
		if len(again) > 3 || !slices.Equal(last, again) {
			t.Errorf("after event %d of %d the first process told last %q, and the second tells again\n%q", n, total, last, again)
		}
		if len(all) != len(whole.told) {
			t.Errorf("after event %d: %d things were told, of %d", n, len(all), len(whole.told))
		}
	}
	t.Logf("%d places to die at, %d repetitions, of %d that are told", total-1, twice, len(whole.told))
	if twice > 2*total {
		t.Errorf("%d repetitions in %d runs", twice, total)
	}
}

func ids(events []hook.Event) []string {
	var all []string
	for _, ev := range events {
		all = append(all, ev.ID+" "+ev.Data.Address)
	}
	return all
}

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// E7, U8: a file has a webhook told, which signs with a secret of the environment
// and can veto; one that only watches and is out of order changes nothing.
func TestWebhooksInAFile(t *testing.T) {
	wh, err := standardwebhooks.NewWebhook(hookSecret)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var told []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var ev hook.Event
		if err := errors.Join(wh.Verify(body, r.Header), json.Unmarshal(body, &ev)); err != nil || ev.ID != r.Header.Get("webhook-id") {
			t.Errorf("%s: %v", body, err)
		}
		mu.Lock()
		defer mu.Unlock()
		told = append(told, string(ev.Type))
		switch {
		case ev.Type == hook.AfterIteration:
			w.WriteHeader(http.StatusBadRequest)
		case ev.Type == hook.BeforeIteration && ev.Data.Iteration == 2:
			io.WriteString(w, `{"veto": true, "reason": "one is enough"}`)
		}
	}))
	defer server.Close()
	var failed []string
	cfg := definition.BuildConfig{
		Getenv:         func(name string) string { return map[string]string{"HOOK_SECRET": hookSecret}[name] },
		CallbackFailed: func(err error) { failed = append(failed, err.Error()) },
	}
	h := newHouse(t, strings.ReplaceAll(`name: watched
max_iterations: 3
callbacks:
  before_iteration: [{webhook: URL/gate, secret_env: HOOK_SECRET, veto: true, timeout: 5s}]
  after_iteration: [{webhook: "URL/watch?key=hidden", secret_env: HOOK_SECRET}]
sub_agents: [{name: a, text: a}]
`, "URL", server.URL), cfg)
	err = h.run()
	if err == nil || !strings.Contains(err.Error(), "webhook "+server.URL+"/… vetoes the iteration: one is enough") {
		t.Errorf("got error %v", err)
	}
	if diff := cmp.Diff([]string{"before_iteration", "after_iteration", "before_iteration"}, told[:3]); diff != "" {
		t.Error(diff)
	}
	if len(failed) == 0 || failed[0] != "after_iteration of webhook "+server.URL+"/…: it answered 400 Bad Request" {
		t.Errorf("failed: %q", failed)
	}
}

// E7: a file has a command told, in the run's root.
func TestCommandsAreTold(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no sh")
	}
	root := t.TempDir()
	h := newHouse(t, `name: watched
max_iterations: 1
callbacks:
  before_run: [{command: [sh, -c, "cat >> told.jsonl"]}]
  after_run: [{command: [sh, -c, "cat >> told.jsonl"]}]
sub_agents:
  - name: a
    text: a
    callbacks: {before_agent: [{command: [sh, -c, "echo not today >&2; exit 1"], veto: true}]}
    on_error: skip_step
  - {name: b, text: b}
`, definition.BuildConfig{Root: root})
	if err := h.run(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, "told.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for line := range strings.Lines(string(data)) {
		var ev hook.Event
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		types = append(types, string(ev.Type))
	}
	if diff := cmp.Diff([]string{"before_run", "after_run"}, types); diff != "" {
		t.Error(diff)
	}
	vetoed := false
	for _, ev := range h.events {
		vetoed = vetoed || ev.Mark != nil && strings.Contains(string(ev.Mark.Data), "command sh vetoes the agent: not today")
	}
	if !vetoed {
		t.Error("the log does not say that the step was vetoed")
	}
}

// A command and a callback get no key of a model and no secret of a webhook of the file, unless they
// name it.
func TestInherit(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no sh")
	}
	t.Setenv("OPENAI_API_KEY", "b")
	t.Setenv("WATCH_SECRET", hookSecret)
	root := t.TempDir()
	const say = `[sh, -c, 'echo "${OPENAI_API_KEY:+key} ${WATCH_SECRET:+secret}" >> got']`
	h := newHouse(t, strings.ReplaceAll(`name: watched
max_iterations: 1
callbacks:
  before_run: [{command: SAY}, {command: SAY, inherit: [WATCH_SECRET]}]
  before_iteration: [{webhook: "http://127.0.0.1:1/", secret_env: WATCH_SECRET}]
sub_agents:
  - {name: a, command: SAY}
  - {name: b, command: SAY, inherit: [OPENAI_API_KEY, WATCH_SECRET]}
  - {name: c, command: SAY, inherit: [OPENAI_API_KEY], clean_env: true}
`, "SAY", say), definition.BuildConfig{Root: root, CallbackFailed: func(error) {}})
	if err := h.run(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(root, "got"))
	if diff := cmp.Diff(" \n secret\n \nkey secret\nkey \n", string(data)); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// What callbacks and Go agents need and is not there is told at once, with its
// place, and without secrets.
func TestBuildTellsWhatIsMissing(t *testing.T) {
	d := parse(t, `name: x
callbacks:
  before_run:
    - {webhook: "https://example.org/", secret_env: NOT_SET}
    - {webhook: "https://example.org/", secret_env: NO_SECRET}
  after_run: [{func: heer}]
sub_agents:
  - {name: a, func: reviwer}
  - {name: b, text: b, callbacks: {after_agent: [{func: other}]}}
`)
	cfg := new(listener).config()
	cfg.Agents = map[string]definition.NewAgent{"reviewer": reviewer}
	cfg.Getenv = func(name string) string { return map[string]string{"NO_SECRET": "no base64: hidden"}[name] }
	_, err := d.Build(t.Context(), cfg)
	problems, ok := errors.AsType[definition.Problems](err)
	if !ok {
		t.Fatalf("got error %v", err)
	}
	var b strings.Builder
	problems.Format(&b)
	const want = `x.yaml:4:7: error: the webhook is signed with NOT_SET, which is not set [LOOP048]
    4 |     - {webhook: "https://example.org/", secret_env: NOT_SET}
      |       ^ set NOT_SET in the environment
x.yaml:5:7: error: NO_SECRET: the secret must be base64, with or without the prefix whsec_, as in Standard Webhooks [LOOP048]
    5 |     - {webhook: "https://example.org/", secret_env: NO_SECRET}
      |       ^
x.yaml:6:15: error: there is no callback function "heer" [LOOP048]
    6 |   after_run: [{func: heer}]
      |               ^ did you mean "hear"?
x.yaml:8:21: error: there is no Go agent "reviwer" [LOOP040]
    8 |   - {name: a, func: reviwer}
      |                     ^^^^^^^ did you mean "reviewer"?
x.yaml:9:50: error: there is no callback function "other" [LOOP048]
    9 |   - {name: b, text: b, callbacks: {after_agent: [{func: other}]}}
      |                                                  ^ the functions are hear
5 errors
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
	cfg.StandIns.NoCallbacks = true
	if _, err := d.Build(t.Context(), cfg); err == nil || strings.Contains(err.Error(), definition.CodeCallback) {
		t.Errorf("callbacks that are left out: %v", err)
	}
	if _, err := d.Build(t.Context(), definition.BuildConfig{}); !strings.Contains(err.Error(), "no Go agent") {
		t.Errorf("got error %v", err)
	}
}
