// SPDX-License-Identifier: Apache-2.0

// Package adka2a makes an agent an executor of a2a-go's server of the Agent2Agent protocol, as ADK's package of this name does.
//
//	executor := adka2a.NewExecutor(adka2a.ExecutorConfig{RunnerConfig: runner.Config{
//		AppName: root.Name(), Agent: root, SessionService: session.InMemoryService(),
//	}})
//	mux.Handle("/invoke", a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(executor)))
//
// The server of a2a-go keeps tasks, in memory unless it gets another store. Package server serves definitions and
// agents over A2A too; its tasks are runs, which survive a crash.
package adka2a

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/llmagent"
	"github.com/refrain-dev/refrain/internal/values/a2apart"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/tool/toolconfirmation"
)

// ExecutorConfig describes an executor.
type ExecutorConfig struct {
	// RunnerConfig describes the runner of the agent. The executor creates missing sessions. An A2A conversation is a
	// session with the same ID.
	RunnerConfig runner.Config
	// RunConfig configures the runs.
	RunConfig agent.RunConfig
	// BeforeExecuteCallback is called before each run, and returns the context of the run. Its error is the answer to
	// the client. Optional.
	BeforeExecuteCallback func(ctx context.Context, req *a2asrv.ExecutorContext) (context.Context, error)
}

// Executor runs an agent for the tasks of A2A clients.
type Executor struct {
	cfg    ExecutorConfig
	runner func() (*runner.Runner, error) // made once
}

var _ a2asrv.AgentExecutor = (*Executor)(nil)

// NewExecutor returns an executor. With a mistake in the config, each task fails.
func NewExecutor(cfg ExecutorConfig) *Executor {
	cfg.RunnerConfig.AutoCreateSession = true
	return &Executor{cfg, sync.OnceValues(func() (*runner.Runner, error) { return runner.New(cfg.RunnerConfig) })}
}

// user is the user of a conversation whose client has not signed in.
const user = "A2A_USER_"

// Execute runs the agent with the message of a task. Each event with text or files is an update of the task's one artifact.
// The task completes, fails with the error of the run, or needs input if a tool waits for a person.
func (e *Executor) Execute(ctx context.Context, req *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		if req.Message == nil {
			yield(nil, errors.New("the request has no message"))
			return
		}
		if before := e.cfg.BeforeExecuteCallback; before != nil {
			in, err := before(ctx, req)
			if err == nil && in == nil {
				err = errors.New("it has returned no context")
			}
			if err != nil {
				yield(nil, fmt.Errorf("BeforeExecuteCallback: %w", err))
				return
			}
			ctx = in
		}
		x := execution{req: req, yield: yield}
		if req.StoredTask == nil && !yield(a2a.NewSubmittedTask(req, req.Message), nil) {
			return
		}
		if !x.status(a2a.TaskStateWorking) {
			return
		}
		if err := x.run(ctx, e); err != nil && !x.left {
			x.status(a2a.TaskStateFailed, a2a.NewTextPart(err.Error()))
		}
	}
}

// Cancel ends a task. The server of a2a-go cancels the context of a run in progress.
func (e *Executor) Cancel(_ context.Context, req *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		yield(a2a.NewStatusUpdateEvent(req, a2a.TaskStateCanceled, nil), nil)
	}
}

// execution is one run for a task.
type execution struct {
	req   *a2asrv.ExecutorContext
	yield func(a2a.Event, error) bool
	left  bool // nobody listens any more

	artifact a2a.ArtifactID // empty before it has begun
	pieces   bool           // of an answer that streams were sent
	waits    []*a2a.Part    // what a person is asked
}

func (x *execution) send(ev a2a.Event) bool {
	x.left = x.left || !x.yield(ev, nil)
	return !x.left
}

// status changes the state of the task, with a message if there are parts.
func (x *execution) status(state a2a.TaskState, parts ...*a2a.Part) bool {
	var msg *a2a.Message
	if len(parts) > 0 {
		msg = a2a.NewMessageForTask(a2a.MessageRoleAgent, x.req, parts...)
	}
	return x.send(a2a.NewStatusUpdateEvent(x.req, state, msg))
}

func (x *execution) run(ctx context.Context, e *Executor) error {
	r, err := e.runner()
	if err != nil {
		return err
	}
	content, err := x.content()
	if err != nil {
		return err
	}
	who := user + x.req.ContextID
	if x.req.User != nil && x.req.User.Name != "" {
		who = x.req.User.Name
	}
	for ev, err := range r.Run(ctx, who, x.req.ContextID, content, e.cfg.RunConfig) {
		if err != nil {
			return err
		}
		if !x.tell(ev) {
			return nil
		}
	}
	if x.waits != nil {
		x.status(a2a.TaskStateInputRequired, x.waits...)
		return nil
	}
	x.status(a2a.TaskStateCompleted)
	return nil
}

// tell sends what an event says. The whole of an answer whose pieces were sent is not sent again.
func (x *execution) tell(ev *session.Event) bool {
	if ev.ErrorCode != "" || ev.ErrorMessage != "" {
		return x.status(a2a.TaskStateWorking, a2a.NewTextPart(fmt.Sprintf("%s: %s", ev.ErrorCode, ev.ErrorMessage)))
	}
	if len(ev.LongRunningToolIDs) > 0 {
		x.waits = append(x.waits, questions(ev)...)
	}
	again := x.pieces && !ev.Partial
	x.pieces = ev.Partial && ev.Content != nil
	parts := a2apart.Outgoing(ev.Content)
	if ev.Author == "user" || len(parts) == 0 || again {
		return true
	}
	if x.artifact == "" {
		first := a2a.NewArtifactEvent(x.req, parts...)
		x.artifact = first.Artifact.ID
		return x.send(first)
	}
	return x.send(a2a.NewArtifactUpdateEvent(x.req, x.artifact, parts...))
}

// BuildAgentSkills returns a skill for an agent, for each of its tools, and for each agent below it. Instructions for models are
// left out.
func BuildAgentSkills(a agent.Agent) []a2a.AgentSkill {
	about := a.Description()
	if about == "" {
		about = "Runs " + a.Name() + "."
	}
	skills := []a2a.AgentSkill{{ID: a.Name(), Name: a.Name(), Description: about, Tags: []string{string(agent.TypeOf(a))}}}
	if asks, ok := a.(*llmagent.Agent); ok {
		for _, t := range asks.Config().Tools {
			skills = append(skills, a2a.AgentSkill{
				ID: a.Name() + "-" + t.Name(), Name: t.Name(), Description: t.Description(), Tags: []string{"tool"}})
		}
	}
	for _, sub := range a.SubAgents() {
		skills = append(skills, BuildAgentSkills(sub)...)
	}
	return skills
}

// questions are the calls of an event that wait for a person, each as data: its ID, name and arguments.
func questions(ev *session.Event) (parts []*a2a.Part) {
	waits := make(map[string]bool)
	for _, id := range ev.LongRunningToolIDs {
		waits[id] = true
	}
	if ev.Content == nil {
		return nil
	}
	for _, p := range ev.Content.Parts {
		if p == nil || p.FunctionCall == nil || !waits[p.FunctionCall.ID] {
			continue
		}
		call := p.FunctionCall
		if call.Name == toolconfirmation.FunctionCallName {
			if original, err := toolconfirmation.OriginalCallFrom(call); err == nil {
				parts = append(parts, a2a.NewTextPart(fmt.Sprintf("Confirm the call of %s: answer yes or no.", original.Name)))
			}
		}
		data := map[string]any{"id": call.ID, "name": call.Name}
		if args, err := session.Plain(call.Args); err == nil { // a confirmation has Go structs among them
			data["args"] = args
		}
		parts = append(parts, a2a.NewDataPart(data))
	}
	return parts
}

// content is the message of the client. If the task waits for a person, it is the answer: data with the ID and name of the
// call, and its response; or a text, which answers the only call, and for a confirmation is yes or no.
func (x *execution) content() (*genai.Content, error) {
	msg := x.req.Message
	open := x.open()
	c := &genai.Content{Role: genai.RoleUser}
	if len(open) == 0 {
		c.Parts = a2apart.IncomingAll(msg.Parts)
		return c, nil
	}
	for _, p := range msg.Parts {
		data, _ := p.Content.(a2a.Data)
		given, _ := data.Value.(map[string]any)
		id, _ := given["id"].(string)
		response, _ := given["response"].(map[string]any)
		if call := open[id]; call != "" && response != nil {
			c.Parts = append(c.Parts, &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: id, Name: call, Response: response}})
		}
	}
	if len(c.Parts) > 0 {
		return c, nil
	}
	if len(open) > 1 {
		return nil, fmt.Errorf("the task asks %d questions: answer each with data that has its id and a response", len(open))
	}
	var text strings.Builder
	for _, p := range a2apart.IncomingAll(msg.Parts) {
		text.WriteString(p.Text)
	}
	for id, name := range open {
		response := map[string]any{"result": text.String()}
		if name == toolconfirmation.FunctionCallName {
			yes := strings.EqualFold(strings.TrimSpace(text.String()), "yes")
			if !yes && !strings.EqualFold(strings.TrimSpace(text.String()), "no") {
				return nil, fmt.Errorf("%q is no answer to a confirmation: answer yes or no", text.String())
			}
			response = map[string]any{"confirmed": yes}
		}
		c.Parts = []*genai.Part{{FunctionResponse: &genai.FunctionResponse{ID: id, Name: name, Response: response}}}
	}
	return c, nil
}

// open are the names of the calls that the task waits for, by their IDs, as its last message says.
func (x *execution) open() map[string]string {
	open := make(map[string]string)
	task := x.req.StoredTask
	if task == nil || task.Status.State != a2a.TaskStateInputRequired || task.Status.Message == nil {
		return open
	}
	for _, p := range task.Status.Message.Parts {
		data, _ := p.Content.(a2a.Data)
		asked, _ := data.Value.(map[string]any)
		id, _ := asked["id"].(string)
		name, _ := asked["name"].(string)
		if id != "" && name != "" {
			open[id] = name
		}
	}
	return open
}
