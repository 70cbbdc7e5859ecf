// SPDX-License-Identifier: Apache-2.0

package mcptoolset_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/tool"
	"github.com/refrain-dev/refrain/tool/mcptoolset"
)

// trip is the form that the server of these tests shows.
var trip = map[string]any{"type": "object", "required": []any{"city"}, "properties": map[string]any{
	"city":  map[string]any{"type": "string", "title": "To which city?", "minLength": 2},
	"days":  map[string]any{"type": "integer", "minimum": 1, "maximum": 30},
	"class": map[string]any{"type": "string", "enum": []any{"first", "second"}, "default": "second"},
	"quiet": map[string]any{"type": "boolean"},
}}

// travel is a server whose tool asks about a trip, and then about its price.
type travel struct {
	mu    sync.Mutex
	heard []string
}

func (v *travel) hear(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.heard = append(v.heard, fmt.Sprintf(format, args...))
}

func (v *travel) lines() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.heard)
}

func sorted(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// newer returns the server for the protocol in which a result asks, and the call is repeated with the answers.
func (v *travel) newer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "travel", Version: "v1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "book"}, func(_ context.Context, req *mcp.CallToolRequest, in named) (*mcp.CallToolResult, any, error) {
		v.hear("call %s", in.Name)
		switch state := req.Params.RequestState; state {
		case "":
			return &mcp.CallToolResult{RequestState: "trip", InputRequests: mcp.InputRequestMap{
				"a": &mcp.ElicitParams{Message: "Which trip?", RequestedSchema: trip},
				"b": &mcp.ElicitParams{Message: "Any wishes?", RequestedSchema: map[string]any{"type": "object",
					"properties": map[string]any{"text": map[string]any{"type": "string"}}}},
			}}, nil, nil
		case "trip":
			a, b := req.Params.InputResponses["a"].(*mcp.ElicitResult), req.Params.InputResponses["b"].(*mcp.ElicitResult)
			v.hear("%s %s, %s %s", a.Action, sorted(a.Content), b.Action, sorted(b.Content))
			return &mcp.CallToolResult{RequestState: "price", InputRequests: mcp.InputRequestMap{
				"c": &mcp.ElicitParams{Message: "It costs 90. Go on?"},
			}}, nil, nil
		default:
			c := req.Params.InputResponses["c"].(*mcp.ElicitResult)
			v.hear("%s %s", state, c.Action)
			return text("booked: " + c.Action), nil, nil
		}
	})
	return s
}

// older returns the server for protocols in which a server asks in the middle of a call.
func (v *travel) older() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "travel", Version: "v1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "book"}, func(ctx context.Context, req *mcp.CallToolRequest, in named) (*mcp.CallToolResult, any, error) {
		v.hear("call %s", in.Name)
		a, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Which trip, " + in.Name + "?", RequestedSchema: trip})
		if err != nil {
			return nil, nil, err
		}
		v.hear("%s %s", a.Action, sorted(a.Content))
		c, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "It costs 90. Go on?", RequestedSchema: map[string]any{"type": "object",
			"properties": map[string]any{}}})
		if err != nil {
			return nil, nil, err
		}
		v.hear("price %s", c.Action)
		return text("booked: " + c.Action), nil, nil
	})
	return s
}

// traveler is a session in which an agent books trips. Each part of the run has a toolset of its own, as after a restart.
type traveler struct {
	*testing.T
	svc  session.Service
	cfg  func() mcptoolset.Config
	plan []scripted.Answer
	id   string
}

// run runs the next part of the run. It returns the question for which the run waits, or the agent's last answer.
func (h *traveler) run() (*mark.Question, string) {
	h.Helper()
	set, err := mcptoolset.New(h.cfg())
	if err != nil {
		h.Fatal(err)
	}
	defer set.Close()
	m, err := scripted.New(scripted.Script{Answers: h.plan})
	if err != nil {
		h.Fatal(err)
	}
	root, err := llmagent.New(llmagent.Config{Name: "agent", Model: m, Toolsets: []tool.Toolset{set}})
	if err != nil {
		h.Fatal(err)
	}
	r, err := runner.New(runner.Config{AppName: "app", Agent: root, SessionService: h.svc, AutoCreateSession: true, Durable: true})
	if err != nil {
		h.Fatal(err)
	}
	cfg := agent.RunConfig{Pause: new(agent.Pause)}
	seq := r.Resume(h.Context(), "ana", "s1", h.id, cfg)
	if h.id == "" {
		seq = r.Run(h.Context(), "ana", "s1", genai.NewContentFromText("go", genai.RoleUser), cfg)
	}
	last := ""
	for ev, err := range seq {
		if w, ok := errors.AsType[*agent.WaitingError](err); ok {
			return &w.Question, ""
		}
		if err != nil {
			h.Fatal(err)
		}
		h.id = ev.InvocationID
		for _, p := range parts(ev) {
			if p.FunctionResponse != nil {
				last = sorted(p.FunctionResponse.Response)
			}
		}
	}
	return nil, last
}

func parts(ev *session.Event) []*genai.Part {
	if ev.Content == nil {
		return nil
	}
	return ev.Content.Parts
}

// tell appends the answer to a question, which must fit it.
func (h *traveler) tell(q *mark.Question, value string) {
	h.Helper()
	a := mark.Answer{ID: q.ID, Value: json.RawMessage(value)}
	if err := q.Check(&a); err != nil {
		h.Fatal(err)
	}
	m, err := mark.New(mark.KindAnswered, a)
	if err != nil {
		h.Fatal(err)
	}
	got, err := h.svc.Get(h.Context(), &session.GetRequest{AppName: "app", UserID: "ana", SessionID: "s1"})
	if err == nil {
		err = h.svc.AppendEvent(h.Context(), got.Session, &session.Event{InvocationID: h.id, Author: "user", Mark: m})
	}
	if err != nil {
		h.Fatal(err)
	}
}

var booking = []scripted.Answer{
	{Agent: "agent", Calls: []scripted.Call{{Name: "book", Args: map[string]any{"name": "ana"}}}},
	{Agent: "agent", Text: "done"},
}

// A question of a server becomes a question of the run, which a restart survives, and the server gets each answer as the person
// gave it.
func TestServerAsksThePerson(t *testing.T) {
	accept := `{"action": "accept", "content": {"city": "Rome", "days": 3, "class": "first", "quiet": true}}`
	for _, tt := range []struct {
		name    string
		serve   func(v *travel, t *testing.T) func() mcptoolset.Config
		answers []string
		want    []string
		last    string
	}{
		{"newer", newerOverHTTP, []string{accept, `{"action": "decline"}`, `{"action": "accept"}`}, []string{
			"call ana", "call ana", `accept {"city":"Rome","class":"first","days":3,"quiet":true}, decline null`, "call ana", "price accept",
		}, `{"result":"booked: accept"}`},
		{"newer, canceled", newerOverHTTP, []string{`{"action": "cancel"}`, `{"action": "accept", "content": {"text": "sun"}}`, `{"action": "decline"}`},
			[]string{"call ana", "call ana", `cancel null, accept {"text":"sun"}`, "call ana", "price decline"}, `{"result":"booked: decline"}`},
		{"older", olderOverHTTP, []string{accept, `{"action": "accept", "content": {}}`}, []string{
			"call ana", "call ana", `accept {"city":"Rome","class":"first","days":3,"quiet":true}`,
			"call ana", `accept {"city":"Rome","class":"first","days":3,"quiet":true}`, "price accept",
		}, `{"result":"booked: accept"}`},
		{"older, declined", olderOverHTTP, []string{`{"action": "decline"}`, `{"action": "cancel"}`}, []string{
			"call ana", "call ana", "decline null", "call ana", "decline null", "price cancel",
		}, `{"result":"booked: cancel"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := new(travel)
			h := &traveler{T: t, svc: session.InMemoryService(), cfg: tt.serve(v, t), plan: booking}
			for i, answer := range tt.answers {
				q, last := h.run()
				if q == nil {
					t.Fatalf("the run does not wait for question %d; it has %s", i, last)
				}
				if q.Kind != mark.AskForm || !strings.Contains(q.Text, "MCP server http://127.0.0.1") || !strings.Contains(q.Text, "book") {
					t.Errorf("the question is %s: %s", q.Kind, q.Text)
				}
				h.tell(q, answer)
			}
			if q, last := h.run(); q != nil || last != tt.last {
				t.Errorf("the last answer is %s, want %s; question %v", last, tt.last, q)
			}
			if diff := cmp.Diff(tt.want, v.lines()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func newerOverHTTP(v *travel, t *testing.T) func() mcptoolset.Config {
	return serve(t, v.newer(), false)
}

func olderOverHTTP(v *travel, t *testing.T) func() mcptoolset.Config {
	return serve(t, v.older(), true)
}

func serve(t *testing.T, s *mcp.Server, stateful bool) func() mcptoolset.Config {
	w := newWebOf(t, &web{stateful: stateful, server: func() *mcp.Server { return s }, options: &mcp.StreamableHTTPOptions{Stateless: !stateful}})
	url := endpoint(t, w)
	return func() mcptoolset.Config { return mcptoolset.Config{URL: url} }
}

// The person sees typed fields, and an answer that does not fit them is refused.
func TestFormOfAServerIsTyped(t *testing.T) {
	v := new(travel)
	h := &traveler{T: t, svc: session.InMemoryService(), cfg: newerOverHTTP(v, t), plan: booking}
	q, _ := h.run()
	fields, err := q.Fields()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range fields {
		got = append(got, fmt.Sprintf("%s %s %t %v %s", f.Name, f.Type, f.Required, f.Choices, f.Default))
	}
	want := []string{"city string true [] ", `class string false [first second] "second"`, "days integer false [] ", "quiet boolean false [] "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for value, wrong := range map[string]string{
		`{"action": "accept", "content": {"days": 3}}`:                      "city is missing",
		`{"action": "accept", "content": {"city": "Rome", "days": "3"}}`:    "days",
		`{"action": "accept", "content": {"city": "Rome", "days": 31}}`:     "days",
		`{"action": "accept", "content": {"city": "Rome", "class": "5th"}}`: "choose one of first, second",
		`{"action": "accept", "content": {"city": "Rome", "hotel": "x"}}`:   `"hotel" is not a field`,
		`{"action": "decline", "content": {"city": "Rome"}}`:                "belongs to the action accept",
		`{"action": "perhaps"}`: "perhaps",
		`true`:                  "accept",
	} {
		if err := q.Check(&mark.Answer{ID: q.ID, Value: json.RawMessage(value)}); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v, want %s", value, err, wrong)
		}
	}
}

// Questions of a server with an older protocol do not say to which of several calls they belong. Each call gets its own answers.
func TestQuestionsOfSeveralCalls(t *testing.T) {
	v := new(travel)
	h := &traveler{T: t, svc: session.InMemoryService(), cfg: olderOverHTTP(v, t), plan: []scripted.Answer{
		{Agent: "agent", Calls: []scripted.Call{{Name: "book", Args: map[string]any{"name": "ana"}}, {Name: "book", Args: map[string]any{"name": "bo"}}}},
		{Agent: "agent", Text: "done"},
	}}
	city := map[string]string{"ana": "Rome", "bo": "Oslo"}
	asked := 0
	for {
		q, _ := h.run()
		if q == nil {
			break
		}
		if asked++; asked > 8 {
			t.Fatalf("the run asks again and again: %q", v.lines())
		}
		answer := `{"action": "accept", "content": {}}`
		for name, to := range city {
			if strings.Contains(q.Text, "Which trip, "+name) {
				answer = `{"action": "accept", "content": {"city": "` + to + `"}}`
			}
		}
		h.tell(q, answer)
	}
	if asked < 4 {
		t.Errorf("the person was asked %d times", asked)
	}
	name := ""
	var booked []string
	for _, line := range v.lines() {
		if word, ok := strings.CutPrefix(line, "call "); ok {
			name = word
		} else if strings.HasPrefix(line, "accept ") && !strings.Contains(line, city[name]) {
			t.Errorf("the call of %s got %s", name, line)
		} else if line == "price accept" {
			booked = append(booked, name)
		}
	}
	if slices.Sort(booked); !slices.Equal(booked, []string{"ana", "bo"}) {
		t.Errorf("booked for %v: %q", booked, v.lines())
	}
}

// A call that must not be made twice cannot wait for a person in an older protocol. The server is told that nobody answered,
// and the model why.
func TestCallThatMustNotBeRepeatedAsksNobody(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "v1"}, nil)
	calls := 0
	mcp.AddTool(s, &mcp.Tool{Name: "book"}, func(ctx context.Context, req *mcp.CallToolRequest, _ named) (*mcp.CallToolResult, any, error) {
		calls++
		a, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Really?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}})
		if err != nil {
			return nil, nil, err
		}
		return nil, nil, errors.New("the user said " + a.Action)
	})
	cfg := serve(t, s, true)
	h := &traveler{T: t, svc: session.InMemoryService(), plan: booking, cfg: func() mcptoolset.Config {
		c := cfg()
		c.Effect = agent.AtMostOnce
		return c
	}}
	q, last := h.run()
	if q != nil || calls != 1 || !strings.Contains(last, "the user said cancel; the server asked the person: Really?") ||
		!strings.Contains(last, "effect: idempotent") {
		t.Errorf("after %d calls the model got %s, question %v", calls, last, q)
	}
}
