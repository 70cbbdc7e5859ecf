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

func asPrices(m map[string]budget.Price) budget.Prices { return m }

var priceParts = parts[budget.Price]{rows: []row[budget.Price]{
	field("input", "price of a million input tokens; 0 is free", aPrice, func(p *budget.Price) *float64 { return &p.Input }).must(),
	field("output", "price of a million output tokens; 0 is free", aPrice, func(p *budget.Price) *float64 { return &p.Output }).must(),
	field("cached_input", "price of input tokens from the provider's cache; that of input if left out", aPrice, func(p *budget.Price) *float64 { return &p.CachedInput }),
}}

var aPrice = value[float64]{numberFrom(0).shape, func(p place, n *yaml.Node) (float64, bool) {
	v, ok := p.number(n, p.field)
	if ok && v < 0 {
		p.report(p.src.Of(n), CodeValue, "%s must not be negative, got %s", p.field, n.Value).Hint = "0 is free"
	}
	return v, ok && v >= 0
}}

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
