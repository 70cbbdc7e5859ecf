// SPDX-License-Identifier: Apache-2.0

package refrain

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/runner"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// The application and the user of the sessions, as the command has them.
const appName, userID = "refrain", "user"

// Option changes how [Run] and [Resume] run an agent.
type Option func(*options)

type options struct {
	store   session.Service
	id      string
	isKept  bool // Session was given
	onEvent func(*session.Event)
	cfg     agent.RunConfig
}

// Session keeps the run in a session of a store, such as the one that sqlite.Open returns. Without this option the run
// is gone when Run returns. Runs with one session ID are one conversation, and only one of them runs at a time.
//
// The argument is a store and not the path of a database, so that a program contains only the database that it uses.
func Session(store session.Service, id string) Option {
	return func(o *options) { o.store, o.id, o.isKept = store, id, true }
}

// OnEvent calls f with each new event of the run, in order, after the event is stored: first the input, or the mark
// that the run was resumed. The run waits for f. If f panics, the run stops there, and can be resumed.
func OnEvent(f func(*session.Event)) Option { return func(o *options) { o.onEvent = f } }

// Config sets the limits of the run, its prices, and the other settings of [agent.RunConfig].
func Config(cfg agent.RunConfig) Option { return func(o *options) { o.cfg = cfg } }

// Run runs an agent with an input and returns the result.
//
// If the last run of the [Session] began with the same input and has not ended, because its process died or its context
// was canceled, Run resumes it: steps that have finished do not run again. With another input, or after a run that has
// ended, Run begins a new run in the conversation of the session.
//
// If the run fails, or ctx is canceled, Run returns the error together with the result so far. The result is nil only if
// the run did not begin, or cannot be read. A loop that stops at a limit has no error: see [Result]. The errors are those
// of [runner.Runner.Run] and [runner.Runner.Resume].
func Run(ctx context.Context, a agent.Agent, input string, opts ...Option) (*Result, error) {
	o, r, err := open(a, opts)
	if err != nil {
		return nil, err
	}
	last, err := o.lastRun(ctx)
	if err != nil {
		return nil, err
	}
	if last.id != "" && !last.ended && last.input == input {
		return o.drive(ctx, r, last.id)
	}
	return o.start(ctx, r, input)
}

// Resume continues the last run of the [Session], which is required. A run that was cut off continues, a run that has
// failed retries the failed step, and a loop that a limit has stopped continues if the agent has a higher limit now.
// The error for a run that cannot continue says what to do instead. Everything else is as in [Run].
func Resume(ctx context.Context, a agent.Agent, opts ...Option) (*Result, error) {
	o, r, err := open(a, opts)
	if err != nil {
		return nil, err
	}
	if !o.isKept {
		return nil, errors.New("resume: no run is kept; name its store and ID with refrain.Session")
	}
	last, err := o.lastRun(ctx)
	if err != nil {
		return nil, err
	}
	if last.id == "" {
		return nil, fmt.Errorf("resume session %q: %w; start one with refrain.Run", o.id, runner.ErrRunNotFound)
	}
	return o.drive(ctx, r, last.id, runner.Continue())
}

// open returns the options and a runner of the agent.
func open(a agent.Agent, opts []Option) (*options, *runner.Runner, error) {
	o := &options{store: session.InMemoryService(), id: "run"}
	for _, opt := range opts {
		opt(o)
	}
	if o.store == nil || o.id == "" {
		return nil, nil, errors.New("refrain.Session needs a store and an ID, such as the store of sqlite.Open and the name of the task")
	}
	r, err := runner.New(runner.Config{AppName: appName, Agent: a, SessionService: o.store, AutoCreateSession: true, Durable: true})
	return o, r, err
}

// start begins a new run in the session.
func (o *options) start(ctx context.Context, r *runner.Runner, input string) (*Result, error) {
	var id string
	msg := genai.NewContentFromText(input, genai.RoleUser)
	for ev, err := range r.Run(ctx, userID, o.id, msg, o.cfg, runner.WithYieldUserMessage()) {
		if err != nil {
			return o.end(ctx, id, err)
		}
		id = ev.InvocationID
		o.observe(ev)
	}
	return o.end(ctx, id, nil)
}

// drive continues the run with this ID. A run that cannot be resumed has no result.
func (o *options) drive(ctx context.Context, r *runner.Runner, id string, opts ...runner.ResumeOption) (*Result, error) {
	began := ""
	for ev, err := range r.Resume(ctx, userID, o.id, id, o.cfg, opts...) {
		if err != nil {
			return o.end(ctx, began, err)
		}
		began = id
		o.observe(ev)
	}
	return o.end(ctx, began, nil)
}

func (o *options) observe(ev *session.Event) {
	if o.onEvent != nil {
		o.onEvent(ev)
	}
}

// end returns the result of a run as the log has it, with the error of the run.
func (o *options) end(ctx context.Context, id string, err error) (*Result, error) {
	if id == "" {
		return nil, err
	}
	view, readErr := o.read(context.WithoutCancel(ctx)) // also after ctx was canceled
	if readErr != nil {
		return nil, errors.Join(err, fmt.Errorf("read the result of session %q: %w", o.id, readErr))
	}
	return resultOf(view, id), err
}

// read returns the session; nil if it does not exist.
func (o *options) read(ctx context.Context) (*session.View, error) {
	got, err := o.store.Get(ctx, &session.GetRequest{AppName: appName, UserID: userID, SessionID: o.id})
	if errors.Is(err, session.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return session.ViewOf(got.Session), nil
}

// lastRun is the last run of a session; id is empty if the session has none.
type lastRun struct {
	id, input string
	ended     bool
}

func (o *options) lastRun(ctx context.Context) (last lastRun, err error) {
	view, err := o.read(ctx)
	if err != nil || view == nil {
		return last, err
	}
	superseded := view.Log().Superseded()
	for ev := range view.Log().Outline() {
		if ev.InvocationID == "" || superseded.Has(ev.Seq) {
			continue
		}
		if ev.InvocationID != last.id {
			last = lastRun{id: ev.InvocationID}
		}
		if ev.Address == "" && ev.Author == "user" {
			last.input = view.Log().Full(ev).Text()
		}
		if fin := rootEnd(ev); fin != nil {
			last.ended = !fin.Canceled
		}
	}
	return last, view.Err()
}

// rootEnd returns the end of a run's outermost step; nil if the event is another one.
func rootEnd(ev *session.Event) *mark.StepFinished {
	if ev.Mark == nil || ev.Mark.Kind != mark.KindStepFinished || ev.Address == "" || ev.Address.Parent() != "" {
		return nil
	}
	fin := new(mark.StepFinished)
	if ev.Mark.Decode(fin) != nil {
		return nil
	}
	return fin
}
