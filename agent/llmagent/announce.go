// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/telemetry/observe"
)

// pays reports whether a request of the agent costs something even if the process is killed before the answer is in the
// log. A scripted model sends no request. A request that another machine makes is not lost, because a resumed run gets
// its answer.
func (a *Agent) pays() bool {
	_, far := a.cfg.Model.(*elsewhere.Model)
	return a.cfg.Model != nil && !far && observe.ProviderOf(a.cfg.Model) != "scripted"
}

// announce writes a mark into the log before the reserved request is sent. It reports whether the consumer still
// listens.
func (r *run) announce() bool {
	if !r.pays() || !drive.At(r.ctx).Marks() {
		return true
	}
	c := r.call
	expected := budget.Usage{Calls: 1, InputTokens: c.room.InputTokens, OutputTokens: max(r.meter.estimateOutput(), MinOutputTokens), Estimated: true}
	if !c.counts {
		expected.InputTokens = r.meter.input(r.history.counted.request(c.req))
	}
	m, err := drive.Requested(r.priced(expected), r.unanswered)
	if err != nil {
		return r.yield(nil, err)
	}
	return r.yield(&session.Event{Author: r.Name(), Mark: m}, nil)
}

// settled adds the usage of the last request to x.unanswered. If the answer is in the log, its event already has the
// usage and the number of failed requests before it in the turn, so settled only subtracts these requests.
func (x *exchange) settled(used budget.Usage) {
	if x.last != nil && !x.last.Partial && drive.Answers(x.last) && !drive.At(x.ctx).InToolCall() {
		x.unanswered.Calls = max(0, x.unanswered.Calls-int64(x.tries.requests-1))
		return
	}
	used.Calls = max(1, used.Calls)
	x.unanswered = x.unanswered.Add(x.priced(used))
}

// priced returns u with its cost, if the price of the last request's model is known.
func (r *run) priced(u budget.Usage) budget.Usage {
	return r.ctx.RunConfig().Prices.Priced(r.call.model, u)
}
