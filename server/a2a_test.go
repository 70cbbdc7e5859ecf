// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	oldcard "github.com/a2aproject/a2a-go/a2aclient/agentcard"
	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"

	"github.com/refrain-dev/refrain/server"
)

// speech is a way to speak A2A.
type speech struct {
	version a2a.ProtocolVersion
	binding a2a.TransportProtocol
}

func (k speech) String() string { return string(k.version) + " " + string(k.binding) }

var speeches = []speech{
	{a2a.Version, a2a.TransportProtocolJSONRPC}, {a2a.Version, a2a.TransportProtocolHTTPJSON},
	{a2av0.Version, a2a.TransportProtocolJSONRPC}, {a2av0.Version, a2a.TransportProtocolHTTPJSON},
}

// peer is a client of the official SDK.
type peer struct {
	testing.TB
	*a2aclient.Client
	card *a2a.AgentCard
	by   speech
}

// peer reads the card of an agent, and connects to it.
func (s *site) peer(name string, by speech, with ...*http.Client) *peer {
	s.Helper()
	client := http.DefaultClient
	if len(with) > 0 {
		client = with[0]
	}
	resolver := agentcard.NewResolver(client)
	below := "/a2a/v1/"
	if by.version == a2av0.Version {
		resolver.CardParser, below = a2av0.NewAgentCardParser(), "/a2a/"
	}
	card, err := resolver.Resolve(s.Context(), s.url+below+name)
	if err != nil {
		s.Fatal(err)
	}
	p := &peer{TB: s, card: card, by: by}
	only := *card
	only.SupportedInterfaces = slices.DeleteFunc(slices.Clone(card.SupportedInterfaces), func(i *a2a.AgentInterface) bool {
		return i.ProtocolVersion != by.version || i.ProtocolBinding != by.binding
	})
	if len(only.SupportedInterfaces) != 1 {
		s.Fatalf("the card has %d interfaces for %s", len(only.SupportedInterfaces), by)
	}
	p.Client, err = a2aclient.NewFromCard(s.Context(), &only, a2aclient.WithJSONRPCTransport(client), a2aclient.WithRESTTransport(client),
		a2av0.WithJSONRPCTransport(a2av0.JSONRPCTransportConfig{Client: client}),
		a2av0.WithRESTTransport(a2av0.RESTTransportConfig{Client: client}))
	if err != nil {
		s.Fatal(err)
	}
	return p
}

func words(text string) *a2a.Message {
	return a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart(text))
}

// to makes a message one for a task.
func to(task a2a.TaskInfoProvider, what any) *a2a.Message {
	part := a2a.NewDataPart(what)
	if text, ok := what.(string); ok {
		part = a2a.NewTextPart(text)
	}
	return a2a.NewMessageForTask(a2a.MessageRoleUser, task, part)
}

// send sends a message that has to be taken, and returns the task.
func (p *peer) send(m *a2a.Message, change ...func(*a2a.SendMessageConfig)) *a2a.Task {
	p.Helper()
	req := &a2a.SendMessageRequest{Message: m, Config: new(a2a.SendMessageConfig)}
	for _, f := range change {
		f(req.Config)
	}
	got, err := p.SendMessage(p.Context(), req)
	if err != nil {
		p.Fatal(err)
	}
	task, ok := got.(*a2a.Task)
	if !ok {
		p.Fatalf("the answer is %T", got)
	}
	return task
}

func atOnce(c *a2a.SendMessageConfig) { c.ReturnImmediately = true }

// get gets a task that there has to be.
func (p *peer) get(id a2a.TaskID) *a2a.Task {
	p.Helper()
	task, err := p.GetTask(p.Context(), &a2a.GetTaskRequest{ID: id})
	if err != nil {
		p.Fatal(err)
	}
	return task
}

// heard is what a stream has told.
type heard struct {
	passed []facts // of iterations
	status a2a.TaskStatus
	facts
	a2a.TaskInfo
	answer string
}

func (p *peer) stream(m *a2a.Message) heard {
	p.Helper()
	return p.listen(p.SendStreamingMessage(p.Context(), &a2a.SendMessageRequest{Message: m}))
}

func (p *peer) listen(events func(func(a2a.Event, error) bool)) (h heard) {
	p.Helper()
	for ev, err := range events {
		if err != nil {
			p.Fatal(err)
		}
		switch ev := ev.(type) {
		case *a2a.Task:
			if h.status.State != "" {
				p.Errorf("there came a second task: %+v", ev)
			}
			h.status, h.facts, h.TaskInfo = ev.Status, factsOf(p, ev.Metadata), ev.TaskInfo()
			if len(ev.Artifacts) > 0 {
				h.answer = ev.Artifacts[0].Parts[0].Text()
			}
		case *a2a.TaskStatusUpdateEvent:
			h.status, h.facts = ev.Status, factsOf(p, ev.Metadata)
			if strings.HasPrefix(messageText(ev.Status), "iteration ") {
				h.passed = append(h.passed, h.facts)
			}
		case *a2a.TaskArtifactUpdateEvent:
			h.answer += ev.Artifact.Parts[0].Text()
		default:
			p.Fatalf("there came %T", ev)
		}
	}
	return h
}

// refusal is an error of the protocol, of a kind, which says something. The SDK's client of version 0.3
// over HTTP does not read what the SDK's server of that writes about an error.
func (p *peer) refusal(err, kind error, says string) {
	p.Helper()
	if p.by == speeches[3] && errors.Is(err, a2a.ErrServerError) {
		return
	}
	if err == nil || kind != nil && !errors.Is(err, kind) || !strings.Contains(err.Error(), says) {
		p.Errorf("the error is %v, not %v: %q", err, kind, says)
	}
}

// facts are what the metadata has.
type facts struct {
	Run, Name, Status string
	StopReason        string `json:"stop_reason"`
	Iteration         int
	Score             *float64
	Paused            string
	Waits             []struct{ ID, Kind, Text string }
}

func factsOf(t testing.TB, metadata map[string]any) (f facts) {
	t.Helper()
	text, err := json.Marshal(metadata["refrain"])
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func messageText(s a2a.TaskStatus) string {
	if s.Message == nil {
		return ""
	}
	return s.Message.Parts[0].Text()
}

// A12, G9: a client of the official SDK drives a run from start to answer, with questions in the middle, and
// is told of each iteration; in both versions of the protocol, over both bindings.
func TestA2AFromStartToAnswer(t *testing.T) {
	for _, by := range speeches {
		t.Run(by.String(), func(t *testing.T) {
			s := open(t, map[string]string{"climbing.yaml": climbing, "counting.yaml": counting})
			p := s.peer("climbing", by)
			if p.card.Name != "climbing" || !p.card.Capabilities.Streaming || len(p.card.SecuritySchemes) != 0 ||
				!strings.Contains(p.card.Skills[0].Description, `"from"`) {
				t.Errorf("the card is %+v", p.card)
			}
			start := a2a.NewMessage(a2a.MessageRoleUser, a2a.NewTextPart("Up!"), a2a.NewDataPart(map[string]any{"from": 6}))
			asked := p.stream(start)
			if asked.status.State != a2a.TaskStateInputRequired || !strings.HasPrefix(messageText(asked.status), "On from 7?\n") ||
				!strings.Contains(messageText(asked.status), "yes or no") {
				t.Fatalf("the first stream told %+v", asked)
			}
			if asked.Run != string(asked.TaskID) || asked.Status != "waiting" || len(asked.Waits) != 1 || asked.Waits[0].Kind != "approve" {
				t.Errorf("the metadata is %+v", asked.facts)
			}
			if wrong := p.send(to(asked.TaskInfo, "perhaps")); wrong.Status.State != a2a.TaskStateInputRequired ||
				!strings.Contains(messageText(wrong.Status), "answer with yes or no") {
				t.Errorf("a wrong answer leads to %+v", wrong.Status)
			}
			answer := to(asked.TaskInfo, "Yes.")
			next := p.send(answer)
			if next.Status.State != a2a.TaskStateInputRequired || !strings.HasPrefix(messageText(next.Status), "On from 8?") {
				t.Fatalf("the first answer leads to %+v", next.Status)
			}
			if again := p.send(answer); !strings.HasPrefix(messageText(again.Status), "On from 8?") {
				t.Errorf("the first answer again leads to %+v", again.Status)
			}
			last := p.stream(to(asked.TaskInfo, "yes"))
			if last.status.State != a2a.TaskStateCompleted || last.answer != "At 8." {
				t.Fatalf("the last stream told %+v", last)
			}
			if last.StopReason != "max_iterations" || last.Iteration != 2 || last.Score == nil || *last.Score != 8 {
				t.Errorf("in the end the metadata is %+v", last.facts)
			}
			got := p.get(asked.TaskID)
			var talk []string
			for _, m := range got.History {
				talk = append(talk, string(m.Role)+" "+strings.SplitN(m.Parts[0].Text(), "\n", 2)[0])
			}
			if want := "[ROLE_USER Up! ROLE_AGENT On from 7? ROLE_USER true ROLE_AGENT On from 8? ROLE_USER true]"; fmt.Sprint(talk) != want {
				t.Errorf("the history is %q", talk)
			}
			if got.History[0].ID != start.ID || got.History[2].ID != answer.ID || got.ContextID != asked.ContextID ||
				got.Artifacts[0].Parts[0].Text() != "At 8." {
				t.Errorf("the task is %+v", got)
			}
			short, err := p.GetTask(t.Context(), &a2a.GetTaskRequest{ID: asked.TaskID, HistoryLength: new(1)})
			if err != nil || len(short.History) != 1 || short.History[0].Parts[0].Text() != "true" {
				t.Errorf("with one message the task is %+v: %v", short, err)
			}
			if again := p.send(start); again.ID != asked.TaskID || again.Status.State != a2a.TaskStateCompleted {
				t.Errorf("the first message again is the task %s, and not %s", again.ID, asked.TaskID)
			}
			events := p.SubscribeToTask(t.Context(), &a2a.SubscribeToTaskRequest{ID: asked.TaskID})
			if by.version == a2av0.Version { // has no rule about tasks that have ended
				if h := p.listen(events); h.status.State != a2a.TaskStateCompleted {
					t.Errorf("who subscribes in the end hears %+v", h)
				}
			} else { // section 3.1.6
				for ev, err := range events {
					if ev != nil {
						t.Errorf("who subscribes in the end hears %+v", ev)
					}
					p.refusal(err, a2a.ErrUnsupportedOperation, "has ended")
				}
			}
			_, err = p.SendMessage(t.Context(), &a2a.SendMessageRequest{Message: to(asked.TaskInfo, "more")})
			p.refusal(err, a2a.ErrUnsupportedOperation, "has ended")
			var runs struct{ Runs []listed }
			if s.ok("GET", "/api/v1/runs", nil, &runs); len(runs.Runs) != 1 {
				t.Errorf("the runs are %+v", runs)
			}
			if log := string(s.ok("GET", "/api/v1/runs/"+string(asked.TaskID)+"/events", nil, nil).body); !strings.Contains(log,
				"a client over A2A") {
				t.Errorf("the log does not have who answered: %s", log)
			}
		})
	}
}

// G8: a client cancels a run, or leaves it running.
func TestA2ACancellation(t *testing.T) {
	for _, by := range speeches {
		t.Run(by.String(), func(t *testing.T) {
			g := newGate(t)
			s := open(t, map[string]string{"gated.yaml": g.gated(3)}, private)
			p := s.peer("gated", by)
			task := p.send(words("go"), atOnce)
			if task.Status.State != a2a.TaskStateWorking {
				t.Errorf("the task is %+v", task.Status)
			}
			<-g.came
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			for ev, err := range p.SubscribeToTask(ctx, &a2a.SubscribeToTaskRequest{ID: task.ID}) {
				if err == nil && ev.TaskInfo().TaskID != task.ID {
					t.Errorf("there came %+v", ev)
				}
				leave() // the run goes on
			}
			_, err := p.SendMessage(t.Context(), &a2a.SendMessageRequest{Message: to(task, "faster")})
			p.refusal(err, a2a.ErrUnsupportedOperation, "asks no such question")
			got, err := p.CancelTask(t.Context(), &a2a.CancelTaskRequest{ID: task.ID})
			if err != nil || got.Status.State != a2a.TaskStateCanceled || !strings.Contains(messageText(got.Status), "canceled over A2A") {
				t.Errorf("canceled, the task is %+v: %v", got, err)
			}
			_, err = p.CancelTask(t.Context(), &a2a.CancelTaskRequest{ID: task.ID})
			p.refusal(err, a2a.ErrTaskNotCancelable, "canceled")
			if status := s.wait(string(task.ID)); status != "canceled" {
				t.Errorf("the run is %s", status)
			}
		})
	}
}

// A paused run asks nobody: its task goes on to work when somebody resumes it, and its stream stays.
func TestA2APausedAndFailed(t *testing.T) {
	g := newGate(t)
	s := open(t, map[string]string{"gated.yaml": g.gated(2), "fails.yaml": "name: fails\nsub_agents:\n  - {name: x, set: {a: 1 / 0}}\n"},
		private)
	p := s.peer("gated", speeches[0])
	task := p.send(words("go"), atOnce)
	<-g.came
	s.ok("POST", "/api/v1/runs/"+string(task.ID)+":pause", map[string]any{"reason": "lunch"}, nil)
	g.let <- struct{}{}
	if got := s.wait(string(task.ID)); got != "paused" {
		t.Fatal(got)
	}
	got := p.get(task.ID)
	if f := factsOf(t, got.Metadata); got.Status.State != a2a.TaskStateWorking || f.Status != "paused" ||
		!strings.Contains(messageText(got.Status), "lunch") {
		t.Errorf("paused, the task is %+v", got)
	}
	resumed := false
	h := p.listen(func(yield func(a2a.Event, error) bool) {
		for ev, err := range p.SubscribeToTask(t.Context(), &a2a.SubscribeToTaskRequest{ID: task.ID}) {
			if !resumed {
				resumed = true
				s.ok("POST", "/api/v1/runs/"+string(task.ID)+":resume", map[string]any{}, nil)
				<-g.came
				g.let <- struct{}{}
			}
			if !yield(ev, err) {
				return
			}
		}
	})
	if h.status.State != a2a.TaskStateCompleted {
		t.Errorf("the stream told %+v", h)
	}
	if got := s.peer("fails", speeches[0]).send(words("go")); got.Status.State != a2a.TaskStateFailed ||
		!strings.Contains(messageText(got.Status), "x") {
		t.Errorf("failed, the task is %+v", got)
	}
}

// A server that stops loses nothing: the task goes on in the next one, and who comes back hears the rest.
func TestA2AServerRestarts(t *testing.T) {
	s := open(t, map[string]string{"climbing.yaml": climbing})
	p := s.peer("climbing", speeches[0])
	start := words("Up!")
	start.ContextID = "a trip"
	task := p.send(start)
	answer := to(task, "yes")
	if next := p.send(answer); !strings.HasPrefix(messageText(next.Status), "On from 7?") || next.ContextID != "a trip" {
		t.Fatalf("the first answer leads to %+v", next)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.start()
	if err := s.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	p = s.peer("climbing", speeches[0])
	if h := p.listen(p.SubscribeToTask(t.Context(), &a2a.SubscribeToTaskRequest{ID: task.ID})); h.status.State != a2a.TaskStateInputRequired {
		t.Errorf("who subscribes again hears %+v", h)
	}
	if again := p.send(start); again.ID != task.ID {
		t.Errorf("the first message again is the task %s, and not %s", again.ID, task.ID)
	}
	if again := p.send(answer); !strings.HasPrefix(messageText(again.Status), "On from 7?") || again.ContextID != "a trip" {
		t.Errorf("the first answer again leads to %+v", again)
	}
	if done := p.send(to(task, "yes")); done.Status.State != a2a.TaskStateCompleted || len(done.History) != 5 {
		t.Errorf("the second answer leads to %+v", done)
	}
	if list, err := p.ListTasks(t.Context(), &a2a.ListTasksRequest{ContextID: "a trip"}); err != nil || len(list.Tasks) != 1 ||
		list.Tasks[0].Status.State != a2a.TaskStateCompleted {
		t.Errorf("the tasks are %+v: %v", list, err)
	}
}

// Tasks are listed page by page, those of a definition only, by their state and their context.
func TestA2AListTasks(t *testing.T) {
	s := open(t, map[string]string{"climbing.yaml": climbing, "counting.yaml": counting})
	p := s.peer("counting", speeches[0])
	want := map[a2a.TaskID]bool{}
	for i := range 7 {
		m := words(fmt.Sprint("number ", i))
		if i%2 == 0 {
			m.ContextID = "even"
		}
		want[p.send(m).ID] = true
	}
	plain := s.run(map[string]any{"definition": "counting", "id": "ana@example.org"}).Run
	s.wait(plain)
	want[a2a.TaskID(plain)] = true
	s.peer("climbing", speeches[0]).send(words("Up!"))
	got, token, pages := map[a2a.TaskID]bool{}, "", 0
	for first := true; first || token != ""; first = false {
		list, err := p.ListTasks(t.Context(), &a2a.ListTasksRequest{PageSize: 3, PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		if list.TotalSize != len(want) || list.PageSize != 3 {
			t.Errorf("the page is %+v", list)
		}
		for _, task := range list.Tasks {
			if got[task.ID] || !want[task.ID] || task.History != nil || task.Artifacts != nil || task.Status.State != a2a.TaskStateCompleted {
				t.Errorf("there is %+v", task)
			}
			got[task.ID] = true
		}
		pages, token = pages+1, list.NextPageToken
	}
	if len(got) != len(want) || pages != 3 {
		t.Errorf("%d pages have %d tasks", pages, len(got))
	}
	for _, x := range []struct {
		req  a2a.ListTasksRequest
		want int
	}{
		{a2a.ListTasksRequest{ContextID: "even", IncludeArtifacts: true, HistoryLength: new(5)}, 4},
		{a2a.ListTasksRequest{ContextID: plain}, 1},
		{a2a.ListTasksRequest{ContextID: "odd"}, 0},
		{a2a.ListTasksRequest{Status: a2a.TaskStateCompleted}, 8},
		{a2a.ListTasksRequest{Status: a2a.TaskStateInputRequired}, 0},
	} {
		list, err := p.ListTasks(t.Context(), &x.req)
		if err != nil || len(list.Tasks) != x.want {
			t.Errorf("%+v has %+v: %v", x.req, list, err)
			continue
		}
		if x.req.IncludeArtifacts {
			if task := list.Tasks[0]; len(task.History) != 1 || task.Artifacts[0].Parts[0].Text() != "It is 40." || task.ContextID != "even" {
				t.Errorf("with all there is to it a task is %+v", task)
			}
		}
	}
	for _, req := range []a2a.ListTasksRequest{{PageSize: 101}, {PageSize: -1}, {PageToken: "nonsense"}, {HistoryLength: new(-1)}} {
		_, err := p.ListTasks(t.Context(), &req)
		p.refusal(err, a2a.ErrInvalidParams, "")
	}
}

// A list is refused if its pageSize is 0 or its status is unknown. The error names the field.
func TestA2AListNamesTheWrongField(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting})
	for field, values := range map[string][]any{"pageSize": {0, -1, 101}, "status": {"nonsense", "completed", "TASK_STATE_DONE"}} {
		for _, value := range values {
			call := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": map[string]any{field: value}}
			if got := s.do("POST", "/a2a/v1/counting", call); !strings.Contains(string(got.body), `"code":-32602`) ||
				!strings.Contains(string(got.body), field) {
				t.Errorf("%s %v over JSON-RPC: %s", field, value, got.body)
			}
			got := s.do("GET", fmt.Sprintf("/a2a/v1/counting/tasks?%s=%v", field, value), nil)
			if got.status != http.StatusBadRequest || !strings.Contains(string(got.body), field) {
				t.Errorf("%s %v over REST: %d %s", field, value, got.status, got.body)
			}
		}
	}
	for _, params := range []map[string]any{{}, {"pageSize": 1}, {"pageSize": 100}, {"status": "TASK_STATE_AUTH_REQUIRED"}} {
		call := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": params}
		if got := s.do("POST", "/a2a/v1/counting", call); !strings.Contains(string(got.body), `"tasks":[]`) {
			t.Errorf("%v: %s", params, got.body)
		}
	}
}

// asking is a definition with a question.
func asking(question string) string {
	return "name: asking\ntype: sequential\nstate: {draft: old}\nsub_agents:\n  - " + question + "\n"
}

// Each kind of question is answered by what a message says.
func TestA2AAnswers(t *testing.T) {
	for _, x := range []struct {
		question     string
		wrong, right any
		log          string
	}{
		{`{name: q, question: "Which?", ask: answer, options: [Red, red, Blue]}`, "green", "blue", `"Blue"`},
		{`{name: q, question: "Which?", ask: answer, options: [Red, red, Blue]}`, "", " red ", `"red"`},
		{`{name: q, question: "Why?", ask: answer}`, nil, "Because. ", `"Because. "`},
		{`{name: q, question: "Why?", ask: answer}`, 3, "3", `"3"`},
		{`{name: q, question: "Go?"}`, "1", "No!", `false`},
		{`{name: q, question: "Go?"}`, "", true, `true`},
		{`{name: q, question: "Change?", ask: edit, keys: [draft]}`, "no", map[string]any{"draft": "new"}, `{"draft":"new"}`},
		{`{name: q, question: "Change?", ask: edit, keys: [draft]}`, map[string]any{"other": 1}, `{"draft": "newer"}`, `{"draft":"newer"}`},
	} {
		s := open(t, map[string]string{"asking.yaml": asking(x.question)})
		p := s.peer("asking", speeches[0])
		task := p.send(words("go"))
		if task.Status.State != a2a.TaskStateInputRequired {
			t.Fatalf("%s: the task is %+v", x.question, task.Status)
		}
		if x.wrong != nil {
			if got := p.send(to(task, x.wrong)); got.Status.State != a2a.TaskStateInputRequired || !strings.Contains(messageText(got.Status),
				"answer with") {
				t.Errorf("%s: %q leads to %+v", x.question, x.wrong, got.Status)
			}
		}
		if got := p.send(to(task, x.right)); got.Status.State != a2a.TaskStateCompleted {
			t.Errorf("%s: %q leads to %+v", x.question, x.right, got.Status)
		}
		if log := string(s.ok("GET", "/api/v1/runs/"+string(task.ID)+"/events", nil, nil).body); !strings.Contains(log, `"value":`+x.log) {
			t.Errorf("%s: the answer %s is not in %s", x.question, x.log, log)
		}
	}
}

// A message can say which question it answers, and why so.
func TestA2AQuestionByItsID(t *testing.T) {
	s := open(t, map[string]string{"asking.yaml": asking(`{name: q, question: "Go?"}`)})
	p := s.peer("asking", speeches[0])
	task := p.send(words("go"))
	asked := factsOf(t, task.Metadata).Waits
	answer := func(question string) *a2a.SendMessageRequest {
		m := to(task, "no")
		m.Metadata = map[string]any{"refrain": map[string]any{"question": question, "reason": "it rains"}}
		return &a2a.SendMessageRequest{Message: m}
	}
	if _, err := p.SendMessage(t.Context(), answer("another")); err == nil || !strings.Contains(err.Error(), "no such question") {
		t.Errorf("an answer to another question: %v", err)
	}
	if got, err := p.SendMessage(t.Context(), answer(asked[0].ID)); err != nil || got.(*a2a.Task).Status.State != a2a.TaskStateCompleted {
		t.Errorf("the answer leads to %+v: %v", got, err)
	}
	if log := string(s.ok("GET", "/api/v1/runs/"+string(task.ID)+"/events", nil, nil).body); !strings.Contains(log, "it rains") {
		t.Errorf("the reason is not in %s", log)
	}
}

// A12: a definition runs one of another server as an agent, with a question in the middle.
func TestA2ABetweenServers(t *testing.T) {
	far := open(t, map[string]string{"climbing.yaml": climbing})
	for _, path := range []string{"/a2a/v1/climbing", "/a2a/climbing"} {
		near := open(t, map[string]string{"near.yaml": fmt.Sprintf(`name: near
max_iterations: 2
sub_agents:
  - {name: guide, endpoint: %s%s, output_key: report}
`, far.url, path)}, private)
		id := near.run(map[string]any{"definition": "near", "input": "Up!"}).Run
		answers := 0
		for near.wait(id) == "waiting" {
			var run listed
			near.ok("GET", "/api/v1/runs/"+id, nil, &run)
			if len(run.Waits) == 0 { // it has the answer, and has not taken it up yet
				time.Sleep(time.Millisecond)
				continue
			}
			if len(run.Waits) != 1 || !strings.Contains(run.Waits[0].Text, "yes or no") {
				t.Fatalf("the run asks %+v", run.Waits)
			}
			answers++
			value := "yes"
			if answers == 1 {
				value = "perhaps"
			}
			near.ok("POST", "/api/v1/runs/"+id+":answer", map[string]any{"value": value}, nil)
		}
		var state struct{ State map[string]any }
		near.ok("GET", "/api/v1/runs/"+id+"/state", nil, &state)
		if state.State["report"] != "At 7." || answers != 5 {
			t.Errorf("after %d answers the state is %+v", answers, state.State)
		}
		var runs struct{ Runs []listed }
		far.ok("GET", "/api/v1/runs", nil, &runs)
		for _, run := range runs.Runs {
			if run.Status != "completed" {
				t.Errorf("there the run is %+v", run)
			}
			far.ok("DELETE", "/api/v1/runs/"+run.Run, nil, nil)
		}
		if len(runs.Runs) != 2 {
			t.Errorf("there are %d runs for 2 iterations", len(runs.Runs))
		}
	}
}

// What a client sends is not trusted: no path, no file, no key, nothing large, nothing of another origin.
func TestA2AHostileClient(t *testing.T) {
	const key = "sk-ant-REDACTED"
	s := open(t, map[string]string{"climbing.yaml": climbing, "broken.yaml": "name: broken\nsub_agents: 3\n",
		"leaks.yaml": "name: leaks\ndescription: It says " + key + "\ntext: The key is " + key + "\n",
	}, func(c *server.Config) { c.MaxBody = 50_000 })
	for _, by := range speeches {
		p := s.peer("climbing", by)
		bad := func(kind error, says string, m *a2a.Message) {
			t.Helper()
			_, err := p.SendMessage(t.Context(), &a2a.SendMessageRequest{Message: m})
			p.refusal(err, kind, says)
		}
		bad(a2a.ErrInvalidParams, `no input "to"`, a2a.NewMessage(a2a.MessageRoleUser, a2a.NewDataPart(map[string]any{"to": 3})))
		bad(a2a.ErrInvalidParams, `input "from"`, a2a.NewMessage(a2a.MessageRoleUser, a2a.NewDataPart(map[string]any{"from": "far"})))
		bad(a2a.ErrInvalidParams, "role", a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart("Up!")))
		bad(a2a.ErrInvalidParams, "no parts", a2a.NewMessage(a2a.MessageRoleUser))
		bad(a2a.ErrInvalidParams, "more than one", a2a.NewMessage(a2a.MessageRoleUser, a2a.NewDataPart(map[string]any{}),
			a2a.NewDataPart(map[string]any{})))
		bad(a2a.ErrUnsupportedContentType, "part 1 of the message is a file", a2a.NewMessage(a2a.MessageRoleUser, a2a.NewRawPart([]byte("x"))))
		bad(a2a.ErrUnsupportedContentType, "part 1 of the message is a file",
			a2a.NewMessage(a2a.MessageRoleUser, a2a.NewFileURLPart("file:///etc/passwd", "text/plain")))
		nameless := words("Up!")
		nameless.ID = strings.Repeat("x", 300)
		bad(a2a.ErrInvalidParams, "messageId", nameless)
		odd := words("Up!")
		odd.ContextID = "a\nb"
		bad(a2a.ErrInvalidParams, "contextId", odd)
		for _, id := range []a2a.TaskID{"none", "a b", "last", "x\x00y"} {
			bad(nil, "no", to(a2a.TaskInfo{TaskID: id}, "yes"))
		}
		same := words("Up!")
		task := p.send(same)
		same.Parts[0] = a2a.NewTextPart("Down!")
		bad(a2a.ErrInvalidParams, "messageId was used already", same)
		elsewhere := to(task, "yes")
		elsewhere.ContextID = "other"
		bad(a2a.ErrInvalidParams, "another context", elsewhere)
		leaks := s.peer("leaks", by)
		if text := fmt.Sprint(leaks.card); strings.Contains(text, key) {
			t.Errorf("the card says %s", text)
		}
		if h := leaks.stream(words("my key is " + key)); strings.Contains(fmt.Sprint(h, leaks.get(h.TaskID).History[0].Parts[0].Text()), key) ||
			!strings.Contains(h.answer, "The key is [") {
			t.Errorf("the stream tells %+v", h)
		}
		_, err := leaks.GetTask(t.Context(), &a2a.GetTaskRequest{ID: task.ID})
		leaks.refusal(err, a2a.ErrTaskNotFound, "no run") // it is another agent's
		_, err = p.GetTask(t.Context(), &a2a.GetTaskRequest{ID: task.ID, HistoryLength: new(-1)})
		p.refusal(err, a2a.ErrInvalidParams, "historyLength")
		_, err = p.CreateTaskPushConfig(t.Context(), &a2a.PushConfig{TaskID: task.ID, URL: "http://169.254.169.254/"})
		p.refusal(err, nil, "not")
		if _, err := p.SendMessage(t.Context(), &a2a.SendMessageRequest{Message: words(strings.Repeat("much ", 20_000))}); err == nil {
			t.Error("a large message was taken")
		}
	}
	body := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": map[string]any{"id": "none"}}
	for _, path := range []string{"/a2a/v1/climbing", "/a2a/climbing", "/a2a/v1/climbing/message:send"} {
		s.refused(421, "wrong_host", "POST", path, body, "Host", "evil.example")
		s.refused(403, "cross_origin", "POST", path, body, "Origin", "https://evil.example")
		s.refused(415, "wrong_type", "POST", path, "text")
		s.refused(413, "too_large", "POST", path, map[string]any{"x": strings.Repeat("x", 60_000)})
		s.refused(405, "wrong_method", "PUT", path, body)
	}
	for _, path := range []string{"/a2a/v1/none", "/a2a/none"} {
		s.refused(404, "definition_not_found", "POST", path, body)
	}
	for _, path := range []string{"/a2a/v1/..%2Fclimbing", "/a2a/%2Fetc%2Fpasswd", "/a2a/v1/.hidden", "/a2a/v1/con%20x"} {
		if got := s.do("POST", path, body); got.status != 400 && got.status != 404 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	for _, path := range []string{"/a2a/", "/a2a/v1/", "/a2a/v1/climbing/other", "/a2a/climbing/v1/other/x"} {
		s.refused(404, "no_route", "POST", path, body)
	}
	const card = "/a2a/v1/climbing/.well-known/agent-card.json"
	had := s.ok("GET", card, nil, nil) // clients may keep a card for a while, and ask whether it has changed
	if got := s.do("GET", card, nil, "If-None-Match", had.header.Get("ETag")); got.status != 304 ||
		had.header.Get("Cache-Control") != "private, max-age=60" {
		t.Errorf("the card has %v, and is answered with %d", had.header, got.status)
	}
	for path, method := range map[string]string{"/a2a/v1/climbing/": "GetTask",
		"/a2a/climbing/": "tasks/get"} { // as clients in Python write it
		body["method"] = method
		if got := s.do("POST", path, body); got.status != 200 || !strings.Contains(string(got.body), "-32001") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	s.refused(404, "no_card", "GET", "/.well-known/agent-card.json", nil)
	s.refused(422, "bad_definition", "GET", "/a2a/v1/broken/.well-known/agent-card.json", nil)
	if got := s.do("POST", "/a2a/v1/broken", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": map[string]any{
		"message": map[string]any{"messageId": "1", "role": "ROLE_USER",
			"parts": []any{map[string]any{"text": "Up!"}}}}}); !strings.Contains(string(got.body), "-32602") ||
		!strings.Contains(string(got.body), "broken.yaml:2:") {
		t.Errorf("a definition with mistakes runs: %s", got.body)
	}
	for _, nonsense := range []any{nil, 3, []any{}, map[string]any{}, map[string]any{"jsonrpc": "2.0", "id": 1, "method": "SendMessage"},
		map[string]any{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": map[string]any{"message": nil}},
		map[string]any{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": map[string]any{"message": map[string]any{
			"messageId": "1", "role": "ROLE_USER", "parts": []any{nil}}}},
		map[string]any{"jsonrpc": "2.0", "id": []any{}, "method": "GetTask"}, map[string]any{"jsonrpc": "2.0", "id": 1, "method": "Everything"},
	} {
		for _, path := range []string{"/a2a/v1/climbing", "/a2a/climbing"} {
			if got := s.do("POST", path, nonsense); !strings.Contains(string(got.body), `"error":`) || strings.Contains(string(got.body), "panic") {
				t.Errorf("%s: %v: %d %s", path, nonsense, got.status, got.body)
			}
		}
	}
	for path, version := range map[string]string{"/a2a/v1/climbing": "2.0", "/a2a/climbing": "1.0"} {
		method := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": map[string]any{"id": "none"}}
		if strings.Contains(path, "v1") {
			method["method"] = "GetTask"
		}
		if got := s.do("POST", path, method, "A2A-Version", version); !strings.Contains(string(got.body), "-32009") {
			t.Errorf("%s in version %s: %s", path, version, got.body)
		}
	}
}

// The token is needed where there is one, and the card says so.
func TestA2AToken(t *testing.T) {
	const token = "correct-horse-battery"
	s := open(t, map[string]string{"counting.yaml": counting}, func(c *server.Config) { c.Token = token })
	body := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": map[string]any{}}
	for _, given := range []string{"", "Bearer wrong-horse-battery", "Basic " + token} {
		s.refused(401, "no_token", "POST", "/a2a/v1/counting", body, "Authorization", given)
		for _, below := range []string{"", "/a2a/counting", "/a2a/v1/counting"} {
			s.refused(401, "no_token", "GET", below+"/.well-known/agent-card.json", nil, "Authorization", given)
		}
	}
	p := s.peer("counting", speeches[0], &http.Client{Transport: bearer(token)})
	scheme, ok := p.card.SecuritySchemes["token"].(a2a.HTTPAuthSecurityScheme)
	if !ok || scheme.Scheme != "Bearer" || len(p.card.SecurityRequirements) != 1 {
		t.Errorf("the card says %+v", p.card.SecuritySchemes)
	}
	if got := p.send(words("go")); got.Status.State != a2a.TaskStateCompleted || got.Artifacts[0].Parts[0].Text() != "It is 40." {
		t.Errorf("the task is %+v", got)
	}
	// A server with one definition is one agent.
	var card a2a.AgentCard
	s.ok("GET", "/.well-known/agent-card.json", nil, &card, "Authorization", "Bearer "+token)
	if card.Name != "counting" || card.SupportedInterfaces[0].URL != s.url+"/a2a/v1/counting" {
		t.Errorf("the card is %+v", card)
	}
	// Its card is for clients of both versions.
	both := agentcard.NewResolver(&http.Client{Transport: bearer(token)})
	if now, err := both.Resolve(t.Context(), s.url); err != nil || len(now.SecuritySchemes) != 1 || len(now.SupportedInterfaces) != 4 {
		t.Errorf("a client of 1.0 reads %+v, %v", now, err)
	}
	oldest, err := oldcard.NewResolver(&http.Client{Transport: bearer(token)}).Resolve(t.Context(), s.url)
	if err != nil || oldest.URL != s.url+"/a2a/counting" || len(oldest.SecuritySchemes) != 1 || len(oldest.Security) != 1 {
		t.Errorf("a client of 0.3 reads %+v, %v", oldest, err)
	}
	s.start(func(c *server.Config) { c.ReadOnly = true })
	s.refused(403, "read_only", "POST", "/a2a/v1/counting", body)
	s.refused(403, "read_only", "GET", "/a2a/v1/counting/.well-known/agent-card.json", nil)
}

// An ID that no task can have is an error of the protocol, also where it makes the path another one.
func TestOddTaskIDsOverHTTP(t *testing.T) {
	s := open(t, map[string]string{"counting.yaml": counting})
	l := s.port()
	s.listening(l)
	for _, below := range []string{"/a2a/v1/counting", "/a2a/counting/v1"} {
		for _, ask := range []string{"GET /tasks/", "GET /tasks/..%2F..%2Fx", "GET /tasks/../../x", "GET /tasks/%20", "POST /tasks/:cancel",
			"POST /tasks/..%2Fx:cancel"} {
			method, path, _ := strings.Cut(ask, " ")
			conn := s.dial(l, method+" "+below+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != http.StatusNotFound || !strings.Contains(string(body), "There is no such run") ||
				strings.Contains(string(body), "urn:refrain:no_route") {
				t.Errorf("%s%s: %s %s", below, ask, resp.Status, body)
			}
		}
	}
}
