// SPDX-License-Identifier: Apache-2.0

// Package runner runs a tree of agents in a session: it stores every event of the agents before it
// yields the event.
//
//	r, err := runner.New(runner.Config{
//		AppName:           "app",
//		Agent:             root,
//		SessionService:    session.InMemoryService(),
//		AutoCreateSession: true,
//	})
//	if err != nil {
//		return err
//	}
//	for ev, err := range r.Run(ctx, "ana", "s1", genai.NewContentFromText("Hello", genai.RoleUser), agent.RunConfig{}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(ev.Author, ev.Text())
//	}
package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/platform"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/telemetry/observe"
)

// Config configures a runner.
type Config struct {
	// AppName is the application that the sessions belong to. Required.
	AppName string
	// Agent is the root of the tree of agents. Required.
	Agent agent.Agent
	// SessionService stores the sessions. Required.
	SessionService session.Service
	// ArtifactService and MemoryService are optional.
	ArtifactService artifact.Service
	MemoryService   memory.Service
	// PluginConfig has the plugins, whose callbacks apply to all agents of the tree.
	PluginConfig PluginConfig
	// AutoCreateSession creates a session that does not exist.
	AutoCreateSession bool
	// Durable writes marks into the log: the start and the end of each step and iteration, and
	// why each loop stopped. Set it so that [Runner.Resume] can continue runs after a crash.
	// Without marks a run cannot be resumed, whatever the store is, and its log has only the
	// events of agents, as in ADK.
	Durable bool
}

// Runner runs one tree of agents. It is safe for concurrent use. Runs in different sessions do
// not wait for each other.
type Runner struct {
	cfg       Config
	tree      *drive.Tree
	grace     time.Duration
	callbacks *drive.Callbacks // of the plugins; nil without plugins
}

// New returns a runner. It returns an error if a required field of cfg is empty, if two agents
// of the tree or two plugins have one name, or if an agent has two parents: see [drive.NewTree].
func New(cfg Config) (*Runner, error) {
	switch {
	case cfg.AppName == "":
		return nil, errors.New("runner needs an AppName; set Config.AppName")
	case cfg.Agent == nil, reflect.ValueOf(cfg.Agent).Kind() == reflect.Pointer && reflect.ValueOf(cfg.Agent).IsNil():
		return nil, errors.New("runner needs an Agent; set Config.Agent")
	case cfg.SessionService == nil:
		return nil, errors.New("runner needs a SessionService; session.InMemoryService() will do")
	}
	tree, err := drive.NewTree(cfg.Agent)
	if err != nil {
		return nil, fmt.Errorf("agent tree of %q: %w", cfg.Agent.Name(), err)
	}
	if err := cfg.PluginConfig.check(); err != nil {
		return nil, fmt.Errorf("runner of %q: %w", cfg.Agent.Name(), err)
	}
	cfg.PluginConfig.Plugins = slices.Clone(cfg.PluginConfig.Plugins)
	return &Runner{cfg: cfg, tree: tree, grace: drive.GraceOf(cfg.Agent, cfg.Durable),
		callbacks: cfg.PluginConfig.callbacks()}, nil
}

// NewInMemory returns a runner that stores everything in this process, and creates sessions
// that do not exist.
func NewInMemory(appName string, a agent.Agent) (*Runner, error) {
	return New(Config{
		AppName: appName, Agent: a,
		SessionService:    session.InMemoryService(),
		ArtifactService:   artifact.InMemoryService(),
		MemoryService:     memory.InMemoryService(),
		AutoCreateSession: true,
	})
}

// RunOption changes one run.
type RunOption func(*runOptions)

// runOptions has the values of the RunOptions of one run.
type runOptions struct {
	stateDelta map[string]any
	start      *mark.Run
	started    mark.RunStarted
	session    session.Session // the session of WithOpening, whose first event is opening; else nil
	opening    *session.Event
	yieldsUser bool
}

// WithYieldUserMessage makes Run yield the event of the user's message first, with the change of the state that
// [WithStateDelta] asks for.
func WithYieldUserMessage() RunOption {
	return func(o *runOptions) { o.yieldsUser = true }
}

// WithStateDelta changes the session's state together with the user's message.
func WithStateDelta(delta map[string]any) RunOption {
	return func(o *runOptions) { o.stateDelta = delta }
}

// WithStart records the run. Its first event gets the mark [mark.KindRunStarted] with data, and the state of the
// session gets r. A non-empty r.ID is the invocation ID.
func WithStart(r mark.Run, data mark.RunStarted) RunOption {
	return func(o *runOptions) { o.start, o.started = &r, data }
}

// WithOpening runs in a session that was just created with the first event of the run, which
// [Runner.Opening] has returned. The message, [WithStateDelta] and [WithStart] are part of that
// event.
func WithOpening(s session.Session, ev *session.Event) RunOption {
	return func(o *runOptions) { o.session, o.opening = s, ev }
}

// Opening returns the first event of a run in a new session with these IDs. It does not store the event. It stores
// only the files in the message, if cfg.SaveInputBlobsAsArtifacts is true. Create the session together with the event
// by store.Start, and run it with [WithOpening]. Then a process that dies in between leaves no session without a run.
// Opening fails with [ErrNotOpen] for a message that answers a question that was not asked, and with the error of a
// plugin that refuses the message.
func (r *Runner) Opening(ctx context.Context, userID, sessionID string, msg *genai.Content, cfg agent.RunConfig,
	opts ...RunOption) (*session.Event, error) {
	var o runOptions
	for _, opt := range opts {
		opt(&o)
	}
	id := o.id(ctx)
	view := session.NewView(session.ViewConfig{AppName: r.cfg.AppName, UserID: userID, SessionID: sessionID})
	_, msg, err := r.receive(ctx, &run{id: id, view: view, msg: msg})
	if err != nil {
		return nil, fmt.Errorf("run %q: %w", r.cfg.Agent.Name(), err)
	}
	ev, err := o.event(id, msg)
	if err == nil {
		err = r.saveFiles(ctx, view, ev, cfg)
	}
	if err == nil && r.cfg.Durable {
		newTempMemo(r.tree).saveTemp(ev)
	}
	return ev, err
}

// emptyLog is the empty log of a session before its first event.
var emptyLog = session.NewView(session.ViewConfig{}).Events()

// Run gives the user's message to the agents and yields their events. The message goes to the root,
// with two exceptions. The answer to a function call goes to the agent that made the call, and only
// that agent runs: a loop around it does not continue. If model agents have transferred the
// conversation, the message goes to the agent that spoke last.
//
// An event is in the session before Run yields it, unless the event is partial. The first error
// ends the run and is yielded last. If ctx was canceled it is context.Cause(ctx). Other errors to
// expect are [session.ErrNotFound], [*BusyError] if another run is running in the session, a
// [*lease.HeldError] that names the process which drives a run in the session,
// [session.ErrConflict] if another process writes to the session, [ErrNotOpen] for an answer to a
// question that is not open, and [*agent.StepError] from an agent. A consumer that stops ranging
// ends the run. Ranging again runs again.
//
// A step or callback that ignores its context delays the end of the run by at most the grace of the root,
// which is usually 2 s: see [drive.GraceOf]. Then the run abandons it: its later events and writes have no
// effect, and a resumed run runs it again. To make this possible, agents run in goroutines of their own.
// The body of the loop over Run stays in the goroutine that ranges.
func (r *Runner) Run(ctx context.Context, userID, sessionID string, msg *genai.Content, cfg agent.RunConfig,
	opts ...RunOption) iter.Seq2[*session.Event, error] {
	return func(yield func(*session.Event, error) bool) {
		var o runOptions
		for _, opt := range opts {
			opt(&o)
		}
		if err := ctx.Err(); err != nil {
			yield(nil, context.Cause(ctx))
			return
		}
		if cfg.Meter != nil {
			cfg.Prices = cfg.Meter.Prices()
		}
		run, err := r.start(ctx, userID, sessionID, msg, cfg, o)
		if err != nil {
			yield(nil, err)
			return
		}
		defer run.release()
		if o.yieldsUser && run.msg != nil && !yield(run.first, nil) {
			return
		}
		r.drive(run.agentCtx, run, cfg, yield)
	}
}

// drive runs the agent, and stores and yields its events.
func (r *Runner) drive(ctx context.Context, run *run, cfg agent.RunConfig, yield func(*session.Event, error) bool) {
	if cfg.Observer == nil {
		cfg.Observer = observe.Default()
	}
	ctx, endPause := drive.Pausable(ctx, &cfg)
	defer endPause()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var failed error // the error of the run
	observed := func() error { return nil }
	if o := cfg.Observer; o != nil {
		in, end, err := observeRunBegin(ctx, o, run.observedRun(r.cfg.Agent.Name()))
		if err != nil {
			yield(nil, err)
			return
		}
		ctx, observed = in, sync.OnceValue(func() error { return drive.ObservedEnd(end, failed) })
		defer observed() // also when the consumer panics
	}
	defer run.view.Pending().Share()()
	if cfg.LogLimit > 0 && run.logged == nil {
		if run.logged = new(atomic.Int64); run.first != nil {
			run.logged.Store(int64(run.first.Weight()))
		}
	}
	ictx := drive.NewInvocation(ctx, drive.Invocation{
		ID: run.id, Session: run.view, UserContent: run.msg, RunConfig: &cfg, Marks: r.cfg.Durable, Replay: run.replay, Refuse: fail, Logged: run.logged,
		Artifacts: r.artifacts(run.view), Memory: r.memory(run.view), Callbacks: r.callbacks,
	})
	ended := func() error { return nil }
	if r.callbacks != nil {
		ended = sync.OnceValue(func() error { return r.afterRun(ictx, run.agent) })
		defer ended() // also when the consumer panics
	}
	step := drive.NewStep(ictx, drive.StepConfig{Agent: run.agent, Tree: r.tree, Grace: r.grace})
	d := &delivery{run: run, yield: yield, fail: fail}
	res := step.Run(d.add)
	if failed = d.finish(); failed == nil {
		failed = res.Err
	}
	if crash := ended(); failed == nil {
		failed = crash
	}
	if crash := observed(); failed == nil && crash != nil {
		failed = fmt.Errorf("observer of the end of run %q: %w", run.id, crash)
	}
	if !d.consumerLeft && failed != nil {
		yield(nil, failed)
	}
}

// observeRunBegin tells an observer that the run begins. It returns a panic of the observer as an error.
func observeRunBegin(ctx context.Context, o observe.Observer, r *observe.Run) (in context.Context, end func(error), err error) {
	err = callPlugin("observer of the beginning of run", r.InvocationID, func() error {
		if in, end = o.Run(ctx, r); in == nil || end == nil {
			panic("the observer's Run returned nil")
		}
		return nil
	})
	return in, end, err
}

// observedRun returns the description of the run for an observer.
func (r *run) observedRun(root string) *observe.Run {
	return &observe.Run{Agent: root, InvocationID: r.id, AppName: r.view.AppName(), UserID: r.view.UserID(),
		SessionID: r.view.ID(), Resumed: r.replay != nil}
}

// run is one call of Run or Resume.
type run struct {
	id            string
	agentCtx      context.Context       // the context of the agents; it has the session's lease, if the runner holds one
	ctx           context.Context       // for the store, which also stores events of a canceled run
	clock         platform.TimeProvider // the clock of the context, or nil; a lookup for each event would allocate
	service       session.Service
	view          *session.View
	agent         agent.Agent // the agent that the message is for
	msg           *genai.Content
	first         *session.Event // of this call of Run; nil if it has none
	needsSnapshot bool           // the state is not all in the log yet
	temp          *tempMemo      // temp: keys to remember; nil if there are none
	logged        *atomic.Int64  // weight of the run's events; nil if it has no limit
	batch                        // events that are not stored yet
	release       func()         // releases the session

	replay       *drive.Replay    // of a run that is resumed; else nil
	rewound      session.Rewound  // view, of a run that is resumed
	outsideSteps []*session.Event // events outside of steps that are still to be replayed
}

// start fetches the session and appends the user's message.
func (r *Runner) start(ctx context.Context, userID, sessionID string, msg *genai.Content, cfg agent.RunConfig, o runOptions) (*run, error) {
	s, err := o.session, error(nil)
	if s == nil {
		s, err = r.session(ctx, userID, sessionID)
	}
	if err != nil {
		return nil, fmt.Errorf("run %q: %w", r.cfg.Agent.Name(), err)
	}
	run := &run{
		id: o.id(ctx), ctx: context.WithoutCancel(ctx), clock: platform.TimeProviderOf(ctx),
		service: r.cfg.SessionService, view: session.ViewOf(s), msg: msg,
		batch: r.newBatch(),
	}
	run.view.RequireLog()
	if r.cfg.Durable {
		run.temp = newTempMemo(r.tree)
	}
	if o.opening != nil {
		run.msg, run.first = o.opening.Content, o.opening
	}
	if run.agentCtx, run.release, err = r.claim(ctx, run.view, run.id); err != nil {
		return nil, fmt.Errorf("run %q: %w", r.cfg.Agent.Name(), err)
	}
	run.ctx = context.WithoutCancel(run.agentCtx)
	if err := r.openRun(ctx, run, cfg, o); err != nil {
		run.release()
		return nil, err
	}
	if r.cfg.Durable && run.first != nil && run.first.Seq > 0 {
		run.view.SetRunStart(run.id, run.first.Seq)
	}
	return run, nil
}

// openRun appends the user's message, or the mark that the run has started.
func (r *Runner) openRun(ctx context.Context, run *run, cfg agent.RunConfig, o runOptions) (err error) {
	if o.opening != nil {
		return r.openExisting(run, o.opening)
	}
	run.needsSnapshot = r.needsSnapshot(run.view, nil)
	if run.agent, run.msg, err = r.receive(ctx, run); err != nil {
		return fmt.Errorf("run %q: %w", r.cfg.Agent.Name(), err)
	}
	if run.msg == nil && len(o.stateDelta) == 0 && o.start == nil {
		return nil
	}
	if run.first, err = o.event(run.id, run.msg); err == nil {
		err = r.saveFiles(ctx, run.view, run.first, cfg)
	}
	if err != nil {
		return fmt.Errorf("run %q: %w", r.cfg.Agent.Name(), err)
	}
	run.msg = run.first.Content
	return run.append(run.first)
}

// openExisting does what openRun does, for a session that has the first event of the run already.
func (r *Runner) openExisting(run *run, ev *session.Event) (err error) {
	run.needsSnapshot = r.needsSnapshot(run.view, ev)
	if run.agent, err = r.targetAgent(emptyLog, run.msg); err != nil {
		return fmt.Errorf("run %q: %w", r.cfg.Agent.Name(), err)
	}
	return nil
}

// needsSnapshot reports whether the session has state that is not in its log. first is the session's only
// event, or nil.
func (r *Runner) needsSnapshot(view *session.View, first *session.Event) bool {
	if !r.cfg.Durable || view.HasStateInLog() {
		return false
	}
	for key := range statekey.OwnState(view.State()) {
		if first == nil || first.Actions.StateDelta[key] == nil {
			return true
		}
	}
	return false
}

// event returns the first event of the run with that ID.
func (o *runOptions) event(id string, msg *genai.Content) (ev *session.Event, err error) {
	ev = &session.Event{InvocationID: id, Author: "user"}
	ev.Actions.StateDelta = maps.Clone(o.stateDelta) // a copy, because the store gets the event
	if o.start != nil {
		start := *o.start
		start.ID = cmp.Or(start.ID, id)
		if ev, err = session.NewRunEvent(start, "user", mark.KindRunStarted, o.started); err != nil {
			return nil, err
		}
		maps.Copy(ev.Actions.StateDelta, o.stateDelta)
	}
	ev.Content = msg
	return ev, ev.Normalize()
}

// id returns the ID of the run.
func (o *runOptions) id(ctx context.Context) string {
	switch {
	case o.opening != nil:
		return o.opening.InvocationID
	case o.start != nil && o.start.ID != "":
		return o.start.ID
	}
	return "e-" + platform.NewUUID(ctx)
}

// session returns the session of a run. With AutoCreateSession it creates a session that does not exist.
func (r *Runner) session(ctx context.Context, userID, sessionID string) (session.Session, error) {
	got, err := r.cfg.SessionService.Get(ctx, &session.GetRequest{AppName: r.cfg.AppName, UserID: userID,
		SessionID: sessionID})
	if err == nil {
		return got.Session, nil
	}
	missing := errors.Is(err, session.ErrNotFound) || sessionID == ""
	if !r.cfg.AutoCreateSession || !missing {
		return nil, err
	}
	made, err := r.cfg.SessionService.Create(ctx, &session.CreateRequest{AppName: r.cfg.AppName, UserID: userID,
		SessionID: sessionID})
	if err == nil {
		return made.Session, nil
	}
	if !errors.Is(err, session.ErrExists) {
		return nil, err
	}
	// Another run has created the session in the meantime.
	if got, err = r.cfg.SessionService.Get(ctx, &session.GetRequest{AppName: r.cfg.AppName, UserID: userID,
		SessionID: sessionID}); err != nil {
		return nil, err
	}
	return got.Session, nil
}

// completeEvent adds the session's initial state to a mark, notes the event's temp: keys, and counts its weight.
func (r *run) completeEvent(ev *session.Event) {
	if r.needsSnapshot && ev.Mark != nil {
		r.snapshotState(ev)
	}
	r.temp.saveTemp(ev)
	if r.logged != nil {
		r.logged.Add(int64(ev.Weight()))
	}
	if r.clock != nil && ev.Timestamp.IsZero() {
		ev.Timestamp = r.clock()
	}
}

// append stores an event after the held events. For a partial event it stores only the held events. The store applies
// the event to the run's view; append does so if the store does not support views. Only append and addToBatch add new
// events of a run to the view.
func (r *run) append(ev *session.Event) error {
	if ev.Partial {
		return r.flush()
	}
	r.completeEvent(ev)
	if err := r.store(ev); err != nil {
		return &agent.LogError{Err: fmt.Errorf("append event by %q: %w", ev.Author, err)}
	}
	if r.view.LastSeq() < ev.Seq { // the store does not know views
		r.view.Apply(ev)
	}
	return nil
}
