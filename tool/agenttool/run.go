// SPDX-License-Identifier: Apache-2.0

package agenttool

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/tool"
)

// errEnded is why an agent may ask its model no more.
var errEnded = errors.New("the step that called the agent has ended")

// run is one run of an agent for a tool call.
type run struct {
	ctx    tool.Context // of the call
	inside *inside      // of the agent
	asked  *genai.Content
	view   *session.View // the agent's session

	said, final *session.Event // what answers, of all words, and of those that ended a turn
	waits       bool           // a person was asked
}

func newRun(ctx tool.Context, asked *genai.Content) *run {
	r := &run{ctx: ctx, asked: asked}
	r.view = newView(ctx, asked)
	// WithContext leads past the call's own artifacts: the agent's steps may
	// save some at one time, and say so in their events.
	r.inside = &inside{InvocationContext: ctx.WithContext(drive.At(ctx).WithinToolCall(ctx.FunctionCallID())), run: r}
	return r
}

// inside is the invocation as the agent sees it: the request is the user's message, and the session
// begins with it.
type inside struct {
	agent.InvocationContext
	run *run
}

func (i *inside) Session() session.Session    { return i.run.view }
func (i *inside) UserContent() *genai.Content { return i.run.asked }
func (i *inside) WithContext(ctx context.Context) agent.InvocationContext {
	return &inside{InvocationContext: i.InvocationContext.WithContext(ctx), run: i.run}
}

// newView is a session that begins with the request, in the caller's state.
func newView(ctx tool.Context, asked *genai.Content) *session.View {
	s := ctx.Session()
	first := &session.Event{
		ID: uuid.NewString(), Seq: 1, Timestamp: time.Now(),
		InvocationID: ctx.InvocationID(), Branch: ctx.Branch(), Author: "user",
	}
	first.Content = asked
	state, scoped := make(map[string]any), make(map[string]any)
	for k, v := range drive.At(ctx).State().All() {
		if strings.HasPrefix(k, session.KeyPrefixIteration) {
			scoped[k] = v
		} else {
			state[k] = v
		}
	}
	view := session.NewView(session.ViewConfig{
		AppName: s.AppName(), UserID: s.UserID(), SessionID: s.ID(), State: state,
		Events: []*session.Event{first}, LastSeq: first.Seq, Updated: first.Timestamp,
	})
	here := view.StateAt(drive.At(ctx).Address())
	for k, v := range scoped {
		_ = here.Set(k, v) // a view takes everything
	}
	return view
}

// take adds an event to the agent's session and its changes to the call.
func (r *run) take(ev *session.Event) error {
	if ev.Partial {
		return nil
	}
	if ev.Mark != nil && ev.Mark.Kind == mark.KindRequested && !drive.At(r.ctx).LogRequest(ev) {
		return errEnded
	}
	tool.AddUsage(r.ctx, ev.UsageMetadata)
	ev.Seq = r.view.LastSeq() + 1
	if ev.ID == "" {
		ev.ID = uuid.NewString()
	}
	if ev.Timestamp.IsZero() {
		ev.Timestamp = time.Now()
	}
	r.view.Apply(ev)
	if ev.Mark != nil {
		return nil
	}
	if ev.Text() != "" {
		r.said = session.Answer(r.said, ev)
		if ev.IsFinalResponse() {
			r.final = session.Answer(r.final, ev)
		}
	}
	return r.merge(ev)
}

// result returns the agent's answer.
func (r *run) result() string {
	if ev := cmp.Or(r.final, r.said); ev != nil {
		return ev.Text()
	}
	return ""
}

// merge adds an event's actions to those of the call.
func (r *run) merge(ev *session.Event) error {
	for k, v := range ev.Actions.StateDelta {
		if strings.HasPrefix(k, session.KeyPrefixIteration) && r.looped(ev.Address) {
			continue // of a loop that the caller is not in
		}
		if err := r.ctx.State().Set(k, v); err != nil {
			return err
		}
	}
	a := r.ctx.Actions()
	for name, version := range ev.Actions.ArtifactDelta {
		if a.ArtifactDelta == nil {
			a.ArtifactDelta = make(map[string]int64)
		}
		a.ArtifactDelta[name] = version
	}
	r.waits = r.waits || len(ev.Actions.RequestedToolConfirmations) > 0
	r.exit(ev)
	return nil
}

// looped reports whether a step is in a loop that the caller is not in.
func (r *run) looped(at session.Address) bool {
	own := drive.At(r.ctx).Address()
	return len(at) > len(own) && strings.Contains(string(at[len(own):]), "[")
}

// exit passes on a request to leave a loop, unless a loop inside the agent has handled it
// completely. The request is then the caller's, because loops know their steps, but not the tools
// of steps.
func (r *run) exit(ev *session.Event) {
	if !ev.Actions.AsksToLeave() || r.waits {
		return
	}
	x := session.Exit{Plain: true}
	if asked := ev.Actions.Exit; asked != nil {
		x = *asked
	}
	own := drive.At(r.ctx).Address()
	handled := len(x.HandledBy) > len(own) && x.HandledBy.Under(own)
	further := x.Scope == session.ScopeAll || x.Scope != "" && drive.At(r.ctx).Loop().IsInside(x.Scope)
	if x.Refused != "" || handled && !further {
		return
	}
	if caller := r.ctx.Agent(); caller != nil {
		x.By = caller.Name()
	}
	a := r.ctx.Actions()
	a.Escalate, a.SkipSummarization, a.Exit = true, true, &x
}
