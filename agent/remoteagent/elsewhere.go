// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/uuid"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/session"
)

// KindA2A is the kind of tasks that [Here] runs.
const KindA2A = "a2a"

// The operations of an exchange.
const (
	opSend   = "send"   // sends a message, and follows what comes of it
	opAwait  = "await"  // follows the task
	opLook   = "look"   // asks how the task is
	opCancel = "cancel" // cancels it
)

// exchange is a request to the remote agent that another machine sends for a run.
type exchange struct {
	Op        string                  `json:"op"`
	Source    string                  `json:"source,omitempty"` // of the card
	Card      *a2a.AgentCard          `json:"card,omitempty"`
	Hosts     []string                `json:"hosts,omitempty"`
	Headers   http.Header             `json:"headers,omitempty"`
	SizeLimit int64                   `json:"size_limit"`
	Request   *a2a.SendMessageRequest `json:"request,omitempty"`
	Task      string                  `json:"task,omitempty"`
	Context   string                  `json:"context,omitempty"`
	Patience  time.Duration           `json:"patience,omitempty"`
}

// exchangeResult is the result of an exchange.
type exchangeResult struct {
	Artifacts []*a2a.Artifact   `json:"artifacts,omitempty"`
	Message   *a2a.Message      `json:"message,omitempty"`
	State     a2a.TaskState     `json:"state,omitempty"`
	Settled   bool              `json:"settled,omitempty"`
	Task      string            `json:"task,omitempty"`
	Context   string            `json:"context,omitempty"`
	Open      bool              `json:"open,omitempty"`
	Failure   elsewhere.Failure `json:"failure,omitempty"`
}

// kinds are the kinds of errors of an exchange. After the last one it is no use to try again.
var kinds = elsewhere.Kinds{elsewhere.As[*LimitError]("limit"), elsewhere.Is("gone", a2a.ErrTaskNotFound), elsewhere.Late,
	elsewhere.When("final", definite, refusal{errors.New("the server has refused")})}

func (r *run) isFar() bool { return r.cfg.Elsewhere.Name != "" }

// connectFar is connect for a run whose requests another machine sends: it only strikes secrets out.
func (a *A2AAgent) connectFar(ctx agent.InvocationContext) (c *connection, where string, err error) {
	c = &connection{}
	if c.wire, err = a.newWire(ctx); err != nil {
		return nil, "", err
	}
	where = a.cfg.AgentCardSource
	if a.source != nil {
		u, err := a.source.Fill(drive.At(ctx).Lookup)
		if err != nil {
			return nil, "", err
		}
		where = identity(u)
	}
	return c, where, nil
}

// exchange has another machine send a request to the remote agent, and takes the result. A message is
// sent once, even if another process takes over the run; reading a task's state may be repeated.
func (r *run) exchange(op string, req *a2a.SendMessageRequest) error {
	x := exchange{Op: op, Source: r.cfg.AgentCardSource, Card: r.cfg.AgentCard, Hosts: r.cfg.Hosts,
		Headers: r.conn.wire.headers, SizeLimit: r.cfg.SizeLimit, Request: req,
		Task: string(r.task.TaskID), Context: r.task.ContextID}
	if r.source != nil {
		u, err := r.source.Fill(drive.At(r.ctx).Lookup)
		if err != nil {
			return err
		}
		x.Source = u.String()
	}
	if r.waitsForSignIn() {
		x.Patience = time.Until(r.patience)
	}
	part := op + strconv.Itoa(r.asks)
	if op != opSend {
		part = op + "-" + uuid.NewString()
	}
	var got exchangeResult
	if err := r.cfg.Elsewhere.Do(r.ctx, elsewhere.Call{Kind: KindA2A, Spec: x, Part: part}, &got); err != nil {
		return err
	}
	r.heard++
	r.task, r.open = a2a.TaskInfo{TaskID: a2a.TaskID(got.Task), ContextID: got.Context}, got.Open
	r.got = receipt{artifacts: got.Artifacts, message: got.Message, state: got.State, settled: got.Settled}
	return kinds.Read(got.Failure)
}

// Here calls remote agents for runs that other machines drive. It is an elsewhere.Doer.
type Here struct {
	// Client sends the requests, as in [A2AConfig].
	Client *http.Client
}

// Do runs a task of the kind [KindA2A]. The result includes the remote agent's failure. If ctx ends the
// remote task is canceled.
func (h Here) Do(ctx context.Context, t *elsewhere.Task) (json.RawMessage, error) {
	var x exchange
	if err := json.Unmarshal(t.Spec, &x); err != nil {
		return nil, fmt.Errorf("task %s is not a request to a remote agent: %w", t.ID, err)
	}
	r, err := h.open(ctx, &x)
	if err != nil {
		return nil, fmt.Errorf("task %s: %w", t.ID, err)
	}
	if r.conn, r.where, err = r.connect(r.ctx); err == nil {
		defer r.conn.close()
		err = r.conn.wire.shown(r.do(&x))
	}
	got := exchangeResult{Artifacts: r.got.artifacts, Message: r.got.message, State: r.got.state, Settled: r.got.settled,
		Task: string(r.task.TaskID), Context: r.task.ContextID, Open: r.open && !definite(err), Failure: kinds.Write(err)}
	return json.Marshal(got)
}

// open makes a run that can do an exchange, outside of any session.
func (h Here) open(ctx context.Context, x *exchange) (*run, error) {
	made, err := NewA2A(A2AConfig{Name: "a2a", AgentCard: x.Card, AgentCardSource: x.Source, Hosts: x.Hosts,
		SizeLimit: x.SizeLimit, Client: h.Client})
	if err != nil {
		return nil, err
	}
	a := made.(*A2AAgent)
	a.given = x.Headers
	svc, err := session.InMemoryService().Create(ctx, &session.CreateRequest{AppName: "a2a", UserID: "a2a"})
	if err != nil {
		return nil, err
	}
	inv := drive.NewInvocation(ctx, drive.Invocation{ID: "a2a", Session: svc.Session})
	r := &run{A2AAgent: a, ctx: inv, key: keyOf(inv), yield: func(*session.Event, error) bool { return true }}
	r.task = a2a.TaskInfo{TaskID: a2a.TaskID(x.Task), ContextID: x.Context}
	if x.Patience > 0 {
		r.patience = time.Now().Add(x.Patience)
	}
	return r, nil
}

// do does an exchange.
func (r *run) do(x *exchange) (err error) {
	switch x.Op {
	case opSend:
		if x.Request == nil || x.Request.Message == nil {
			return errors.New("there is no message to send")
		}
		if x.Request.Config == nil {
			x.Request.Config = new(a2a.SendMessageConfig)
		}
		x.Request.Config.ReturnImmediately = !r.conn.streams // so that the task is known, and can be canceled
		r.message = x.Request.Message.ID
		defer func() { r.leave(err) }()
		return r.deliver(x.Request)
	case opAwait:
		r.open = true
		defer func() { r.leave(err) }()
		return r.await(nil, 0)
	case opLook:
		return r.look()
	case opCancel:
		r.cancelTask()
		r.open = false
		return nil
	}
	return fmt.Errorf("there is no operation %q; use the same version of refrain on both machines", x.Op)
}
