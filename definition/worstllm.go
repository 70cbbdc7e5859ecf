// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/model/provider"
)

// defaultRequests is how often a request is sent in all if the file does not say.
const defaultRequests = 3

// llm is one run of an agent that asks a model. How long the model takes, nobody
// says.
func (w *worst) llm(a *Agent) AtMost {
	turns := w.turns(a)
	requests := Bound(a.LLM.Retry.Attempts)
	if requests == 0 {
		requests = defaultRequests
	}
	u := AtMost{Turns: turns, Calls: turns.times(requests), Seconds: unbounded}
	u.tokensEach, u.costEach = w.request(a)
	u.Tokens, u.Cost = u.Calls.times(u.tokensEach), u.Calls.times(u.costEach)
	for _, t := range a.LLM.Tools {
		if t.Agent != nil {
			u = u.plus(w.once(t.Agent).often(unbounded))
		}
	}
	return u
}

// turns is how often the model is asked in one run. Who can call a tool may do
// so again and again; to call exit_loop ends the run.
func (w *worst) turns(a *Agent) Bound {
	for _, t := range a.LLM.Tools {
		if t.Exit == "" {
			return unbounded
		}
	}
	if a.LLM.OutputSchema != nil {
		return 2
	}
	return 1
}

// request is what one request of an agent has and costs.
func (w *worst) request(a *Agent) (tokens, cost Bound) {
	in, out := w.given.InputTokens, w.given.OutputTokens
	if a.LLM.MaxTokens > 0 {
		out = int64(a.LLM.MaxTokens)
	}
	tokens = unbounded
	if in > 0 && out > 0 {
		tokens = Bound(in + out)
	}
	price, known := w.price(a)
	switch {
	case !known:
		return tokens, unbounded
	case price.Input == 0 && price.Output == 0 && price.CachedInput == 0:
		return tokens, 0
	case tokens.Unbounded():
		return tokens, unbounded
	}
	return tokens, Bound((float64(in)*max(price.Input, price.CachedInput) + float64(out)*price.Output) / 1e6)
}

// price is what the model of an agent charges.
func (w *worst) price(a *Agent) (budget.Price, bool) {
	name := w.modelOf(a)
	if name == "" {
		return budget.Price{}, false
	}
	if p, rest, err := provider.Find(name); err == nil && p.Name != scriptedProvider {
		return w.def.Prices.Of(rest) // as a call looks for it
	}
	return w.def.Prices.Of(name)
}

// modelOf is the name of the model of an agent; empty if nobody says.
func (w *worst) modelOf(a *Agent) string {
	if w.given.EveryModel != "" {
		return w.given.EveryModel
	}
	if by := a.naming(); by != nil {
		return by.Model
	}
	return w.given.Model
}
