// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"errors"
	"net"
	"sync"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/telemetry/observe"
)

// If a budget limits tokens or cost, a request reserves tokens for its answer: one and a half times
// the longest of the agent's last answers; before the first answer, DefaultOutputTokens; never more
// than the config's MaxOutputTokens. If the budget has less left while no other request is running,
// the request reserves the rest, but at least MinOutputTokens. If less than that is left, the
// request is refused. If the answer could be longer than what the budget leaves, the request is
// sent with MaxOutputTokens set to that. An answer longer than its reservation counts in full, so
// that requests running at the same time may exceed the budget once.
const (
	DefaultOutputTokens = 4096
	MinOutputTokens     = 64
)

// modelCall is one request to the model, as the run's budget sees it.
type modelCall struct {
	req    *model.LLMRequest
	model  string
	counts bool  // the budget needs estimates, so the request is measured before it is sent
	bytes  int64 // size of the request

	wanted budget.Request // reservation for a whole answer, if the budget allowed less than that

	mu    sync.Mutex // guards the fields below, because the end of the context settles the call from another goroutine
	room  budget.Reservation
	spoke bool  // the model has given at least a piece of an answer
	whole bool  // the model has given a complete answer
	heard int64 // size of the answer so far in bytes
	usage *genai.GenerateContentResponseUsageMetadata
	err   error
}

// reserve makes room for one request in the run's budget, before each attempt. It waits while the reservations of
// running calls leave too little, and limits the request's output to the rest of the budget. After reserve the caller
// passes the responses to r.call.hear, and then calls commit.
func (r *run) reserve(req *model.LLMRequest) error {
	b, c := drive.At(r.ctx).Budget(), &modelCall{req: req}
	r.call, c.counts = c, b.Metered()
	ask := budget.Request{Model: req.Model}
	if ask.Model == "" {
		ask.Model = r.cfg.Model.Name()
	}
	c.model = ask.Model
	var most int64
	if c.counts {
		c.bytes = r.history.counted.request(req)
		ask.InputTokens = r.meter.input(c.bytes)
		ask.OutputTokens, most, ask.MinOutputTokens = r.meter.output(req.Config)
		r.meter.caches(&ask, r.cache, r.turns > 1, model.CachesOf(observe.ProviderOf(r.cfg.Model), ask.Model))
	}
	var err error
	if c.room, err = b.ReserveWait(r.ctx, ask); err != nil {
		return err
	}
	if c.room.MaxOutputTokens < most {
		cfg := new(genai.GenerateContentConfig)
		if req.Config != nil {
			*cfg = *req.Config // a callback may own the old config
		}
		cfg.MaxOutputTokens = int32(c.room.MaxOutputTokens)
		c.wanted = ask
		c.wanted.OutputTokens, c.wanted.MinOutputTokens = most, 0
		req.Config = cfg
	}
	return nil
}

// hear records a response or the failure of the request. It frees the reservation of a whole answer
// before any other agent sees the answer.
func (c *modelCall) hear(r *run, resp *model.LLMResponse, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.err = err
		return
	}
	if resp == nil {
		return
	}
	c.spoke, c.whole = true, c.whole || !resp.Partial
	if resp.UsageMetadata != nil {
		c.usage = resp.UsageMetadata
	}
	if resp.Content != nil && (c.counts || c.room.Priced()) {
		if n := partsBytes(resp.Content.Parts); resp.Partial {
			c.heard += n
		} else {
			c.heard = n // the complete answer repeats its pieces
		}
	}
	if !resp.Partial {
		c.room.Settle(r.usedBy(c))
	}
}

// park tells the reservation whether other code runs before the rest of the answer is read.
func (c *modelCall) park(is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.room.Park(is)
}

// settle books the known usage of a call whose context has ended, because the model may never
// return.
func (r *run) settle(c *modelCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.room.Settle(r.usedBy(c))
}

// commit books the request's usage, and returns it.
func (r *run) commit() budget.Usage {
	c := r.call
	c.mu.Lock()
	defer c.mu.Unlock()
	if in, _, out := model.Tokens(c.usage); c.counts && c.whole && (in > 0 || out > 0) {
		r.meter.learn(c.bytes, in, out)
		r.meter.learnCache(model.Used(c.usage))
	} else if c.counts && c.whole {
		r.meter.learnOutput(perThree(c.heard))
	}
	used := r.usedBy(c)
	if !c.counts && used.Estimated && c.usage == nil && c.room.Priced() { // the input is needed now, for its cost
		used.InputTokens = r.meter.input(r.history.counted.request(c.req))
	}
	c.room.Commit(used)
	return used
}

// usedBy returns the usage of a request, as the provider reports it. Without a report it estimates
// the input, and counts the answer by its length. An answer that was cut off before its first piece
// counts like earlier answers, and one that broke off as MinOutputTokens at least. A request that the provider has
// refused, or that no connection could be made for, costs nothing. The caller holds c.mu.
func (r *run) usedBy(c *modelCall) budget.Usage {
	used := c.room.Estimate()
	used.OutputTokens = perThree(c.heard)
	if broke := !c.spoke && brokeOff(c.err); broke || !c.spoke && r.ctx.Err() != nil {
		if used.OutputTokens = r.meter.estimateOutput(); broke { // the provider has generated at least a short answer
			used.OutputTokens = max(used.OutputTokens, MinOutputTokens)
		}
	}
	if said := model.Used(c.usage); said.Tokens() > 0 {
		if !c.whole {
			said.OutputTokens, said.Estimated = max(said.OutputTokens, used.OutputTokens), true
		}
		return said
	}
	if !c.spoke && (wasRefused(c.err) || neverSent(c.err)) {
		return budget.Usage{Cost: new(0.0)}
	}
	return used
}

// wasRefused reports whether a provider has answered with an error.
func wasRefused(err error) bool {
	e, ok := errors.AsType[*model.APIError](err)
	return ok && e.Status >= 300
}

// neverSent reports whether a request failed because there was no connection to the provider.
func neverSent(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "dial"
}

// brokeOff reports whether an answer with a status of success broke off, or cannot be read. The provider has
// made it, and charges for it.
func brokeOff(err error) bool {
	e, ok := errors.AsType[*model.APIError](err)
	return ok && e.Status > 0 && e.Status < 300
}

// outOfBudget reports whether a call was not made because of the budget. No callback can replace such an error.
func outOfBudget(err error) bool {
	_, unpriced := errors.AsType[*budget.UnknownPriceError](err)
	return unpriced || errors.Is(err, budget.ErrExceeded)
}
