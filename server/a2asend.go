// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/uuid"

	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/access"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/operations/problem"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/web/wire"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// messageContent is the content of a message.
type messageContent struct {
	text     string
	data     any    // the value of its part of data
	hasData  bool   // the message has a part of data
	question string // the ID of the question that it answers, from its metadata; "" means the first question
	reason   string // the comment on the answer, from its metadata
}

// read checks a message and returns its content. It accepts text and one part of data, and refuses files.
func (a *a2aAgent) read(req *a2a.SendMessageRequest) (*messageContent, error) {
	m := req.Message
	switch {
	case a.err != nil:
		return nil, a.err
	case m == nil:
		return nil, problem.Bad("there is no message")
	case m.ID == "" || len(m.ID) > wire.KeyMost:
		return nil, problem.Bad("the message needs a messageId of up to %d characters", wire.KeyMost)
	case m.Role != a2a.MessageRoleUser:
		return nil, problem.Bad("the role of the message is %q, and not %s", m.Role, a2a.MessageRoleUser)
	case len(m.Parts) == 0:
		return nil, problem.Bad("the message has no parts")
	case len(m.ContextID) > wire.KeyMost || strings.ContainsFunc(m.ContextID, unicode.IsControl):
		return nil, problem.Bad("the contextId cannot be one: use up to %d characters", wire.KeyMost)
	}
	if c := req.Config; c != nil {
		if c.PushConfig != nil {
			if err := a.checkPush(c.PushConfig); err != nil {
				return nil, err
			}
		}
		if err := checkHistoryLength(c.HistoryLength); err != nil {
			return nil, err
		}
	}
	out := new(messageContent)
	var words []string
	for i, part := range m.Parts {
		if part == nil {
			return nil, problem.Bad("part %d of the message is empty", i+1)
		}
		switch v := part.Content.(type) {
		case a2a.Text:
			words = append(words, string(v))
		case a2a.Data:
			if out.hasData {
				return nil, problem.Bad("the message has more than one part of data")
			}
			out.data, out.hasData = v.Value, true
		default:
			return nil, a2a.NewError(a2a.ErrUnsupportedContentType, fmt.Sprintf("part %d of the message is a file: the "+
				"agent takes text, and data for its inputs", i+1))
		}
	}
	out.text = strings.Join(words, "\n")
	if hints, ok := m.Metadata["refrain"].(map[string]any); ok {
		out.question, _ = hints["question"].(string)
		out.reason, _ = hints["reason"].(string)
	}
	return out, nil
}

// carryOut carries out a message: it starts a run, or answers a question of the run that the message names. If a client sends
// the same message again, carryOut does nothing more and returns the same run. wrong says why an answer was not accepted.
func (a *a2aAgent) carryOut(ctx context.Context, req *a2a.SendMessageRequest) (id, wrong string, err error) {
	if err := operations.Permit(ctx, access.Operator); err != nil {
		return "", "", err
	}
	what, err := a.read(req)
	if err != nil {
		return "", "", err
	}
	ctx = context.WithoutCancel(ctx) // a message that was taken is carried out even if its client has gone
	if req.Message.TaskID != "" {
		id = string(req.Message.TaskID)
		wrong, err = a.answer(ctx, req.Message, what)
	} else {
		id, err = a.start(ctx, req.Message, what)
	}
	if errors.Is(err, operations.ErrKeyUsed) {
		err = problem.New(http.StatusUnprocessableEntity, "key_used", "The messageId was used already",
			"the other message had another text")
	}
	if err == nil && req.Config != nil && req.Config.PushConfig != nil {
		c := *req.Config.PushConfig
		c.TaskID = a2a.TaskID(id)
		if c.ID == "" { // the same for a message that arrives again, which adds no second address
			c.ID = uuid.NewSHA1(uuid.Nil, []byte(req.Message.ID+"\n"+c.URL)).String()
		}
		err = a.s.pushes.add(ctx, &c, a.old)
	}
	return id, wrong, err
}

// start starts a run with a message.
func (a *a2aAgent) start(ctx context.Context, m *a2a.Message, what *messageContent) (id string, err error) {
	req := &operations.StartRequest{
		StartArgs: operations.StartArgs{Definition: a.name, Input: what.text},
		Message:   &program.Message{ID: m.ID, Context: m.ContextID},
	}
	if what.hasData {
		state, ok := what.data.(map[string]any)
		if !ok {
			return "", problem.Bad("the part of data is no object: it has values for the definition's inputs, by their names")
		}
		req.State = state
	}
	key := strings.Join([]string{"a2a", a.name, m.ContextID, m.ID}, "\n")
	if req.ID = operations.KeyedID(key); m.ContextID != "" {
		req.ID = taskPrefix(m.ContextID) + strings.TrimPrefix(req.ID, "r_")
	}
	text, err := json.Marshal(req)
	if err != nil {
		return "", err
	}
	err = a.s.Replies.DoOnce(key, sha256.Sum256(text), func() error {
		_, err := a.s.runs.Start(ctx, req, key, text)
		return err
	})
	return req.ID, err
}

// answer answers a question of a run with a message.
func (a *a2aAgent) answer(ctx context.Context, m *a2a.Message, what *messageContent) (wrong string, err error) {
	if err := a.checkTask(ctx, m.TaskID); err != nil {
		return "", err
	}
	id := string(m.TaskID)
	within, err := a.contextOf(ctx, id)
	if err != nil {
		return "", err
	}
	if m.ContextID != "" && m.ContextID != within {
		return "", problem.Bad("the task belongs to another context")
	}
	text, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	key := strings.Join([]string{"a2a answer", id, m.ID}, "\n")
	err = a.s.Replies.DoOnce(key, sha256.Sum256(text), func() error {
		known, status, err := a.hasAnswered(ctx, id, m.ID)
		if known || err != nil {
			return err
		}
		open, err := a.s.runs.Supervisor.Questions(ctx, id)
		if err != nil {
			return err
		}
		i := 0
		if what.question != "" {
			i = slices.IndexFunc(open, func(q mark.Question) bool { return q.ID == what.question })
		}
		switch {
		case status.IsFinal():
			return problem.New(http.StatusConflict, "run_over", "The task has ended",
				"it is %s; a message without a task begins another", status)
		case i < 0 || len(open) == 0:
			return problem.New(http.StatusConflict, "no_question", "The task asks no such question",
				"it is %s; a message to a task answers its question", status)
		}
		q := &open[i]
		value := operations.AnswerValue(q, what.text)
		if what.hasData {
			value, _ = json.Marshal(what.data) // cannot fail, because it was decoded from JSON
			if q.Kind == mark.AskForm {
				value = operations.AnswerValue(q, string(value))
			}
		}
		err = a.s.runs.Answer(ctx, id, &operations.AnswerRequest{
			Question: q.ID, Value: value, Reason: what.reason, ClaimedBy: "a client over A2A", Key: m.ID,
		})
		if p, ok := errors.AsType[*problem.Problem](err); ok && p.Type == "urn:refrain:bad_answer" {
			wrong = "That does not answer the question: answer with " + acceptedForms(q) + ".\n" + q.Text
		}
		return err
	})
	if wrong != "" {
		err = nil
	}
	return wrong, err
}

// hasAnswered reports whether a message has answered a question of a run already. If it has not, hasAnswered also returns the
// status of the run.
func (a *a2aAgent) hasAnswered(ctx context.Context, id, message string) (bool, mark.RunStatus, error) {
	view, err := a.s.runs.Brief(ctx, id, 0)
	if err != nil {
		return false, "", err
	}
	for ev := range view.Log().OutlineByKind(mark.KindAnswered) {
		var answer mark.Answer
		if err := ev.Mark.Decode(&answer); err != nil {
			return false, "", err
		}
		if answer.Key == message {
			return true, "", nil
		}
	}
	if run := session.RunOf(view); run != nil {
		return false, run.Status, view.Err()
	}
	return false, "", view.Err()
}

// acceptedForms describes which answers a question accepts.
func acceptedForms(q *mark.Question) string {
	switch q.Kind {
	case mark.AskApproval, mark.AskConfirmation:
		return "yes or no"
	case mark.AskEdit:
		return "data: an object with new values for some of " + strings.Join(slices.Sorted(maps.Keys(q.Keys)), ", ")
	case mark.AskResolution:
		if q.IsEdited() {
			return "one of " + strings.Join(q.Options, ", ")
		}
		return `retry, skip, or data such as {"action": "result", "result": TEXT}`
	case mark.AskForm:
		return "decline, cancel, or data: an object with the fields of the form"
	}
	if len(q.Options) > 0 {
		return "one of " + strings.Join(q.Options, ", ")
	}
	return "a text"
}

// SendMessage carries out a message, and waits until the run has ended, is paused or asks a person, unless the client
// wants the task at once.
func (a *a2aAgent) SendMessage(ctx context.Context, req *a2a.SendMessageRequest) (a2a.SendMessageResult, error) {
	task, err := a.send(ctx, req)
	if err != nil {
		return nil, a.protocolError(err)
	}
	return task, nil
}

// send does what SendMessage does, and returns its error unchanged.
func (a *a2aAgent) send(ctx context.Context, req *a2a.SendMessageRequest) (*a2a.Task, error) {
	var config a2a.SendMessageConfig
	if req.Config != nil {
		config = *req.Config
	}
	if !config.ReturnImmediately {
		leave, err := a.s.place(ctx) // before carryOut, so that a request that is refused has changed nothing
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	id, wrong, err := a.carryOut(ctx, req)
	if err != nil {
		return nil, err
	}
	if wrong == "" && !config.ReturnImmediately {
		f, err := a.s.follow(ctx, id)
		if err != nil {
			return nil, err
		}
		defer f.leave()
		if err := a.s.waitIdleOn(ctx, f, 0, nil); err != nil {
			return nil, err
		}
	}
	task, _, err := a.task(ctx, id, config.HistoryLength)
	if err != nil {
		return nil, err
	}
	addRejection(task, wrong)
	return task, nil
}

// addRejection puts the text wrong, which says why an answer was not accepted, into a task that still waits for an answer.
func addRejection(task *a2a.Task, wrong string) {
	if wrong != "" && task.Status.State == a2a.TaskStateInputRequired {
		task.Status.Message = agentMessage(wrong, task.TaskInfo())
	}
}

// SendStreamingMessage carries out a message, and yields the changes of the task until it has ended or asks a question.
func (a *a2aAgent) SendStreamingMessage(ctx context.Context, req *a2a.SendMessageRequest) iter.Seq2[a2a.Event, error] {
	return a.streamTask(ctx, func() (id, wrong string, messages *int, err error) {
		if req.Config != nil {
			messages = req.Config.HistoryLength
		}
		id, wrong, err = a.carryOut(ctx, req)
		return id, wrong, messages, err
	})
}

// SubscribeToTask yields a task and its changes until the task has ended or asks a question. If it already asks one,
// SubscribeToTask yields only the task. If it has ended, the error is [a2a.ErrUnsupportedOperation], as section 3.1.6 of the
// protocol demands; a client of version 0.3, which has no such rule, gets the task.
func (a *a2aAgent) SubscribeToTask(ctx context.Context, req *a2a.SubscribeToTaskRequest) iter.Seq2[a2a.Event, error] {
	return a.streamTask(ctx, func() (id, wrong string, messages *int, err error) {
		id = string(req.ID)
		if err := a.checkTask(ctx, req.ID); err != nil || a.old {
			return id, "", nil, err
		}
		run, err := a.s.runResult(ctx, id)
		if err == nil && states[run.Status].Terminal() {
			err = problem.New(http.StatusConflict, "run_over", "The task has ended", "get it to see how")
		}
		return id, "", nil, err
	})
}

// streamTask yields the task whose ID begin returns, and then its changes: see sendChanges. It calls begin after it has a place
// among the streams.
func (a *a2aAgent) streamTask(ctx context.Context,
	begin func() (id, wrong string, messages *int, err error)) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		left := false
		tell := func(ev a2a.Event) bool {
			left = left || !yield(ev, nil)
			return !left
		}
		err := func() error {
			leave, err := a.s.place(ctx) // before begin, so that a request that is refused has changed nothing
			if err != nil {
				return err
			}
			defer leave()
			id, wrong, messages, err := begin()
			if err != nil {
				return err
			}
			f, err := a.s.follow(ctx, id)
			if err != nil {
				return err
			}
			defer f.leave()
			return a.sendChanges(ctx, f, wrong, messages, tell)
		}()
		if err != nil && !left {
			yield(nil, a.protocolError(err))
		}
	}
}

// errClientLeft reports that the client has left.
var errClientLeft = errors.New("the client has left")

// sendChanges passes the present task to say, then each iteration and each change of the task's state, at most ten times a second,
// and at the end the answer. It does not return when the run is paused, because the run may continue.
func (a *a2aAgent) sendChanges(ctx context.Context, f *feed, wrong string, messages *int, say func(a2a.Event) bool) error {
	known := f.loopProgress().iterations
	_, _, changed, _, err := f.take(math.MaxInt64) // before the task is read, so that no later change is missed
	if err != nil {
		return err
	}
	task, now, err := a.task(ctx, f.id, messages)
	if err != nil {
		return err
	}
	addRejection(task, wrong)
	if !say(task) || wrong != "" || isSettled(task.Status.State) {
		return nil
	}
	info, none, sent := task.TaskInfo(), 0, now.Status
	each := func(p *loopProgress) error {
		known = p.iterations
		row := runEntry{runlog.Row{ID: f.id, Name: now.Name, Status: string(mark.RunRunning), Iteration: p.iteration, Score: p.score}}
		status := a2a.NewStatusUpdateEvent(info, a2a.TaskStateWorking, agentMessage(p.message, info))
		status.Metadata = taskMetadata(&row)
		if !say(status) {
			return errClientLeft
		}
		return nil
	}
	for {
		if now.Status == string(mark.RunRunning) {
			if err := a.s.waitIdleOn(ctx, f, known, each); err != nil {
				return err
			}
		} else {
			select {
			case <-changed:
			case <-a.s.closing:
				return nil
			case <-ctx.Done():
				return nil
			}
		}
		if _, _, changed, _, err = f.take(math.MaxInt64); err != nil {
			return err
		}
		if task, now, err = a.task(ctx, f.id, &none); err != nil {
			return err
		}
		if sent == now.Status {
			continue
		}
		for _, artifact := range task.Artifacts {
			if !say(&a2a.TaskArtifactUpdateEvent{
				TaskID: info.TaskID, ContextID: info.ContextID, Artifact: artifact, LastChunk: true,
			}) {
				return nil
			}
		}
		sent = now.Status
		status := &a2a.TaskStatusUpdateEvent{
			TaskID: info.TaskID, ContextID: info.ContextID, Status: task.Status, Metadata: task.Metadata,
		}
		if !say(status) || isSettled(task.Status.State) {
			return nil
		}
	}
}
