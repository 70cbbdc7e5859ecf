// SPDX-License-Identifier: Apache-2.0

package budget

import "math"

// Usage is the usage of model calls.
type Usage struct {
	// Calls is the number of requests, failed ones included.
	Calls int64 `json:"calls,omitzero" yaml:"calls,omitempty"`
	// InputTokens include CachedTokens, which the provider had in a cache, and the tokens that it wrote
	// into one: CacheWriteTokens for five minutes, and CacheWrite1hTokens for an hour. OutputTokens
	// include the model's thoughts.
	InputTokens        int64 `json:"input_tokens,omitzero" yaml:"input_tokens,omitempty"`
	CachedTokens       int64 `json:"cached_tokens,omitzero" yaml:"cached_tokens,omitempty"`
	CacheWriteTokens   int64 `json:"cache_write_tokens,omitzero" yaml:"cache_write_tokens,omitempty"`
	CacheWrite1hTokens int64 `json:"cache_write_1h_tokens,omitzero" yaml:"cache_write_1h_tokens,omitempty"`
	OutputTokens       int64 `json:"output_tokens,omitzero" yaml:"output_tokens,omitempty"`
	// Cost is in the currency of the price list. nil means unknown, unless nothing was used. The
	// cost is unknown if any part of it is.
	Cost *float64 `json:"cost,omitzero" yaml:"cost,omitempty"`
	// KnownCost is the known part of a cost that is unknown; 0 if Cost is set.
	KnownCost float64 `json:"known_cost,omitzero" yaml:"known_cost,omitempty"`
	// CacheSaved is how much less the input has cost than without a cache, as far as prices are known. It
	// is negative if writing into the cache cost more than reading from it saved.
	CacheSaved float64 `json:"cache_saved,omitzero" yaml:"cache_saved,omitempty"`
	// Estimated says that a provider did not report its usage: some of the tokens are estimated, or
	// missing where no estimate was made.
	Estimated bool `json:"estimated,omitzero" yaml:"estimated,omitempty"`
	// EstimatedTokens is the number of estimated tokens. If Estimated is set and this is 0, all
	// tokens are estimated.
	EstimatedTokens int64 `json:"estimated_tokens,omitzero" yaml:"estimated_tokens,omitempty"`
}

// Tokens returns the sum of input and output tokens.
func (u Usage) Tokens() int64 { return u.InputTokens + u.OutputTokens }

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	a, b := u.internal(Price{}, false), v.internal(Price{}, false)
	a.add(b)
	return a.public()
}

// Sub returns the usage since an earlier usage of the same budget. If the cost was unknown then,
// the result's cost is unknown.
func (u Usage) Sub(before Usage) Usage {
	if u == before { // as after most steps, which ask no model
		return Usage{}
	}
	a, b := u.internal(Price{}, false), before.internal(Price{}, false)
	d := a
	d.sub(b)
	d.unpriced, d.guessed = a.unpriced+b.unpriced, max(0, d.guessed)
	counted := d.input != 0 || d.output != 0
	d.estimated = one(u.Estimated && (!before.Estimated || d.guessed > 0 || d.calls > 0 && !counted))
	if d.calls == 0 && d.input == 0 && d.output == 0 && d.nanos == 0 {
		return Usage{}
	}
	return d.public()
}

// usage has Usage as integers.
type usage struct {
	calls, input, output, nanos int64
	cached, write, write1h      int64 // of the input
	saved                       int64 // in billionths, by the cache; may be negative
	unpriced, estimated         int64 // how many parts are
	guessed                     int64 // tokens
}

// internal computes the cost of u from the price if u has none.
func (u Usage) internal(p Price, priced bool) usage {
	in := usage{
		calls: count(u.Calls), input: count(u.InputTokens), output: count(u.OutputTokens), estimated: one(u.Estimated),
	}
	if u.Estimated {
		all := in.input + in.output
		if in.guessed = min(count(u.EstimatedTokens), all); in.guessed == 0 {
			in.guessed = all
		}
	}
	in.cached = min(count(u.CachedTokens), in.input)
	in.write = min(count(u.CacheWriteTokens), in.input-in.cached)
	in.write1h = min(count(u.CacheWrite1hTokens), in.input-in.cached-in.write)
	in.saved = nanos(math.Round(u.CacheSaved * 1e9))
	if in.saved == 0 && priced {
		in.saved = nanos(math.Round(p.saves(in)))
	}
	nothing := in.input == 0 && in.output == 0
	switch {
	case u.Cost != nil && *u.Cost >= 0:
		in.nanos = nanos(math.Round(*u.Cost * 1e9))
	case u.KnownCost > 0:
		in.nanos, in.unpriced = nanos(math.Round(u.KnownCost*1e9)), 1
	case nothing && u.Estimated: // nobody has counted
		in.unpriced = one(!priced || p.Input != 0 || p.Output != 0)
	case nothing && (priced || in.calls == 0):
	case priced:
		in.nanos = nanos(math.Round(p.billionths(in)))
	default:
		in.unpriced = 1
	}
	return in
}

func (u usage) public() Usage {
	out := Usage{Calls: u.calls, InputTokens: u.input, CachedTokens: u.cached, OutputTokens: u.output,
		CacheWriteTokens: u.write, CacheWrite1hTokens: u.write1h, CacheSaved: currency(u.saved), Estimated: u.estimated > 0}
	if out.Estimated && u.guessed < u.input+u.output {
		out.EstimatedTokens = u.guessed
	}
	if u.unpriced == 0 && (u.nanos != 0 || u.calls != 0 || u.input != 0 || u.output != 0) {
		out.Cost = new(currency(u.nanos))
	} else if u.unpriced > 0 {
		out.KnownCost = max(0, currency(u.nanos))
	}
	return out
}

// counts are the numbers that never become negative.
func (u *usage) counts() [10]*int64 {
	return [...]*int64{&u.calls, &u.input, &u.cached, &u.write, &u.write1h, &u.output, &u.nanos, &u.unpriced, &u.estimated, &u.guessed}
}

func (u *usage) add(v usage) {
	for i, n := range v.counts() {
		to := u.counts()[i]
		*to = sum(*to, *n)
	}
	u.saved = sum(u.saved, v.saved)
}

// sub undoes add.
func (u *usage) sub(v usage) {
	for i, n := range v.counts() {
		*u.counts()[i] -= *n
	}
	u.saved -= v.saved
}

// less takes v off u as far as it is in it, and returns the rest of v.
func (u *usage) less(v usage) usage {
	for i, n := range v.counts() {
		from := u.counts()[i]
		both := min(*from, *n)
		*from -= both
		*n -= both
	}
	if both := min(max(u.saved, -u.saved), max(v.saved, -v.saved)); (u.saved < 0) == (v.saved < 0) {
		if u.saved < 0 {
			both = -both
		}
		u.saved -= both
		v.saved -= both
	}
	return v
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// count limits a number so that sums do not overflow.
func count(n int64) int64 { return max(0, min(n, 1<<50)) }

// sum adds two numbers that are not negative without overflow.
func sum(a, b int64) int64 { return min(a+b, math.MaxInt64/4) }
