// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/values/a2apart"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// cancelTime limits the request that cancels the remote task.
const cancelTime = 5 * time.Second

// run is one run of the agent.
type run struct {
	*A2AAgent
	ctx     agent.InvocationContext
	yield   func(*session.Event, error) bool
	left    bool // nobody listens any more
	actions session.EventActions

	key     stepKey
	conn    *connection
	where   string  // the card is from
	before  attempt // what earlier attempts have left, and then this one
	message string  // the ID of the last message
	task    a2a.TaskInfo
	open    bool  // the task is under way, and is canceled if that is not wanted any more
	noted   bool  // the log says so
	heard   int   // events of the remote agent
	asked   *note // the question that a resumed run has asked; nil if there is none
	asks    int   // questions to a person
	got     receipt
	// patience is the time until which a task that waits for a sign-in may continue by itself; zero if
	// no person has signed in.
	patience time.Time
}

func (a *A2AAgent) run(ctx agent.InvocationContext, yield func(*session.Event, error) bool) {
	r := &run{A2AAgent: a, ctx: ctx, yield: yield, key: keyOf(ctx)}
	r.before = a.memory.of(r.key)
	if r.recorded() {
		return
	}
	err := r.ask()
	switch {
	case r.left:
	case ctx.Err() != nil:
		yield(nil, context.Cause(ctx))
	case err != nil:
		if r.conn != nil {
			err = r.conn.wire.shown(err)
		}
		yield(nil, err)
	}
}

// recorded replays the events of the step from before its run was cut off. It reports whether the
// step is complete with them.
func (r *run) recorded() bool {
	for tasks := 0; ; {
		ev := drive.At(r.ctx).Recorded()
		if ev == nil {
			return false
		}
		n, ok := noteOf(ev)
		if !ok {
			return false
		}
		if ev.Mark != nil && ev.Mark.Kind == mark.KindAsked {
			r.asked = &n
			return false
		}
		if !r.yield(ev, nil) || n.state != working {
			return true
		}
		r.before = attempt{sent: tasks, task: n.task, context: n.context, where: n.card}
		r.message, r.noted = n.message, true
		tasks++
	}
}

// ask sends the work to the remote agent, and yields the result.
func (r *run) ask() (err error) {
	connect := r.connect
	if r.isFar() {
		connect = r.connectFar
	}
	if r.conn, r.where, err = connect(r.ctx); err != nil {
		return err
	}
	defer r.conn.close()
	defer func() { r.leave(err) }()
	if err = r.converse(); err != nil || r.left || !r.got.settled {
		return err
	}
	return r.settle()
}

// converse takes up the task that is under way, or sends a message.
func (r *run) converse() error {
	if r.asked != nil {
		return r.askedBefore()
	}
	if b := r.before; b.task != "" && b.where == r.where {
		r.task, r.open = a2a.TaskInfo{TaskID: a2a.TaskID(b.task), ContextID: b.context}, true
		err := r.await(nil, 0)
		gone := errors.Is(err, a2a.ErrTaskNotFound)
		if !gone && (err != nil || r.left || r.got.state != a2a.TaskStateCanceled || r.heard > 1) {
			return err
		}
		// The server has forgotten it, or it was canceled with the earlier part of
		// the run.
		if !gone {
			r.before.sent++
		}
		r.before.task, r.task, r.got = "", a2a.TaskInfo{}, receipt{}
		r.open, r.noted = false, false
	}
	msg, err := r.reply()
	if msg == nil && err == nil && !r.got.settled && !r.left {
		msg, err = r.fresh()
	}
	if msg == nil || err != nil {
		return err
	}
	return r.send(msg)
}

// leave ends the run. It cancels a task whose result no one needs, and leaves an unreachable task
// to the next attempt.
func (r *run) leave(err error) {
	switch {
	case r.open && (r.ctx.Err() != nil || r.left || err == nil || definite(err)):
		r.cancelTask() // there is nobody to tell if it cannot be canceled
		r.memory.keep(r.key, attempt{sent: r.before.sent + 1})
	case r.open:
		r.memory.keep(r.key, attempt{sent: r.before.sent, task: string(r.task.TaskID), context: r.task.ContextID,
			where: r.where})
	case err == nil || r.got.settled && r.waits(): // the log has it
		r.memory.keep(r.key, attempt{})
	case r.got.settled:
		r.memory.keep(r.key, attempt{sent: r.before.sent + 1})
	default: // perhaps the message has arrived
		r.memory.keep(r.key, attempt{sent: r.before.sent})
	}
}

func (r *run) cancelTask() {
	if r.isFar() {
		if r.ctx.Err() == nil { // else it is canceled there
			_ = r.exchange(opCancel, nil)
		}
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(r.ctx), cancelTime)
	defer stop()
	_, _ = r.conn.CancelTask(ctx, &a2a.CancelTaskRequest{ID: r.task.TaskID})
}

// settle yields the result of the task.
func (r *run) settle() error {
	for r.waits() {
		if !drive.At(r.ctx).CanAsk() {
			r.say(r.question())
			return nil
		}
		if err := r.askPerson(); err != nil || r.left || !r.got.settled {
			return err
		}
	}
	switch r.got.state {
	case a2a.TaskStateFailed, a2a.TaskStateRejected, a2a.TaskStateCanceled:
		return &TaskError{Task: shortText(string(r.task.TaskID)), State: states[r.got.state],
			Message: r.conn.wire.words(wordsOf(r.got.message))}
	}
	ev := r.note(states[r.got.state]).event()
	ev.Content = r.got.content()
	if v, ok := r.got.output(ev.Content); ok && r.cfg.OutputKey != "" {
		ev.Actions.StateDelta = map[string]any{r.cfg.OutputKey: v}
	}
	r.say(ev)
	return nil
}

func (r *run) note(state string) note {
	return note{task: string(r.task.TaskID), context: r.task.ContextID, state: state, message: r.message, card: r.where}
}

// say yields an event of the agent, with the changes of callbacks.
func (r *run) say(ev *session.Event) {
	if !ev.Partial {
		if r.actions.StateDelta != nil {
			maps.Copy(r.actions.StateDelta, ev.Actions.StateDelta)
			ev.Actions.StateDelta = r.actions.StateDelta
		}
		if r.actions.ArtifactDelta != nil {
			ev.Actions.ArtifactDelta = r.actions.ArtifactDelta
		}
		r.actions = session.EventActions{}
	}
	r.left = r.left || !r.yield(ev, nil)
}

// piece shows something that is no answer yet, if pieces are wanted.
func (r *run) piece(parts []*a2a.Part, thought bool) {
	if r.ctx.RunConfig() == nil || r.ctx.RunConfig().StreamingMode != agent.StreamingModeSSE {
		return
	}
	c := &genai.Content{Role: genai.RoleModel, Parts: a2apart.IncomingAll(parts)}
	if len(c.Parts) == 0 {
		return
	}
	for _, p := range c.Parts {
		p.Thought = thought
	}
	ev := &session.Event{}
	ev.Content, ev.Partial = c, true
	r.say(ev)
}

// prepare makes the request around a message, and has the callbacks look at it.
func (r *run) prepare(msg *a2a.Message) (*a2a.SendMessageRequest, error) {
	msg.ID, msg.Role = r.messageID(), a2a.MessageRoleUser
	req := &a2a.SendMessageRequest{Message: msg, Config: new(a2a.SendMessageConfig)}
	if r.cfg.MessageSendConfig != nil {
		*req.Config = *r.cfg.MessageSendConfig
	}
	req.Config.ReturnImmediately = !r.conn.streams // so that the task is known, and can be canceled
	cb := agent.NewCallbackContext(r.ctx, &r.actions)
	for _, f := range r.cfg.BeforeRequestCallbacks {
		ev, err := f(cb, req)
		switch {
		case err != nil:
			return nil, fmt.Errorf("before request callback: %w", err)
		case ev != nil:
			r.say(ev)
			return nil, nil
		}
	}
	r.message = req.Message.ID
	return req, nil
}
