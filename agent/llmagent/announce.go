// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/elsewhere"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/telemetry/observe"
)

// pays reports whether a request of the agent costs something even if its process is killed before the answer is
// in the log. A scripted model asks nobody, and a resumed run gets the answer of a request that another machine makes.
func (a *Agent) pays() bool {
	_, far := a.cfg.Model.(*elsewhere.Model)
	return a.cfg.Model != nil && !far && observe.ProviderOf(a.cfg.Model) != "scripted"
}

// announce writes into the log that the reserved request is about to leave. It reports whether the consumer still
// listens.
func (r *run) announce() bool {
	if !r.pays() || !drive.At(r.ctx).Marks() {
		return true
	}
	c := r.call
	expected := budget.Usage{Calls: 1, InputTokens: c.room.InputTokens, OutputTokens: max(r.meter.unheard(), MinOutputTokens), Estimated: true}
	if !c.counts {
		expected.InputTokens = r.meter.input(r.history.counted.request(c.req))
	}
	m, err := drive.Requested(r.priced(expected), r.unanswered)
	if err != nil {
		return r.yield(nil, err)
	}
	return r.yield(&session.Event{Author: r.Name(), Mark: m}, nil)
}

// settled notes what the last request has used. If its answer is in the log, that says it, with the number of
// requests of its turn that failed before.
func (x *exchange) settled(used budget.Usage) {
	if x.last != nil && !x.last.Partial && drive.Answers(x.last) && !drive.At(x.ctx).InToolCall() {
		x.unanswered.Calls = max(0, x.unanswered.Calls-int64(x.tries.made-1))
		return
	}
	used.Calls = max(1, used.Calls)
	x.unanswered = x.unanswered.Add(x.priced(used))
}

// priced returns u with its cost, if the price of the model that was asked last is known.
func (r *run) priced(u budget.Usage) budget.Usage {
	return r.ctx.RunConfig().Prices.Priced(r.call.model, u)
}
