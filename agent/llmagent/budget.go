// SPDX-License-Identifier: Apache-2.0

package llmagent

import (
	"errors"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/model"
)

// What is reserved for an answer where a budget limits tokens or cost. It is
// MaxOutputTokens if the config sets it; otherwise DefaultOutputTokens, or the
// longest answer that the agent has had if that was longer. If less remains,
// the request goes out with MaxOutputTokens set to what does, down to
// MinOutputTokens; below, it is refused. An answer without MaxOutputTokens that
// is longer than what was reserved for it counts in full, and may exceed the
// budget that once.
const (
	DefaultOutputTokens = 4096
	MinOutputTokens     = 64
)

// modelCall is one request to the model, as the run's budget sees it.
type modelCall struct {
	room   budget.Reservation
	req    *model.LLMRequest
	counts bool  // its bytes are counted, before it is sent
	bytes  int64 // of the request

	wanted budget.Request // room for a whole answer, if there was less

	spoke bool  // the model has answered something
	whole bool  // and all of it
	heard int64 // bytes of what it said
	usage *genai.GenerateContentResponseUsageMetadata
	err   error
}

// reserve makes room for one request in the run's budget, before each attempt.
// It bounds the request's output by what remains. Who has reserved notes in
// r.call what comes of the request, and commits.
func (r *run) reserve(req *model.LLMRequest) error {
	b, c := agent.BudgetOf(r.ctx), &r.call
	*c = modelCall{req: req, counts: b.Metered()}
	ask := budget.Request{Model: req.Model}
	if ask.Model == "" {
		ask.Model = r.cfg.Model.Name()
	}
	if c.counts {
		c.bytes = r.history.counted.request(req)
		ask.InputTokens = r.meter.input(c.bytes)
		ask.OutputTokens, ask.MinOutputTokens = r.meter.output(req.Config)
	}
	var err error
	if c.room, err = b.Reserve(ask); err != nil {
		return err
	}
	if c.room.OutputTokens < ask.OutputTokens {
		cfg := new(genai.GenerateContentConfig)
		if req.Config != nil {
			*cfg = *req.Config // it may be somebody's own, from a callback
		}
		cfg.MaxOutputTokens = int32(c.room.OutputTokens)
		c.wanted = ask
		c.wanted.MinOutputTokens = 0
		req.Config = cfg
	}
	return nil
}

// note takes in what came of the request.
func (c *modelCall) note(resp *model.LLMResponse, err error) {
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
	if resp.Content == nil || !c.counts && !c.room.Priced() {
		return
	}
	if n := partsBytes(resp.Content.Parts); resp.Partial {
		c.heard += n
	} else {
		c.heard = n // the pieces once more
	}
}

// commit books what the request has used, as the provider reports it. If it
// does not, the input counts as estimated, and the answer by its length; or, if
// it was canceled before a word of it was heard, as estimated too. A request
// that the provider has refused costs nothing.
func (r *run) commit() {
	c := &r.call
	used := c.room.Estimate()
	if !c.counts && c.usage == nil && c.room.Priced() { // what was not worth it before is now
		used.InputTokens = r.meter.input(r.history.counted.request(c.req))
		used.OutputTokens, _ = r.meter.output(c.req.Config)
	}
	if c.spoke || r.ctx.Err() == nil {
		used.OutputTokens = perThree(c.heard)
	}
	if in, cached, out := reported(c.usage); in > 0 || out > 0 {
		if c.whole && c.counts {
			r.meter.learn(c.bytes, in, out)
		}
		if !c.whole {
			out = max(out, used.OutputTokens)
		}
		used = budget.Usage{InputTokens: in, CachedTokens: cached, OutputTokens: out, Estimated: !c.whole}
	} else if !c.spoke && wasRefused(c.err) {
		used = budget.Usage{Cost: new(0.0)}
	}
	c.room.Commit(used)
}

// reported is what a provider says that a request has used.
func reported(u *genai.GenerateContentResponseUsageMetadata) (in, cached, out int64) {
	if u == nil {
		return 0, 0, 0
	}
	in = int64(u.PromptTokenCount) + int64(u.ToolUsePromptTokenCount)
	out = int64(u.CandidatesTokenCount) + int64(u.ThoughtsTokenCount)
	return in, int64(u.CachedContentTokenCount), max(out, int64(u.TotalTokenCount)-in)
}

// wasRefused reports whether a provider has answered with an error.
func wasRefused(err error) bool {
	e, ok := errors.AsType[*model.APIError](err)
	return ok && e.Status != 0
}

// outOfBudget reports whether a call was not made because of the budget. No
// callback makes up for that.
func outOfBudget(err error) bool {
	_, unpriced := errors.AsType[*budget.UnknownPriceError](err)
	return unpriced || errors.Is(err, budget.ErrExceeded)
}
