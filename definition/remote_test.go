// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent/remoteagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
)

// analyst is an agent behind A2A that says what it thinks of what it gets.
type analyst struct {
	mu    sync.Mutex
	got   []string
	paths []string
	slow  chan struct{} // nil if it is not
}

func (a *analyst) Execute(_ context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		a.mu.Lock()
		a.got = append(a.got, fmt.Sprint(x.Message.Parts[0].Text(), x.Message.Parts[0].Data()))
		n := len(a.got)
		a.mu.Unlock()
		if !yield(a2a.NewSubmittedTask(x, x.Message), nil) {
			return
		}
		if a.slow != nil {
			<-a.slow
		}
		if yield(a2a.NewArtifactEvent(x, a2a.NewTextPart(fmt.Sprintf("%d of 10", 6+n))), nil) {
			yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCompleted, nil), nil)
		}
	}
}

func (a *analyst) Cancel(_ context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCanceled, nil), nil)
	}
}

func (a *analyst) serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	card := &a2a.AgentCard{
		Name: "analyst", Capabilities: a2a.AgentCapabilities{Streaming: true},
		SupportedInterfaces: []*a2a.AgentInterface{a2a.NewAgentInterface(s.URL+"/invoke", a2a.TransportProtocolJSONRPC)},
	}
	mux.Handle("/invoke", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(a, a2asrv.WithLogger(slog.New(slog.DiscardHandler)))))
	mux.HandleFunc("/{team}"+a2asrv.WellKnownAgentCardPath, func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.paths = append(a.paths, r.PathValue("team"))
		a.mu.Unlock()
		a2asrv.NewStaticAgentCardHandler(card).ServeHTTP(w, r)
	})
	t.Cleanup(func() {
		if a.slow != nil {
			close(a.slow)
		}
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// A26, A27, C29, D2, D4: a loop with an agent behind A2A, in the seed's own form,
// whose payload and endpoint are filled in, and whose answer others read.
func TestLoopWithAnAgentElsewhere(t *testing.T) {
	a := &analyst{}
	d := parse(t, fmt.Sprintf(`{"name": "refine", "max_iterations": 5, "inputs": {"team": "red team", "dados_entrada": "Once"},
		"stop_when": "state.note == 'Once+++'",
		"sub_agents": [
			{"name": "writer", "set": {"dados_entrada": "state.dados_entrada + '+'"}},
			{"name": "externo", "type": "a2a", "endpoint": %q, "payload": {"data": "{{dados_entrada}}"}, "config": {"output_key": "resposta_externa"}},
			{"name": "keep", "set": {"note": "state.dados_entrada"}},
			{"name": "report", "text": "{{dados_entrada}}: {{resposta_externa}}", "output_key": "loop_output"}]}`, a.serve(t)+"/{{team}}"))
	stop, answer := stopOf(t, d, definition.BuildConfig{}, nil)
	if answer != "Once+++: 9 of 10" || stop.Reason != loop.ReasonCondition {
		t.Errorf("%q, %v", answer, stop)
	}
	if diff := cmp.Diff([]string{"map[data:Once+]", "map[data:Once++]", "map[data:Once+++]"}, a.got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"red team", "red team", "red team"}, a.paths); diff != "" {
		t.Error(diff)
	}
	if x := d.Root.SubAgents[1].A2A; x.NewContext || x.Headers != nil || x.SizeLimit != 0 {
		t.Errorf("%+v", x)
	}
}

// F4, F5: an agent elsewhere that takes too long is left, and the loop goes on.
func TestAgentElsewhereOutOfTime(t *testing.T) {
	a := &analyst{slow: make(chan struct{})}
	d := parse(t, fmt.Sprintf(`name: refine
max_iterations: 1
sub_agents:
  - {name: far, type: a2a, endpoint: %q, payload: hi, timeout: 300ms, output_key: said}
  - {name: report, text: "then: {{said}}"}
`, a.serve(t)+"/x"))
	stop, answer := stopOf(t, d, definition.BuildConfig{}, nil)
	if answer != "then: " || stop.Timeouts != 1 {
		t.Errorf("%q, %v", answer, stop)
	}
}

// T9: what is wrong with an agent elsewhere has its place, and nobody is asked.
func TestAgentElsewhereIsChecked(t *testing.T) {
	for text, want := range map[string]string{
		`{name: a, type: a2a}`:                                                           "x.yaml:1:1: error: an a2a agent needs endpoint [LOOP006]",
		`{name: a, endpoint: "agents.example.org"}`:                                      `x.yaml:1:21: error: endpoint: "agents.example.org" does not begin with http:// or https:// [LOOP040]`,
		`{name: a, endpoint: "https://{{user_input}}.org/x"}`:                            "a value cannot choose the server [LOOP040]",
		`{name: a, endpoint: "https://x/{{who}}"}`:                                       `{{who}} is read here but no agent writes it`,
		`{name: a, endpoint: "https://x", payload: {n: ["{{user_inptu}}"]}}`:             `x.yaml:1:49: error: {{user_inptu}} is read here`,
		`{name: a, endpoint: "https://x", payload: "{{user_input"}`:                      "is not closed by }} [LOOP031]",
		`{name: a, endpoint: "https://x", headers: {"a b": x}}`:                          `x.yaml:1:51: error: headers.a b: not a name of a header [LOOP040]`,
		`{name: a, endpoint: "https://x", url: "https://x"}`:                             `"endpoint" is a field of a2a agents; this is an http agent [LOOP003]`,
		`{name: a, endpoint: "https://x", timeout: 3s}`:                                  "timeout is for steps of a loop",
		`{name: a, endpoint: "https://x", size_limit: lots}`:                             "size_limit must be a size such as",
		`{name: l, sub_agents: [{name: a, endpoint: "https://x", cache: true}]}`:         `"a" may remember earlier requests; give it a payload and new_context: true`,
		`{name: l, sub_agents: [{name: a, endpoint: "https://x", can_exit_loop: true}]}`: `"a" never asks to end the loop`,
	} {
		d, err := definition.Parse("x.yaml", []byte(text), definition.Options{})
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprint(d.Warnings())
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got\n%s\nwant %s", text, got, want)
		}
	}
	d := parse(t, `{name: l, max_iterations: 2, sub_agents: [{name: a, endpoint: "https://x", payload: "{{user_input}}", new_context: true, cache: true, size_limit: 1KB, headers: {X-K: "{{iteration}}"}}]}`)
	root, err := d.Build(t.Context(), definition.BuildConfig{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := root.FindAgent("a").(*remoteagent.A2AAgent).Config()
	if !cfg.NewContext || cfg.SizeLimit != 1000 || cfg.Headers["X-K"] != "{{iteration}}" || cfg.Payload != "{{user_input}}" {
		t.Errorf("%+v", cfg)
	}
}
