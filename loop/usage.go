// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"math"
	"time"
)

// Usage is the usage of model calls.
type Usage struct {
	Calls        int64 `json:"calls,omitzero"`
	InputTokens  int64 `json:"input_tokens,omitzero"`
	OutputTokens int64 `json:"output_tokens,omitzero"`
	// EstimatedTokens is the part of the tokens that is estimated, because no provider has
	// reported it.
	EstimatedTokens int64 `json:"estimated_tokens,omitzero"`
	// CachedTokens is the part of the input tokens that came from the provider's cache. CacheSaved is how
	// much less the input has cost than without a cache. It is negative if writing to the cache cost more
	// than reading from it saved.
	CachedTokens int64   `json:"cached_tokens,omitzero"`
	CacheSaved   float64 `json:"cache_saved,omitzero"`
	// Cost is in the currency of the price list. nil means unknown, not zero.
	Cost *float64 `json:"cost,omitzero"`
}

func (u *Usage) tokens() int64 { return u.InputTokens + u.OutputTokens }

func (u *Usage) cost() float64 {
	if u.Cost == nil {
		return 0
	}
	return *u.Cost
}

// usageTotals is the usage of the loop so far.
type usageTotals struct {
	Usage Usage `json:"usage,omitzero"`
	// CostUnknown says that some usage had no price, so that the total cost is unknown. KnownCost is the cost of the
	// rest, which the budget still counts.
	CostUnknown bool    `json:"cost_unknown,omitzero"`
	KnownCost   float64 `json:"known_cost,omitzero"`
}

// add adds the usage of a step. known is false if the cost of the step is unknown or 0.
func (a *usageTotals) add(u *Usage) (known bool) {
	a.Usage.add(u)
	switch cost := u.Cost; {
	case cost == nil || !(*cost >= 0) || math.IsInf(*cost, 1):
		a.CostUnknown = a.CostUnknown || u.Calls != 0 || u.InputTokens != 0 || u.OutputTokens != 0
	case *cost > 0 || a.Usage.Cost == nil && !a.CostUnknown:
		known = true
		a.KnownCost += *cost
		a.Usage.Cost = new(a.KnownCost)
	}
	if a.CostUnknown {
		a.Usage.Cost = nil
	}
	return known
}

// count adds the time and the usage of an outcome to the tally and returns the time. after says that the loop already
// has its reason to stop; count then also adds them to FinalActive and FinalUsage, which no limit counts.
func (t *Tally) count(o *addedOutcome, after bool) (took time.Duration) {
	took = o.active()
	if t.Started.IsZero() && !o.Started.IsZero() {
		t.Started = o.Started
	}
	between := max(0, o.Between)
	t.Active += took + between
	t.Between = 0
	if o.Cached {
		t.CacheHits++
	}
	known := t.usageTotals.add(&o.Usage)
	if after {
		t.FinalActive += took + between
		t.FinalUsage.add(&o.Usage)
		if known {
			t.FinalUsage.Cost = new(t.FinalUsage.cost() + *o.Usage.Cost)
		}
	}
	return took
}

// add adds v to u, except for the cost.
func (u *Usage) add(v *Usage) {
	u.Calls += v.Calls
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.EstimatedTokens += v.EstimatedTokens
	u.CachedTokens += v.CachedTokens
	u.CacheSaved += v.CacheSaved
}
