// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/runs/access"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
)

// a2aAgent is a definition as an agent of the Agent2Agent protocol. A task is a run and has the ID of the run. All
// information about a task comes from the store. An a2aAgent serves one request.
type a2aAgent struct {
	s    *Server
	name string // of the definition
	err  error  // the error with which it answers every call; nil if the request is valid
	old  bool   // the client speaks version 0.3
	runs string // the cached result of runName; "" before the first call
}

// runName returns the name of the definition's runs.
func (a *a2aAgent) runName() string {
	if a.runs == "" {
		a.runs = a.name
		if file, text, err := a.s.runs.Folder.Read(a.name); err == nil {
			if def, err := a.s.runs.Folder.Load(file, text); err == nil {
				a.runs = def.Name
			}
		}
	}
	return a.runs
}

// checkTask returns an error if the task is not a run of the definition.
func (a *a2aAgent) checkTask(ctx context.Context, id a2a.TaskID) error {
	if a.err != nil {
		return a.err
	}
	if operations.CheckID(string(id)) == nil {
		one, err := a.s.runs.Brief(ctx, string(id), 1)
		if err != nil && !errors.Is(err, session.ErrNotFound) {
			return err
		}
		if err == nil {
			if run := session.RunOf(one); run != nil && run.Name == a.runName() {
				return nil
			}
		}
	}
	return problem.NoRun(string(id), supervisor.ErrNotFound)
}

// contextPrefix is the prefix of the ID of a task for which the client named a context. Because the ID shows this, the server
// finds the tasks of a context without reading the logs of other tasks.
const contextPrefix = "t_"

// taskPrefix returns the prefix of the IDs of all tasks of a context.
func taskPrefix(context string) string {
	sum := sha256.Sum256([]byte("context " + context))
	return contextPrefix + hex.EncodeToString(sum[:4]) + "_"
}

// messageOf returns the A2A message that started the run, or nil if the run was started in another way.
func messageOf(view *session.View) *program.Message {
	p, err := program.Of(view)
	if err != nil {
		return nil
	}
	return p.Message
}

// contextOf returns the context ID of a task: the one that the client named, or the ID of the task.
func (a *a2aAgent) contextOf(ctx context.Context, id string) (string, error) {
	if !strings.HasPrefix(id, contextPrefix) {
		return id, nil
	}
	one, err := a.s.runs.Brief(ctx, id, 0)
	if err != nil {
		return "", err
	}
	if m := messageOf(one); m != nil && m.Context != "" {
		return m.Context, nil
	}
	return id, nil
}

// states maps the status of a run to the state of its task. A paused or interrupted run has the state working, because it
// asks its client for nothing and continues when a person resumes it. The message and the metadata give its real status.
var states = map[string]a2a.TaskState{
	string(mark.RunRunning):   a2a.TaskStateWorking,
	string(mark.RunWaiting):   a2a.TaskStateInputRequired,
	string(mark.RunIsPaused):  a2a.TaskStateWorking,
	runlog.StatusInterrupted:  a2a.TaskStateWorking,
	runlog.StatusNotBegun:     a2a.TaskStateSubmitted,
	string(mark.RunCompleted): a2a.TaskStateCompleted,
	string(mark.RunFailed):    a2a.TaskStateFailed,
	string(mark.RunCanceled):  a2a.TaskStateCanceled,
	"":                        a2a.TaskStateSubmitted,
}

// isSettled reports whether a task stays as it is until its client acts, because it has ended or asks a question.
func isSettled(s a2a.TaskState) bool { return s.Terminal() || s == a2a.TaskStateInputRequired }

// statusOf returns the status of a run's task, with a message that explains it.
func statusOf(t *runEntry, info a2a.TaskInfo) a2a.TaskStatus {
	status := a2a.TaskStatus{State: states[t.Status]}
	if !t.Updated.IsZero() {
		status.Timestamp = new(t.Updated.UTC())
	}
	text := ""
	switch t.Status {
	case string(mark.RunWaiting):
		if len(t.Waits) > 0 {
			text = questionText(&t.Waits[0])
		}
	case string(mark.RunIsPaused), runlog.StatusInterrupted:
		text = "The run is " + t.Status
		if t.Paused != "" {
			text += ": " + t.Paused
		}
		text += ". It goes on when somebody resumes it."
	case string(mark.RunFailed), string(mark.RunCanceled):
		text = t.Error
	}
	if text != "" {
		status.Message = agentMessage(text, info)
	}
	return status
}

// questionText returns the text of a question, with the answers that it accepts.
func questionText(q *mark.Question) string {
	if q.Kind == mark.AskText && len(q.Options) == 0 {
		return q.Text
	}
	return q.Text + "\nAnswer with " + acceptedForms(q) + "."
}

// agentMessage returns a message of the agent with a text, without secrets.
func agentMessage(text string, info a2a.TaskInfo) *a2a.Message {
	return a2a.NewMessageForTask(a2a.MessageRoleAgent, info, a2a.NewTextPart(credential.Masked(text)))
}

// task returns a run as a task, and the status of the run. messages is how many of its last messages the task has; nil
// means all.
func (a *a2aAgent) task(ctx context.Context, id string, messages *int) (*a2a.Task, *runResult, error) {
	run, err := a.s.runResult(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	within, err := a.contextOf(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	info := a2a.TaskInfo{TaskID: a2a.TaskID(id), ContextID: within}
	task := &a2a.Task{
		ID: info.TaskID, ContextID: within, Status: statusOf(&run.runEntry, info), Metadata: taskMetadata(&run.runEntry),
	}
	if run.Result != "" {
		task.Artifacts = []*a2a.Artifact{
			{ID: "answer", Name: "answer", Parts: a2a.ContentParts{a2a.NewTextPart(credential.Masked(run.Result))}},
		}
	}
	if messages == nil || *messages > 0 {
		if task.History, err = a.history(ctx, info); err != nil {
			return nil, nil, err
		}
		if messages != nil {
			task.History = task.History[max(0, len(task.History)-*messages):]
		}
	}
	return task, run, nil
}

// history returns the messages between people and the run: the message that started it, and its questions with their
// answers.
func (a *a2aAgent) history(ctx context.Context, info a2a.TaskInfo) (all []*a2a.Message, err error) {
	view, err := a.s.runs.Brief(ctx, string(info.TaskID), 0)
	if err != nil {
		return nil, err
	}
	run, gone := session.RunOf(view), view.Log().Superseded()
	if run == nil {
		return nil, nil
	}
	add := func(role a2a.MessageRole, id, text string) {
		m := a2a.NewMessageForTask(role, info, a2a.NewTextPart(credential.Masked(text)))
		m.ID = id
		all = append(all, m)
	}
	for ev := range view.Log().All() {
		if ev.InvocationID != run.ID || ev.Author != "user" || ev.Content == nil {
			continue
		}
		id := ev.ID
		if m := messageOf(view); m != nil {
			id = m.ID
		}
		var text strings.Builder
		for _, part := range view.Log().Full(ev).Content.Parts {
			text.WriteString(part.Text)
		}
		add(a2a.MessageRoleUser, id, text.String())
		break
	}
	for ev := range view.Log().OutlineByKind(mark.KindAsked, mark.KindAnswered) {
		if ev.InvocationID != run.ID || gone.Has(ev.Seq) {
			continue
		}
		switch ev.Mark.Kind {
		case mark.KindAsked:
			var q mark.Question
			if err := ev.Mark.Decode(&q); err != nil {
				return nil, err
			}
			add(a2a.MessageRoleAgent, q.ID, questionText(&q))
		case mark.KindAnswered:
			var answer mark.Answer
			if err := ev.Mark.Decode(&answer); err != nil {
				return nil, err
			}
			text := string(answer.Value)
			_ = json.Unmarshal(answer.Value, &text) // a value that is not a text stays JSON
			add(a2a.MessageRoleUser, cmp.Or(answer.Key, ev.ID), text)
		}
	}
	return all, view.Err()
}

// GetTask returns a task with its present status.
func (a *a2aAgent) GetTask(ctx context.Context, req *a2a.GetTaskRequest) (*a2a.Task, error) {
	if err := cmp.Or(a.checkTask(ctx, req.ID), checkHistoryLength(req.HistoryLength)); err != nil {
		return nil, a.protocolError(err)
	}
	task, _, err := a.task(ctx, string(req.ID), req.HistoryLength)
	return task, a.protocolError(err)
}

// checkHistoryLength refuses a negative number of messages.
func checkHistoryLength(messages *int) error {
	if messages != nil && *messages < 0 {
		return problem.Bad("historyLength %d: give a number of at least 0", *messages)
	}
	return nil
}

// The default and the largest number of tasks on a page, as the protocol defines them.
const (
	tasksSize = 50
	tasksMost = 100
)

// checkPageSize refuses a pageSize of 0, because the SDK does not distinguish it from a missing pageSize.
func checkPageSize(r *http.Request, body []byte) error {
	size := r.URL.Query().Get("pageSize")
	if bytes.Contains(body, []byte(`"pageSize"`)) {
		var call struct {
			Params struct{ PageSize json.Number }
		}
		_ = json.Unmarshal(body, &call) // the SDK refuses a body that is not a valid call
		size = call.Params.PageSize.String()
	}
	if size == "" || strings.Trim(size, "0") != "" {
		return nil
	}
	return pageSizeError(0)
}

func pageSizeError(size int) error {
	return problem.Bad("pageSize %d: give a number from 1 to %d, or leave it out for %d", size, tasksMost, tasksSize)
}

// taskStates lists the states by which a list of tasks can be filtered.
var taskStates = []a2a.TaskState{a2a.TaskStateSubmitted, a2a.TaskStateWorking, a2a.TaskStateInputRequired, a2a.TaskStateAuthRequired,
	a2a.TaskStateCompleted, a2a.TaskStateFailed, a2a.TaskStateCanceled, a2a.TaskStateRejected}

// ListTasks lists the tasks, the last changed first.
func (a *a2aAgent) ListTasks(ctx context.Context, req *a2a.ListTasksRequest) (*a2a.ListTasksResponse, error) {
	out, err := a.list(ctx, req)
	return out, a.protocolError(err)
}

// list does what ListTasks does, and returns its error unchanged.
func (a *a2aAgent) list(ctx context.Context, req *a2a.ListTasksRequest) (*a2a.ListTasksResponse, error) {
	size := cmp.Or(req.PageSize, tasksSize)
	after, err := placeAt(req.PageToken)
	switch {
	case a.err != nil:
		return nil, a.err
	case err != nil:
		return nil, err
	case size < 0 || size > tasksMost:
		return nil, pageSizeError(size)
	case req.Status != "" && !slices.Contains(taskStates, req.Status):
		return nil, problem.Bad("status %q: give one of %v", req.Status, taskStates)
	case checkHistoryLength(req.HistoryLength) != nil:
		return nil, checkHistoryLength(req.HistoryLength)
	}
	all, err := a.s.runs.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	var tasks []session.Session
	for _, one := range all {
		if is, err := a.belongsInList(ctx, one, req); err != nil {
			return nil, err
		} else if is {
			tasks = append(tasks, one)
		}
	}
	slices.SortFunc(tasks, func(x, y session.Session) int { return placeOf(x).compare(placeOf(y)) })
	out := &a2a.ListTasksResponse{Tasks: []*a2a.Task{}, PageSize: size, TotalSize: len(tasks)}
	for _, one := range tasks {
		if after != (taskPlace{}) && placeOf(one).compare(after) <= 0 {
			continue
		}
		if len(out.Tasks) == size {
			out.NextPageToken = after.token()
			break
		}
		task, err := a.listEntry(ctx, one, req)
		if ignoreDeleted(err) != nil {
			return nil, err
		}
		if err == nil {
			out.Tasks, after = append(out.Tasks, task), placeOf(one)
		}
	}
	return out, nil
}

// belongsInList reports whether a run belongs into the list that req requests. In most cases it does not read the run's log.
func (a *a2aAgent) belongsInList(ctx context.Context, one session.Session, req *a2a.ListTasksRequest) (bool, error) {
	run, id := session.RunOf(one), one.ID()
	switch {
	case run == nil || run.Name != a.runName():
		return false, nil
	case req.ContextID != "" && req.ContextID != id && !strings.HasPrefix(id, taskPrefix(req.ContextID)):
		return false, nil
	case req.StatusTimestampAfter != nil && !one.LastUpdateTime().After(*req.StatusTimestampAfter):
		return false, nil
	}
	if req.ContextID != "" {
		if within, err := a.contextOf(ctx, id); within != req.ContextID || err != nil {
			return false, ignoreDeleted(err)
		}
	}
	if req.Status == "" || run.Status != mark.RunRunning {
		return req.Status == "" || states[string(run.Status)] == req.Status, nil
	}
	row, err := a.s.list.rowOf(ctx, one)
	return err == nil && states[row.Status] == req.Status, ignoreDeleted(err)
}

// ignoreDeleted returns nil if err reports that the run was deleted meanwhile, and err otherwise.
func ignoreDeleted(err error) error {
	if errors.Is(err, session.ErrNotFound) {
		return nil
	}
	return err
}

// listEntry returns a task for a list. It has messages and artifacts only if req asks for them.
func (a *a2aAgent) listEntry(ctx context.Context, one session.Session, req *a2a.ListTasksRequest) (*a2a.Task, error) {
	if req.IncludeArtifacts || req.HistoryLength != nil && *req.HistoryLength > 0 {
		messages := req.HistoryLength
		if messages == nil {
			messages = new(0)
		}
		task, _, err := a.task(ctx, one.ID(), messages)
		if task != nil && !req.IncludeArtifacts {
			task.Artifacts = nil
		}
		return task, err
	}
	row, err := a.s.list.rowOf(ctx, one)
	if err != nil {
		return nil, err
	}
	within, err := a.contextOf(ctx, row.ID)
	if err != nil {
		return nil, err
	}
	info, run := a2a.TaskInfo{TaskID: a2a.TaskID(row.ID), ContextID: within}, runEntry{*row}
	return &a2a.Task{ID: info.TaskID, ContextID: within, Status: statusOf(&run, info), Metadata: taskMetadata(&run)}, nil
}

// taskPlace is the position of a task in a list. The task that changed last comes first; the ID orders tasks that changed at
// the same time. If a task begins or changes, the other tasks keep their order, so the next page still fits.
type taskPlace struct {
	updated time.Time
	id      string
}

func placeOf(s session.Session) taskPlace { return taskPlace{s.LastUpdateTime(), s.ID()} }

// compare returns a negative number if p comes before q.
func (p taskPlace) compare(q taskPlace) int {
	return cmp.Or(q.updated.Compare(p.updated), strings.Compare(p.id, q.id))
}

// token returns the token of the page that begins after a position.
func (p taskPlace) token() string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.updated.UTC().Format(time.RFC3339Nano) + " " + p.id))
}

// placeAt reads the token of a page; without a token the place is zero.
func placeAt(token string) (taskPlace, error) {
	if token == "" {
		return taskPlace{}, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	at, id, ok := strings.Cut(string(text), " ")
	updated, no := time.Parse(time.RFC3339Nano, at)
	if err != nil || no != nil || !ok || id == "" {
		return taskPlace{}, problem.Bad("the pageToken is none of this server")
	}
	return taskPlace{updated, id}, nil
}

// CancelTask cancels the run, and waits up to [operations.LetsGo] until it has ended.
func (a *a2aAgent) CancelTask(ctx context.Context, req *a2a.CancelTaskRequest) (*a2a.Task, error) {
	err := operations.Permit(ctx, access.Operator)
	if err == nil {
		err = a.checkTask(ctx, req.ID)
	}
	if err != nil {
		return nil, a.protocolError(err)
	}
	id := string(req.ID)
	err = a.s.runs.Cancel(context.WithoutCancel(ctx), id, "canceled over A2A")
	if errors.Is(err, supervisor.ErrOver) {
		return nil, a2a.NewError(a2a.ErrTaskNotCancelable, credential.Masked(err.Error()))
	}
	if err != nil {
		return nil, a.protocolError(err)
	}
	soon, stop := context.WithTimeout(ctx, operations.LetsGo)
	defer stop()
	_, _ = a.s.runs.Supervisor.Wait(soon, id) // if it has not ended in time, the task shows its status
	task, _, err := a.task(ctx, id, nil)
	return task, a.protocolError(err)
}

// GetExtendedAgentCard reports that there is no extended card.
func (a *a2aAgent) GetExtendedAgentCard(context.Context, *a2a.GetExtendedAgentCardRequest) (*a2a.AgentCard, error) {
	return nil, a2a.NewError(a2a.ErrExtendedCardNotConfigured, "the agent has no other card")
}
