// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/model/provider"
)

// prices reads what models charge, by their names.
func (r *reader) prices(a *Agent, n *yaml.Node) {
	ps, _ := r.pairs(n, "prices")
	prices := make(budget.Prices, len(ps))
	for _, p := range ps {
		field := "prices." + p.key
		a.nodes[field] = p.value
		if price, ok := r.price(a, p.value, field); ok {
			prices[p.key] = price
		}
	}
	r.def.Prices = prices
}

func (r *reader) price(a *Agent, n *yaml.Node, field string) (budget.Price, bool) {
	var price budget.Price
	given := make(map[string]bool)
	ok := r.settings(a, n, field, within("prices"), func(key, f string, n *yaml.Node) {
		given[key] = true
		v, ok := r.number(n, f)
		if ok && v < 0 {
			r.report(r.src.of(n), CodeValue, "%s must not be negative, got %s", f, n.Value).Hint = "0 is free"
		}
		switch key {
		case "input":
			price.Input = v
		case "output":
			price.Output = v
		case "cached_input":
			price.CachedInput = v
		}
	})
	return price, ok && r.complete(n, field, given, "input", "output")
}

// unpriced reports agents that ask a model without a price where a loop around
// them bounds the cost. A script says itself what it is called, so that nobody
// knows the price of one before a run.
func (c *checker) unpriced(a *Agent) {
	by := a.naming()
	if a.Type != TypeLLM || by == nil {
		return
	}
	p, rest, err := provider.Find(by.Model)
	if err != nil || p.Name == scriptedProvider {
		return
	}
	around := a.loopAround()
	for around != nil && (around.Loop.Budget == nil || around.Loop.Budget.Cost == nil) {
		around = around.loopAround()
	}
	if around == nil {
		return
	}
	if _, known := c.def.Prices.Of(rest); known { // as a call looks for it
		return
	}
	c.report(by.at("model"), CodePrice, "the loop %q bounds its cost, and the price of %q is not known", around.Name, by.Model).
		Hint = c.priceHint(by.Model)
}

func (c *checker) priceHint(model string) string {
	names := slices.Sorted(maps.Keys(c.def.Prices))
	if meant := didYouMean(model, names, "%q", ""); meant != "" {
		return strings.TrimSuffix(meant, "?") + " in prices?"
	}
	return "add it to the root: prices: {" + model + ": {input: …, output: …}}, for a million tokens; 0 is free"
}
