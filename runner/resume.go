// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync/atomic"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/platform"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Errors of [Runner.Resume] that callers branch on; compare with errors.Is.
var (
	// ErrFinished refuses to resume a run that has ended.
	ErrFinished = errors.New("the run has ended: there is nothing to resume")
	// ErrRunNotFound means that the session has no such run.
	ErrRunNotFound = errors.New("run not found")
	// ErrNotDurable means that the run or the runner writes no marks.
	ErrNotDurable = errors.New("the run is not durable: only one that a runner with Config.Durable has started can " +
		"be resumed, by such a runner")
	// ErrDiverged ends a resumed run that did something other than its log records. The error is an
	// [*agent.DivergedError].
	ErrDiverged = agent.ErrDiverged
)

// Resume continues a durable run where it was cut off, by a crash, by a cancellation, or because
// its consumer stopped ranging. invocationID is that of the run's events; empty means the
// session's newest run that has not ended. Resume yields only new events. The earlier ones are
// in the session.
//
// The tree runs again from its root. A step that has finished does not run: its events and its
// result come from the log. An agent that runs others runs again, with its callbacks. It must do
// the same as before, or the run ends with [ErrDiverged]. An agent that asks a model continues
// after its last turn, and repeats the tool calls that have no answer. Any other step that was
// cut off runs again as its next attempt. The events of its earlier attempt stay in the log, but
// neither the state nor models see them.
//
// Resume rebuilds the state step by step, so each decision sees the state that it saw the first
// time. Keys that sessions share (app:, user:) have their present values, but a loop's decisions
// stand: the log has the values that the loop's conditions and score have read. Keys that end
// with the invocation (temp:) have no value, unless they are set again or a loop decides by
// them. Callbacks are called again, but the changes that they made the first time count.
//
// A step that has to ask a person needs cfg.Pause. This includes a call that must not be made twice, of which it
// is unknown whether it took place. Without a Pause the run ends with [agent.ErrCannotAsk]; it has not ended in
// its log, and Resume with a Pause asks.
//
// A process that dies on another machine, or in another container, holds the session until its lease ends, which takes
// 15 s at most. Resume does not wait for that, because it cannot know that the process is dead. Resume again after the
// Until of the [*lease.HeldError].
//
// A run that diverges stores nothing but the mark that it was resumed. Other errors to expect are those of
// [Runner.Run] and, each in a [*ResumeError], [ErrFinished], [ErrRunNotFound], [ErrNotDurable], [session.ErrConflict] if
// another process has written to the session, and a [*lease.HeldError], which names the process that drives the run and
// says until when.
func (r *Runner) Resume(ctx context.Context, userID, sessionID, invocationID string, cfg agent.RunConfig,
	opts ...ResumeOption) iter.Seq2[*session.Event, error] {
	return func(yield func(*session.Event, error) bool) {
		if ctx.Err() != nil {
			yield(nil, context.Cause(ctx))
			return
		}
		var o resumeOptions
		for _, opt := range opts {
			opt(&o)
		}
		if cfg.Meter != nil {
			cfg.Prices = cfg.Meter.Prices()
		}
		run, resumed, err := r.restart(ctx, userID, sessionID, invocationID, cfg, o)
		if err != nil {
			yield(nil, &ResumeError{invocationID, err})
			return
		}
		defer run.release()
		if yield(resumed, nil) {
			r.drive(run.agentCtx, run, cfg, yield)
		}
	}
}

// ResumeError reports that a run cannot be resumed, or that the resumed run diverged from its log.
type ResumeError struct {
	InvocationID string // of the run; "" is the newest one that has not ended
	Err          error
}

func (e *ResumeError) Error() string { return fmt.Sprintf("resume run %q: %v", e.InvocationID, e.Err) }

// Unwrap returns the reason.
func (e *ResumeError) Unwrap() error { return e.Err }

// ResumeOption changes how [Runner.Resume] resumes a run.
type ResumeOption func(*resumeOptions)

type resumeOptions struct {
	continues bool
	view      *session.View
}

// WithView gives [Runner.Resume] the session as the caller has just read it, with all of its log, so
// that it is not read again. Resume fails with [session.ErrConflict] if another writer has appended
// since. The view shows the mark that the run was resumed, but no later events of the run.
func WithView(v *session.View) ResumeOption { return func(o *resumeOptions) { o.view = v } }

// Continue lets [Runner.Resume] continue a run that has ended.
//
// If the run has failed, the step that caused the failure runs again, at any depth. Steps that
// have finished do not. In a parallel agent all steps that have failed run again, and the steps
// that the failure cut off continue.
//
// If the run has completed, a limit must have stopped its last loop: the root, the last loop of
// a sequence that is the root, or the last loop of each branch of a parallel agent in one of
// these places. Resume with a tree that has new limits, now and later. The loop does further
// iterations. When it stops, everything after it runs again: its finalizer, and the later steps
// of the sequence. Other branches do not run again.
//
// A run that has not ended is resumed as without the option. Further errors: a
// [*loop.StoppedError] if the loop would stop again for the same reason, and an error for a run
// that cannot continue, which says what to do instead.
func Continue() ResumeOption { return func(o *resumeOptions) { o.continues = true } }

// restart reads the log of a run, appends the mark that the run was resumed, and rewinds the state
// to the run's beginning.
func (r *Runner) restart(ctx context.Context, userID, sessionID, id string, cfg agent.RunConfig,
	o resumeOptions) (_ *run, _ *session.Event, err error) {
	if !r.cfg.Durable {
		return nil, nil, ErrNotDurable
	}
	view := o.view
	if view == nil {
		got, err := r.cfg.SessionService.Get(ctx, &session.GetRequest{AppName: r.cfg.AppName, UserID: userID,
			SessionID: sessionID})
		if err != nil {
			return nil, nil, err
		}
		view = session.ViewOf(got.Session)
	}
	view.RequireLog()
	if id == "" {
		if id, err = newestUnfinished(view); err != nil {
			return nil, nil, err
		}
	}
	in, free, err := r.claim(ctx, view, id)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			free()
		}
	}()
	past, err := r.read(view, id, cfg, view.Log().Superseded(), o.view == nil)
	if err != nil {
		return nil, nil, err
	}
	run := &run{
		id: id, agentCtx: in, ctx: context.WithoutCancel(in), clock: platform.TimeProviderOf(ctx), service: r.cfg.SessionService,
		msg: past.message, outsideSteps: past.betweenSteps, temp: newTempMemo(r.tree), release: free, batch: r.newBatch(),
	}
	if cfg.LogLimit > 0 {
		run.logged = new(atomic.Int64)
		run.logged.Store(past.weight)
	}
	var gone mark.Spans
	if run.replay, gone, err = past.begin(r.tree, o.continues, cfg); err != nil {
		return nil, nil, err
	}
	resumed, err := past.resumedEvent(view, id, r.cfg.Agent.Name(), gone)
	if err != nil {
		return nil, nil, err
	}
	run.replay.Recall()
	run.view = view
	if err := run.append(resumed); err != nil {
		return nil, nil, err
	}
	run.rewound = view.Rewind(past.lastSeqBefore, past.state)
	run.view = run.rewound.View
	run.outsideSteps = append(run.outsideSteps, resumed)
	for _, ev := range past.beforeFirstStep {
		run.temp.restoreTemp(run.view, ev)
	}
	if run.agent = r.tree.Find(run.replay.Root()); run.agent == nil {
		run.agent, err = r.targetAgent(view.Rewind(past.first-1, nil).Events(), run.msg)
		run.needsSnapshot = !view.HasStateInLog() && len(past.state) > 0
	}
	return run, resumed, err
}

// matchLogged reports whether the log of a resumed run has an event already. If so it applies the event to the view.
func (r *run) matchLogged(ev *session.Event) bool {
	switch {
	case r.replay == nil || ev.Partial:
		return false
	case !r.replay.Consume(ev):
		if r.replay.Done() {
			r.replayOutsideSteps(math.MaxInt64)
		}
		return false
	}
	r.replayOutsideSteps(ev.Seq)
	r.rewound.Replay(ev)
	r.temp.restoreTemp(r.view, ev)
	return true
}

// replayOutsideSteps replays the events outside of steps that come before a sequence number.
func (r *run) replayOutsideSteps(seq int64) {
	for len(r.outsideSteps) > 0 && r.outsideSteps[0].Seq < seq {
		r.rewound.Replay(r.view.Log().Full(r.outsideSteps[0]))
		r.outsideSteps = r.outsideSteps[1:]
	}
}

// snapshotState writes the session's own state into an event. From that event on the log alone has the state.
func (r *run) snapshotState(ev *session.Event) {
	delta := statekey.OwnState(r.view.State())
	maps.Copy(delta, ev.Actions.StateDelta)
	delta[mark.KeyNoted] = true
	ev.Actions.StateDelta = delta
	r.needsSnapshot = false
}

// loggedRun has the facts about one run in a session's log.
type loggedRun struct {
	id              string
	view            *session.View
	log             []*session.Event // its outline; nil if the view remembers it
	superseded      mark.Spans
	message         *genai.Content   // the message that started the run
	replay          *drive.Replay    // with the run's events
	endMarks        []*session.Event // the start and end marks of the root's step that are not superseded
	beforeFirstStep []*session.Event // events of the run before its first step
	betweenSteps    []*session.Event // later events that belong to no step, or to another run
	first           int64            // sequence number of the run's first event; 0 if it has none
	weight          int64            // of all events of the run, in bytes, even if they are superseded
	lastSeqBefore   int64            // sequence number of the last event before its first step
	state           map[string]any   // the session's own state before its first step
}

// read reads the log and returns what it has of one run. If keep is true the result keeps the outline of the log.
// superseded has the events that are known to be superseded. If the log supersedes more events, read starts again.
func (r *Runner) read(view *session.View, id string, cfg agent.RunConfig, superseded mark.Spans, keep bool) (*loggedRun, error) {
	p := &loggedRun{id: id, view: view, superseded: superseded, lastSeqBefore: view.LastSeq(),
		replay: drive.NewReplay(superseded, r.tree, cfg.Prices)}
	state, whole := stateFold{}, view.Log().Reader()
	began, marked := false, false
	if keep {
		p.log = make([]*session.Event, 0, p.lastSeqBefore)
	}
	for ev := range view.Log().Outline() {
		if keep {
			p.log = append(p.log, ev)
		}
		if s := ev.Mark.Supersedes(); s != nil {
			p.superseded = p.superseded.Union(s)
		}
		mine, counts := ev.InvocationID == id, !p.superseded.Has(ev.Seq)
		if mine {
			p.first = cmp.Or(p.first, ev.Seq)
			p.weight += int64(ev.Weight()) + ev.Omitted
			if err := p.replay.Add(ev, whole); err != nil {
				return nil, err
			}
			marked = marked || ev.Mark != nil
			if ev.Address == "" && ev.Author == "user" && p.message == nil {
				p.message = view.Log().Full(ev).Content
			}
			if counts && isEnd(ev) {
				p.endMarks = append(p.endMarks, ev)
			}
		}
		if p.first > 0 {
			view.AddToChain(id, ev)
		}
		if !began && mine && ev.Address != "" {
			began = true
			p.lastSeqBefore = ev.Seq - 1
			if isSnapshot(ev) {
				state.add(ev)
			}
		}
		switch {
		case !began && (counts || isSnapshot(ev)):
			state.add(ev)
		case began && counts && (!mine || ev.Address == ""):
			p.betweenSteps = append(p.betweenSteps, ev)
		}
		if !began && mine {
			p.beforeFirstStep = append(p.beforeFirstStep, ev)
		}
	}
	if !slices.Equal(p.superseded, superseded) { // the session's state does not have all of them
		return r.read(view, id, cfg, p.superseded, keep)
	}
	if p.state = state.all(view); !began {
		p.state = statekey.OwnState(view.State())
	}
	switch err := view.Err(); {
	case err != nil:
		return nil, err
	case p.first == 0:
		return nil, ErrRunNotFound
	case began && !marked:
		return nil, ErrNotDurable
	}
	return p, nil
}

// outline returns the outline of the log, from memory or by another read.
func (p *loggedRun) outline() iter.Seq[*session.Event] {
	if p.log != nil {
		return slices.Values(p.log)
	}
	return p.view.Log().Outline()
}

// reader returns a function that reads an event of the log in full, by its sequence number.
func (p *loggedRun) reader() func(seq int64) *session.Event {
	log, read := p.log, p.view.Log().Reader()
	if log == nil {
		return read
	}
	return func(seq int64) *session.Event {
		if i := seq - log[0].Seq; i >= 0 && i < int64(len(log)) && log[i].Seq == seq && log[i].Omitted == 0 {
			return log[i]
		}
		return read(seq)
	}
}

// newestUnfinished returns the ID of the unfinished run with the newest event.
func newestUnfinished(view *session.View) (string, error) {
	var open []string
	none, gone := ErrRunNotFound, view.Log().Superseded()
	for ev := range view.Log().Outline() {
		id := ev.InvocationID
		if ev.Mark == nil {
			if ev.Address != "" && none == ErrRunNotFound {
				none = ErrNotDurable
			}
			continue
		}
		open = slices.DeleteFunc(open, func(o string) bool { return o == id })
		if endsRun(ev) && !gone.Has(ev.Seq) {
			none = ErrFinished
		} else {
			open = append(open, id)
		}
	}
	switch err := view.Err(); {
	case err != nil:
		return "", err
	case len(open) == 0:
		return "", none
	}
	return open[len(open)-1], nil
}

// endsRun reports whether a mark ends a run for good. The end of a canceled run does not, because the run can be
// resumed.
func endsRun(ev *session.Event) bool {
	if ev.Mark.Kind == mark.KindRunEnded {
		return true
	}
	var fin mark.StepFinished
	return ev.Mark.Kind == mark.KindStepFinished && isEnd(ev) && (ev.Mark.Decode(&fin) != nil || !fin.Canceled)
}

// isEnd reports whether an event is the mark at the start or at the end of the step of the root agent.
func isEnd(ev *session.Event) bool {
	return ev.Mark != nil && (ev.Mark.Kind == mark.KindStepStarted || ev.Mark.Kind == mark.KindStepFinished) &&
		ev.Address != "" && ev.Address.Parent() == ""
}

// resumedEvent returns the event with the mark that the run was resumed. The event undoes the state
// changes of newly superseded events.
func (p *loggedRun) resumedEvent(view *session.View, id, author string, gone mark.Spans) (*session.Event, error) {
	m, err := mark.New(mark.KindRunResumed, mark.RunResumed{Superseded: gone})
	if err != nil {
		return nil, err
	}
	ev := &session.Event{InvocationID: id, Author: author, Mark: m}
	if gone == nil {
		return ev, nil
	}
	all := p.superseded.Union(gone)
	left, touched := stateFold{}, make(map[string]bool)
	for e := range p.outline() {
		switch {
		case isSnapshot(e) || !all.Has(e.Seq):
			left.add(e)
		case gone.Has(e.Seq):
			for k := range e.Actions.StateDelta {
				touched[k] = statekey.Own(k)
			}
		}
	}
	delta := map[string]any{mark.KeySuperseded: all.String()}
	now, before := statekey.OwnState(view.State()), left.all(view)
	for k, is := range touched {
		if was, ok := before[k]; is && (ok || now[k] != nil) && !reflect.DeepEqual(was, now[k]) {
			delta[k] = was
		}
	}
	ev.Actions.StateDelta = delta
	return ev, nil
}

// stateFold computes a session's own state from events. It has by key the event that wrote the value.
type stateFold map[string]*session.Event

func (f stateFold) add(ev *session.Event) {
	if isSnapshot(ev) {
		clear(f)
	}
	for k, v := range ev.Actions.StateDelta {
		switch {
		case !statekey.Own(k):
		case v == nil:
			delete(f, k)
		default:
			f[k] = ev
		}
	}
}

// all returns the keys with their values.
func (f stateFold) all(view *session.View) map[string]any {
	values := make(map[string]any, len(f))
	for k, ev := range f {
		values[k] = view.Log().Full(ev).Actions.StateDelta[k]
	}
	return values
}

// isSnapshot reports whether an event repeats the whole state: see snapshotState.
func isSnapshot(ev *session.Event) bool { return ev.Actions.StateDelta[mark.KeyNoted] != nil }
