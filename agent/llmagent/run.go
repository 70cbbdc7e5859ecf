// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/internal/values/deep"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/telemetry/observe"
	"github.com/refrain-dev/refrain/tool"
)

// run is one run of the agent.
type run struct {
	*Agent
	ctx        agent.InvocationContext
	yield      func(*session.Event, error) bool
	history    *history
	on         *drive.ModelCallbacks // callbacks of plugins, then the agent's own
	call       *modelCall            // the running request, or the last one; nil before the first
	prompt     string                // prompt that replaces begin or goOn in the next request
	misfits    int                   // number of final answers that did not fit OutputSchema
	wrong      []string              // problems of the last final answer; nil if it fits
	tried      int                   // number of requests of this turn, plus vain
	vain       int                   // number of requests of the turns just before this one that had no result
	correction string                // problem of the last answer, for the next request
	next       agent.Agent           // agent that continues in this agent's place
	questions  int                   // number of questions to a person
	turns      int                   // number of turns, including those in the log
	unanswered budget.Usage          // usage of requests without an answer in the log
	before     pass                  // the iteration before the running one; see passBefore
	looked     bool                  // before has been read from the log
	same       repeats
	cache      *model.CacheHint // cache hint of the turn's request; nil if the provider's cache is off
}

func (a *Agent) run(ctx agent.InvocationContext, yield func(*session.Event, error) bool) {
	if leg := drive.At(ctx).Loop().SettingsOf(a.Name()); leg != (drive.Settings{}) {
		var err error
		if a, err = a.in(leg); err != nil {
			yield(nil, err)
			return
		}
	}
	if a.cfg.Model == nil {
		yield(nil, ErrNoModel)
		return
	}
	r := &run{Agent: a, ctx: ctx, yield: yield, history: a.newHistory(ctx), on: drive.At(ctx).Callbacks().Before(&a.on)}
	for more := r.resume(); more && !ctx.Ended(); {
		more = r.turn()
	}
	r.history.keep(ctx)
	if r.next != nil {
		r.handOver(r.next)
	}
}

// turn asks the model once and runs the tools that it calls. It reports whether another turn follows.
func (r *run) turn() bool {
	r.turns++
	if ev := drive.At(r.ctx).Recorded(); ev != nil {
		return r.turnAgain(ev)
	}
	if err := drive.At(r.ctx).CountModelCall(); err != nil {
		return r.fail(r.same.explain(err))
	}
	x := &exchange{run: r}
	x.ctx = agent.NewCallbackContext(r.ctx, &x.actions)
	var err error
	if x.req, r.cache, err = r.request(x.ctx, r.history); err != nil {
		return r.fail(err)
	}
	if !x.ask() {
		return false
	}
	if x.last == nil { // the model said nothing, but callbacks may have changed something
		r.act(&session.Event{Author: r.Name(), Actions: x.actions})
		return false
	}
	return r.follow(x.req, x.last)
}

// follow carries out the model's answer. It reports whether another turn follows.
func (r *run) follow(req *model.LLMRequest, last *session.Event) bool {
	if isThought(last) && !ends(&last.Actions) {
		if r.again() {
			return true
		}
		return r.fail(&AnswerError{Code: thoughtOnly, Message: "it only thought, and said nothing"})
	}
	r.vain = 0
	if !ends(&last.Actions) { // unless a callback has ended the turn
		if err := r.flaw(last); err != nil {
			return r.fail(err)
		}
	}
	calls := callsOf(last.Content)
	r.same.note(calls)
	if len(calls) > 0 {
		return r.answer(req, calls, nil, nil) && !ends(&last.Actions)
	}
	if r.correction != "" {
		return true
	}
	if r.wrong == nil || ends(&last.Actions) {
		return false
	}
	if err := r.misfit(last.Text(), r.wrong); err != nil {
		return r.fail(err)
	}
	return true
}

// fail yields an error, after which there is no further turn.
func (r *run) fail(err error) bool {
	r.yield(nil, err)
	return false
}

// exchange is one turn: a request, and the model's response.
type exchange struct {
	*run
	ctx     agent.Context // context for callbacks
	req     *model.LLMRequest
	actions session.EventActions // actions of callbacks and of tools that prepare the request
	tries   attempts
	last    *session.Event // last event of the answer; nil before the first
	failed  error          // error of the model in the last attempt
	heard   bool           // the model or a callback gave a response in the last attempt
	unheard bool           // no event may be yielded any more, because the run has failed or its consumer has stopped
}

// ask gets the model's answer and yields it, in pieces if it arrives in pieces. It reports whether
// the run continues.
func (x *exchange) ask() bool {
	r, req := x.run, x.req
	r.tried = r.vain + 1
	theirs, resp, err := r.beforeModel(x.ctx, req)
	if err != nil {
		return r.fail(fmt.Errorf("before model callback: %w", err))
	}
	if resp != nil {
		x.last = r.event(req, resp, &x.actions)
		return r.yield(x.last, nil)
	}
	x.tries = r.cfg.RequestRetry.first()
	x.tries.before = r.vain
	defer func() { r.tried = x.tries.all() }()
	var asked question
	asked.keep(req)
	var failed error // error of the attempt before
	for {
		err := x.attempt()
		if x.unheard {
			return false
		}
		if err == nil {
			break
		}
		asked.restore(req)
		if failed != nil && outOfBudget(err) {
			err = fmt.Errorf("%w; the last call: %w", err, failed)
		}
		failed = err
		if r.ctx.Err() == nil && (x.last == nil || x.last.Partial) && !outOfBudget(err) {
			if err = x.tries.again(r.ctx, err); err == nil {
				x.last = nil
				continue
			}
		}
		if r.ctx.Err() != nil || errors.Is(err, agent.ErrTooManyModelCalls) ||
			outOfBudget(err) { // no callback can replace these errors
			return r.fail(err)
		}
		resp, err := r.onModelError(x.ctx, req, theirs, err)
		if err != nil {
			return r.fail(err)
		}
		return x.give(resp)
	}
	if x.last != nil && x.last.Partial {
		return r.fail(fmt.Errorf("model %q ended its stream with a partial response", r.cfg.Model.Name()))
	}
	return true
}

// give yields a response. It reports whether the consumer still listens.
func (x *exchange) give(resp *model.LLMResponse) bool {
	further := x.last != nil && !x.last.Partial
	x.last = x.event(x.req, resp, &x.actions)
	x.note(x.last, &x.tries)
	if further {
		drive.Annotate(x.last, metadataFurther, true)
	}
	return x.yield(x.last, nil)
}

// attempt sends the request once and passes the responses on. It returns the model's error.
func (x *exchange) attempt() error {
	r := x.run
	if err := r.reserve(x.req); err != nil {
		return err
	}
	if !r.announce() {
		r.call.room.Release()
		x.unheard = true
		return nil
	}
	defer func() { x.settled(r.commit()) }()
	call := r.call
	defer context.AfterFunc(r.ctx, func() { r.settle(call) })()
	x.failed, x.heard = nil, false
	ctx := r.ctx
	if r.cache != nil {
		ctx = ctx.WithContext(model.WithCacheHint(ctx, r.cache))
	}
	if _, far := r.cfg.Model.(*elsewhere.Model); far {
		ctx = elsewhere.WithRequest(ctx, fmt.Sprintf("%d.%d", r.turns, x.tries.all()))
	}
	if o := r.ctx.RunConfig().Observer; o != nil {
		return x.sendObserved(o, ctx)
	}
	return x.send(ctx, nil)
}

// send sends the request. If noted is not nil, send stores the last complete response in it for the observer.
func (x *exchange) send(ctx agent.InvocationContext, noted *observe.ModelCall) error {
	stream := ctx.RunConfig().StreamingMode == agent.StreamingModeSSE
	for resp, err := range x.cfg.Model.GenerateContent(ctx, x.req, stream) {
		if noted != nil && resp != nil && !resp.Partial {
			noted.Response = resp
		}
		if !x.hear(resp, err) {
			break
		}
	}
	if !x.heard && !x.unheard && x.failed == nil && ctx.Err() == nil {
		x.failed = errNoResponse
	}
	return x.failed
}

// hear handles a piece of an answer, or the model's error. It reports whether to read the next piece.
func (x *exchange) hear(resp *model.LLMResponse, err error) bool {
	call := x.call
	call.hear(x.run, resp, err)
	if err != nil {
		x.failed = err
		return false
	}
	call.park(true)
	if resp, err = x.afterModel(x.ctx, resp); err != nil {
		x.yield(nil, err)
		x.unheard = true
		return false
	}
	x.heard = x.heard || resp != nil // a callback may answer in the model's place
	if resp != nil && (resp.Content != nil || resp.ErrorCode != "" || resp.Interrupted) && !x.give(resp) {
		x.unheard = true
		return false
	}
	call.park(false)
	return true
}

// beforeModel adds to a request the contents that belong to this request only, and lets callbacks change it. Theirs is
// the request that the callbacks got and may keep; nil without callbacks. The response is not nil if a callback has
// answered in the model's place.
func (r *run) beforeModel(ctx agent.Context, req *model.LLMRequest) (theirs *model.LLMRequest,
	resp *model.LLMResponse, err error) {
	if r.cache != nil {
		r.cache.Key = r.cacheKey()
	}
	list, more := req.Contents, r.more(req.Contents)
	req.Contents = with(list, more)
	if len(r.on.BeforeModel) > 0 {
		theirs = new(*req)
		theirs.Contents = copyContents(req.Contents)
	}
	for _, f := range r.on.BeforeModel {
		if resp, err = f(ctx, theirs); err != nil || resp != nil {
			break
		}
	}
	if theirs != nil {
		*req = *theirs
		req.Contents = copyContents(theirs.Contents)
	}
	r.hint(req, len(more))
	if len(req.Contents) != len(list)+len(more) { // a callback has added or removed contents
		if r.cache != nil {
			r.cache.Next = false
		}
	}
	for _, f := range r.cfg.OnModelCalls {
		if err == nil && resp == nil {
			err = f(ctx)
		}
	}
	return theirs, r.apart(resp), err
}

// apart returns a callback's response with a copy of its content, because callbacks may still change the original. It
// returns resp itself if no callback got a copy of the conversation.
func (r *run) apart(resp *model.LLMResponse) *model.LLMResponse {
	if resp == nil || len(r.on.BeforeModel)+len(r.on.OnModelError) == 0 {
		return resp
	}
	resp = new(*resp)
	resp.Content = deep.Copy(resp.Content)
	return resp
}

// onModelError asks the callbacks for a response in place of the model's error. Theirs is the request that the
// callbacks got before; nil if there were none.
func (r *run) onModelError(ctx agent.Context, req, theirs *model.LLMRequest, err error) (*model.LLMResponse, error) {
	if len(r.on.OnModelError) > 0 {
		contents := deep.Copy(req.Contents)
		if theirs == nil {
			theirs = new(model.LLMRequest)
		} else {
			contents = theirs.Contents
		}
		*theirs = *req
		theirs.Contents = contents
	}
	for _, f := range r.on.OnModelError {
		resp, ferr := f(ctx, theirs, err)
		if ferr != nil {
			return nil, fmt.Errorf("on model error callback: %w", ferr)
		}
		if resp != nil {
			return r.afterModel(ctx, r.apart(resp))
		}
	}
	for _, f := range r.on.AfterModel {
		resp, ferr := f(ctx, nil, err)
		if ferr != nil {
			return nil, fmt.Errorf("after model callback: %w", ferr)
		}
		if resp != nil {
			return r.apart(resp), nil
		}
	}
	return nil, fmt.Errorf("ask model %q: %w", r.cfg.Model.Name(), err)
}

// afterModel returns the response of the first callback that gives one, else resp.
func (r *run) afterModel(ctx agent.Context, resp *model.LLMResponse) (*model.LLMResponse, error) {
	for _, f := range r.on.AfterModel {
		other, err := f(ctx, resp, nil)
		if err != nil {
			return nil, fmt.Errorf("after model callback: %w", err)
		}
		if other != nil {
			return r.apart(other), nil
		}
	}
	return resp, nil
}

// event returns the event for a response. The first complete event of a turn gets the state changes of the callbacks.
func (r *run) event(req *model.LLMRequest, resp *model.LLMResponse, actions *session.EventActions) *session.Event {
	ev := &session.Event{LLMResponse: *resp, Author: r.Name()}
	ev.Content = withRole(ev.Content, genai.RoleModel)
	if ev.Partial {
		return ev
	}
	if r.legModel != "" {
		drive.Annotate(ev, metadataModel, r.legModel)
	}
	ev.Content = r.withIDs(ev.Content)
	ev.Actions, *actions = *actions, session.EventActions{}
	calls := callsOf(ev.Content)
	for _, c := range calls {
		if t, ok := req.Tools[c.Name].(tool.Tool); ok && t.IsLongRunning() {
			ev.LongRunningToolIDs = append(ev.LongRunningToolIDs, c.ID)
		}
	}
	if r.judge(ev) {
		r.keep(ev)
	}
	return ev
}

// judge stores the problems of a final answer in r.wrong. It reports whether the event is a final answer that fits
// OutputSchema.
func (r *run) judge(ev *session.Event) bool {
	r.wrong = nil
	if len(callsOf(ev.Content)) > 0 || isFlawed(&ev.LLMResponse) || ev.Interrupted {
		return false
	}
	r.wrong = r.output.problems(ev.Text())
	return r.wrong == nil
}

// keep writes a final answer into the output key, unless it is blank. The answer must fit the output schema.
func (r *run) keep(ev *session.Event) {
	text := ev.Text()
	if r.cfg.OutputKey == "" || strings.TrimSpace(text) == "" {
		return
	}
	if ev.Actions.StateDelta == nil {
		ev.Actions.StateDelta = make(map[string]any)
	}
	ev.Actions.StateDelta[r.cfg.OutputKey] = text
	if r.cfg.OutputValue && r.output != nil {
		if v, err := session.PlainJSON([]byte(text)); err == nil { // an error is impossible in an answer that fits
			ev.Actions.StateDelta[r.cfg.OutputKey] = v
		}
	}
}

// withRole returns c with a role if it has none, because agents skip a content without a role. It
// does not change c, which may belong to a cache.
func withRole(c *genai.Content, role genai.Role) *genai.Content {
	if c == nil || c.Role != "" {
		return c
	}
	return &genai.Content{Role: string(role), Parts: c.Parts}
}

func callsOf(c *genai.Content) []*genai.FunctionCall {
	if c == nil {
		return nil
	}
	var calls []*genai.FunctionCall
	for _, p := range c.Parts {
		if p != nil && p.FunctionCall != nil {
			calls = append(calls, p.FunctionCall)
		}
	}
	return calls
}
