// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/telemetry"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/functiontool"
	"github.com/refrain-dev/refrain/tool/mcptoolset"
)

// Whoever a run asks over HTTP or MCP or starts as a program learns in which span that is, and so does
// the code of a tool. The run itself belongs to the trace of the request that started it.
func TestTraceAcrossProcesses(t *testing.T) {
	heard := make(chan string, 4)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		heard <- r.Header.Get("Traceparent")
	}))
	defer srv.Close()
	var meta mcp.Meta
	far := mcp.NewServer(&mcp.Implementation{Name: "far", Version: "1"}, nil)
	mcp.AddTool(far, &mcp.Tool{Name: "look", Description: "Looks."},
		func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, struct{}, error) {
			meta = req.Params.Meta
			return nil, struct{}{}, nil
		})
	ours, theirs := mcp.NewInMemoryTransports()
	if _, err := far.Connect(t.Context(), theirs, nil); err != nil {
		t.Fatal(err)
	}
	set, err := mcptoolset.New(mcptoolset.Config{Name: "server", Transport: ours})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	l := newLab(t, telemetry.Config{})
	var logged bytes.Buffer
	log := slog.New(telemetry.LogHandler(slog.NewTextHandler(&logged, nil)))
	near := must(functiontool.New(functiontool.Config{Name: "near", Description: "Near."},
		func(ctx tool.Context, _ struct{}) (string, error) {
			_, span := l.traces.Tracer("mine").Start(ctx, "my own")
			span.End()
			log.With("a", 1).InfoContext(ctx, "in the tool")
			return "", nil
		}))
	w := world{tools: []tool.Tool{near}, sets: []tool.Toolset{set}, text: `
name: far
type: sequential
model: openai/some
sub_agents:
  - {name: fetch, url: "` + srv.URL + `"}
  - {name: shell, command: [sh, -c, "echo $TRACEPARENT"], output_key: said}
  - {name: asks, tools: [near, server], instructions: Look.}
`, script: scripted.Script{Answers: []scripted.Answer{{Calls: []scripted.Call{{Name: "look"}, {Name: "near"}}}, {Text: "Done."}}}}
	store := session.InMemoryService()
	sup := w.supervise(t, store, l)
	const trace, caller = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	req := httptest.NewRequest(http.MethodPost, "/", nil)
	req.Header.Set("Traceparent", "00-"+trace+"-"+caller+"-01")
	l.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		run, err := sup.Start(r.Context(), request())
		if err != nil {
			t.Error(err)
			return
		}
		if end := wait(t, run); end.Err != nil {
			t.Error(end.Err)
		}
		got, err := store.Get(t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: run.ID()})
		if err != nil {
			t.Error(err)
			return
		}
		said, _ := got.Session.State().Get("said")
		heard <- said.(string)
	})).ServeHTTP(httptest.NewRecorder(), req)

	for _, s := range l.spans.GetSpans() {
		if s.SpanContext.TraceID().String() != trace {
			t.Errorf("%s is of another trace", s.Name)
		}
	}
	if got := l.named(t, "invoke_workflow far").Parent.SpanID().String(); got != caller {
		t.Errorf("the run is below %s", got)
	}
	at := func(name string) string {
		return "00-" + trace + "-" + l.named(t, name).SpanContext.SpanID().String() + "-01"
	}
	if got, want := <-heard, at("invoke_agent fetch"); got != want {
		t.Errorf("the request says %q, want %q", got, want)
	}
	if got, want := <-heard, at("invoke_agent shell"); got != want {
		t.Errorf("the command has %q, want %q", got, want)
	}
	if got, want := meta["traceparent"], at("execute_tool look"); got != want {
		t.Errorf("the tool's server is told %q, want %q", got, want)
	}
	if got, want := l.named(t, "my own").Parent.SpanID(), l.named(t, "execute_tool near").SpanContext.SpanID(); got != want {
		t.Errorf("a span of the tool's own is below %s, want %s", got, want)
	}
	if want := "trace_id=" + trace + " span_id=" + l.named(t, "execute_tool near").SpanContext.SpanID().String(); !strings.Contains(logged.String(), want) {
		t.Errorf("the log is %q, want %s in it", logged.String(), want)
	}
}

// Without an observer nothing is added to a request.
func TestNoTraceWithoutAnObserver(t *testing.T) {
	heard := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		heard <- r.Header.Get("Traceparent")
	}))
	defer srv.Close()
	w := world{text: "name: fetch\nurl: " + srv.URL}
	if end := wait(t, start(t, w.supervise(t, session.InMemoryService(), nil))); end.Err != nil {
		t.Fatal(end.Err)
	}
	if got := <-heard; got != "" {
		t.Errorf("the request says %q", got)
	}
}

// The environment of a command can say which trace its run belongs to.
func TestTraceOfTheEnvironment(t *testing.T) {
	l := newLab(t, telemetry.Config{})
	ctx := l.Within(t.Context(), func(name string) string {
		if name == "TRACEPARENT" {
			return "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		}
		return ""
	})
	run, err := world{text: "name: say\ntext: Hello."}.supervise(t, session.InMemoryService(), l).Start(ctx, request())
	if err != nil {
		t.Fatal(err)
	}
	wait(t, run)
	if got := l.named(t, "invoke_workflow say").Parent.SpanID().String(); got != "00f067aa0ba902b7" {
		t.Errorf("the run is below %s", got)
	}
}

// A step that does not heed the end of its time is left behind, and its span ends then.
func TestSpanOfAnAbandonedStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		stuck := must(agent.New(agent.Config{Name: "stuck", Run: func(agent.InvocationContext) iter.Seq2[*session.Event, error] {
			return func(func(*session.Event, error) bool) { <-release }
		}}))
		root := must(loopagent.New(loopagent.Config{
			AgentConfig:   agent.Config{Name: "loop", SubAgents: []agent.Agent{stuck}},
			MaxIterations: 1, Rules: loop.Plan{IterationTimeout: loop.Duration(1e9)},
		}))
		l := newLab(t, telemetry.Config{})
		r := must(runner.New(runner.Config{AppName: "app", Agent: root, SessionService: session.InMemoryService(),
			AutoCreateSession: true, Durable: true}))
		var last error
		for _, err := range r.Run(t.Context(), "ana", "s", genai.NewContentFromText("Go", genai.RoleUser), agent.RunConfig{Observer: l}) {
			last = err
		}
		if late, ok := errors.AsType[*loopagent.TimeoutError](last); !ok || !late.Abandoned {
			t.Errorf("got %v", last)
		}
		s := l.named(t, "invoke_agent stuck")
		if kind, _ := attr(s, "error.type"); kind != "timeout" || s.EndTime.Sub(s.StartTime) > 4e9 {
			t.Errorf("the span took %v, and its error is %q", s.EndTime.Sub(s.StartTime), kind)
		}
	})
}
