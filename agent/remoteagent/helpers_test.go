// SPDX-License-Identifier: Apache-2.0

package remoteagent_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/agent/remoteagent"
	"github.com/refrain-dev/refrain/internal/testkit/leaktest"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
)

// The one goroutine that is let pass is started by a dependency of genai when the
// program starts.
func TestMain(m *testing.M) { leaktest.Main(m) }

// yield takes what the remote agent says.
type yield = func(a2a.Event, error) bool

// work is what a remote agent does with a message.
type work func(ctx context.Context, x *a2asrv.ExecutorContext, yield yield)

// wireKind is how a server is talked to.
type wireKind struct {
	name    string
	binding a2a.TransportProtocol
	version a2a.ProtocolVersion
	streams bool
}

// kinds are all of them.
var kinds = []wireKind{
	{"JSON-RPC 1.0", a2a.TransportProtocolJSONRPC, a2a.Version, true},
	{"JSON-RPC 1.0, no streams", a2a.TransportProtocolJSONRPC, a2a.Version, false},
	{"REST 1.0", a2a.TransportProtocolHTTPJSON, a2a.Version, true},
	{"REST 1.0, no streams", a2a.TransportProtocolHTTPJSON, a2a.Version, false},
	{"JSON-RPC 0.3", a2a.TransportProtocolJSONRPC, a2av0.Version, true},
	{"JSON-RPC 0.3, no streams", a2a.TransportProtocolJSONRPC, a2av0.Version, false},
	{"REST 0.3", a2a.TransportProtocolHTTPJSON, a2av0.Version, true},
	{"REST 0.3, no streams", a2a.TransportProtocolHTTPJSON, a2av0.Version, false},
}

// remote is a server of the SDK with an agent behind it.
type remote struct {
	*httptest.Server
	card  *a2a.AgentCard
	work  work
	serve http.Handler // answers a request, whatever before says

	mu       sync.Mutex
	messages []*a2a.Message
	canceled []a2a.TaskID
	headers  []http.Header
	before   func(http.ResponseWriter, *http.Request) bool // looks at each request first; true answers it
	stop     chan struct{}                                 // closed at the end: work that waits for nobody ends
}

func serve(t testing.TB, kind wireKind, do work) *remote {
	t.Helper()
	r := &remote{work: do, stop: make(chan struct{})}
	handler := a2asrv.NewHandler(r, a2asrv.WithLogger(slog.New(slog.DiscardHandler)))
	mux := http.NewServeMux()
	var invoke http.Handler
	old := kind.version != a2a.Version
	switch rest := kind.binding == a2a.TransportProtocolHTTPJSON; {
	case rest && old:
		invoke = a2av0.NewRESTHandler(handler)
	case rest:
		invoke = a2asrv.NewRESTHandler(handler)
	case old:
		invoke = a2av0.NewJSONRPCHandler(handler)
	default:
		invoke = a2asrv.NewJSONRPCHandler(handler)
	}
	mux.Handle("/invoke/", http.StripPrefix("/invoke", invoke))
	mux.Handle("/invoke", http.StripPrefix("/invoke", invoke))
	mux.HandleFunc(a2asrv.WellKnownAgentCardPath, func(w http.ResponseWriter, req *http.Request) {
		if old {
			a2asrv.NewAgentCardHandler(a2av0.NewStaticAgentCardProducer(r.card)).ServeHTTP(w, req)
			return
		}
		a2asrv.NewStaticAgentCardHandler(r.card).ServeHTTP(w, req)
	})
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.headers = append(r.headers, req.Header.Clone())
		before := r.before
		r.mu.Unlock()
		if before == nil || !before(w, req) {
			mux.ServeHTTP(w, req)
		}
	}))
	r.serve = mux
	r.card = &a2a.AgentCard{
		Name: "remote", Version: "1", Capabilities: a2a.AgentCapabilities{Streaming: kind.streams},
		SupportedInterfaces: []*a2a.AgentInterface{{URL: r.URL + "/invoke", ProtocolBinding: kind.binding, ProtocolVersion: kind.version}},
	}
	t.Cleanup(func() {
		close(r.stop)
		r.Server.CloseClientConnections()
		r.Close()
	})
	return r
}

// Execute implements a2asrv.AgentExecutor.
func (r *remote) Execute(ctx context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		r.mu.Lock()
		r.messages = append(r.messages, x.Message)
		r.mu.Unlock()
		r.work(ctx, x, yield)
	}
}

// Cancel implements a2asrv.AgentExecutor.
func (r *remote) Cancel(_ context.Context, x *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		r.mu.Lock()
		r.canceled = append(r.canceled, x.TaskID)
		r.mu.Unlock()
		yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateCanceled, nil), nil)
	}
}

// refuseCancels makes the server not listen to those who cancel.
func (r *remote) refuseCancels() {
	r.intercept(func(w http.ResponseWriter, req *http.Request) bool {
		if req.Method != http.MethodPost {
			return false
		}
		refused := contains(req, `"CancelTask"`)
		if refused {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		return refused
	})
}

// contains reports whether a request's body has a text.
func contains(req *http.Request, text string) bool {
	body, err := io.ReadAll(req.Body)
	req.Body = io.NopCloser(bytes.NewReader(body))
	return err == nil && bytes.Contains(body, []byte(text))
}

// said are the texts of the messages that arrived.
func (r *remote) said() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, m := range r.messages {
		var text strings.Builder
		for _, p := range m.Parts {
			if d := p.Data(); d != nil {
				fmt.Fprint(&text, d)
			}
			text.WriteString(p.Text())
		}
		all = append(all, text.String())
	}
	return all
}

func (r *remote) message(i int) *a2a.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.messages[i]
}

func (r *remote) cancels() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.canceled)
}

func (r *remote) intercept(f func(http.ResponseWriter, *http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before = f
}

// wait waits until a work is not wanted any more.
func (r *remote) wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-r.stop:
	}
}

func text(s string) *a2a.Part { return a2a.NewTextPart(s) }

func says(s string) *a2a.Message { return a2a.NewMessage(a2a.MessageRoleAgent, text(s)) }

// begins says that a task is under way.
func begins(x *a2asrv.ExecutorContext, yield yield) bool {
	return (x.StoredTask != nil || yield(a2a.NewSubmittedTask(x, x.Message), nil)) &&
		yield(a2a.NewStatusUpdateEvent(x, a2a.TaskStateWorking, says("on it")), nil)
}

func ends(x *a2asrv.ExecutorContext, yield yield, state a2a.TaskState, m *a2a.Message) {
	yield(a2a.NewStatusUpdateEvent(x, state, m), nil)
}

// writes answers with an artifact that comes in pieces.
func writes(pieces ...string) work {
	return func(_ context.Context, x *a2asrv.ExecutorContext, yield yield) {
		if !begins(x, yield) {
			return
		}
		ev := a2a.NewArtifactEvent(x, text(pieces[0]))
		if !yield(ev, nil) {
			return
		}
		for _, piece := range pieces[1:] {
			if !yield(a2a.NewArtifactUpdateEvent(x, ev.Artifact.ID, text(piece)), nil) {
				return
			}
		}
		ends(x, yield, a2a.TaskStateCompleted, nil)
	}
}

// made is an agent for the server.
func made(t testing.TB, r *remote, change ...func(*remoteagent.A2AConfig)) agent.Agent {
	t.Helper()
	cfg := remoteagent.A2AConfig{Name: "far", AgentCardSource: r.URL, OutputKey: "out"}
	for _, f := range change {
		f(&cfg)
	}
	if far {
		cfg.Elsewhere = elsewhere.Queue{Name: "q", Dispatcher: &desk{here: remoteagent.Here{Client: cfg.Client}}}
	}
	a, err := remoteagent.NewA2A(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// talk is a session with an agent.
type talk struct {
	t      testing.TB
	agent  agent.Agent
	svc    session.Service
	runner *runner.Runner
	cfg    agent.RunConfig
}

func newTalk(t testing.TB, a agent.Agent, state map[string]any) *talk {
	t.Helper()
	svc := session.InMemoryService()
	if _, err := svc.Create(t.Context(), &session.CreateRequest{AppName: "app", UserID: "ana", SessionID: "s", State: state}); err != nil {
		t.Fatal(err)
	}
	return &talk{t: t, agent: a, svc: svc, runner: newRunner(t, svc, a)}
}

func newRunner(t testing.TB, svc session.Service, a agent.Agent) *runner.Runner {
	t.Helper()
	r, err := runner.New(runner.Config{AppName: "app", Agent: a, SessionService: svc, Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// whenNoted calls f once, when the agent knows of a task.
func (tk *talk) whenNoted(f func()) *talk {
	var once sync.Once
	store := &breaking{Service: tk.svc, at: func(ev *session.Event) bool {
		if ev.CustomMetadata[remoteagent.MetadataA2A] != nil {
			once.Do(f)
		}
		return false
	}}
	tk.runner = newRunner(tk.t, store, tk.agent)
	return tk
}

// ran is what a run left.
type ran struct {
	events []*session.Event // without marks
	state  map[string]any
	err    error
}

func (tk *talk) say(ctx context.Context, text string) *ran {
	return tk.send(ctx, genai.NewContentFromText(text, genai.RoleUser))
}

func (tk *talk) send(ctx context.Context, c *genai.Content) *ran {
	tk.t.Helper()
	return tk.take(tk.runner.Run(ctx, "ana", "s", c, tk.cfg))
}

func (tk *talk) take(seq iter.Seq2[*session.Event, error]) *ran {
	tk.t.Helper()
	var got ran
	for ev, err := range seq {
		if err != nil {
			got.err = err
		} else if ev.Mark == nil {
			got.events = append(got.events, ev)
		}
	}
	s, err := tk.svc.Get(tk.t.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s"})
	if err != nil {
		tk.t.Fatal(err)
	}
	got.state = maps.Collect(s.Session.State().All())
	return &got
}

func (r *ran) words() []string {
	var words []string
	for _, ev := range r.events {
		if ev.Content != nil && ev.Text() != "" && !ev.Partial {
			words = append(words, ev.Text())
		}
	}
	return words
}

func equal(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
