// SPDX-License-Identifier: Apache-2.0

package budget

import "math"

// Limits has the limits of the usage of model calls. 0 and nil mean no limit; a negative number
// allows no call.
type Limits struct {
	// Calls is the largest number of requests, failed ones included.
	Calls int64 `json:"calls,omitzero" yaml:"calls,omitempty"`
	// Tokens is the largest sum of input and output tokens.
	Tokens int64 `json:"tokens,omitzero" yaml:"tokens,omitempty"`
	// Cost is in the currency of the price list. With a limit of 0 only calls without cost are
	// made, and with any limit only calls whose price is known.
	Cost *float64 `json:"cost,omitzero" yaml:"cost,omitempty"`
}

// limit has Limits as integers: 0 means no limit of calls or tokens.
type limit struct {
	amount
	costed bool // nanos is a limit, whatever it is
}

func (l Limits) limit() limit {
	in := limit{amount: amount{calls: bound(l.Calls), tokens: bound(l.Tokens)}}
	if l.Cost != nil {
		in.costed, in.nanos = true, nanos(math.Round(*l.Cost*1e9))
		if math.IsNaN(*l.Cost) { // to be on the safe side
			in.nanos = 0
		}
	}
	return in
}

// bound limits a number so that sums do not overflow.
func bound(n int64) int64 { return max(-1, min(n, 1<<60)) }

// nanos converts a count of billionths to an integer that sums do not overflow
// in a hurry.
func nanos(f float64) int64 {
	const most = 1 << 60 // a thousand million of the currency
	return int64(max(-most, min(most, f)))
}

// currency converts an amount of billionths to the currency.
func currency(nanos int64) float64 { return float64(nanos) / 1e9 }
