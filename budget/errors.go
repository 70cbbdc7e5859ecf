// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrExceeded matches every [*ExceededError] in errors.Is.
var ErrExceeded = errors.New("budget exceeded")

// ExceededError reports that a call was not made because it does not fit in a budget.
type ExceededError struct {
	// What is the name of the limit: "calls", "tokens" or "cost".
	What string
	// Limit is the budget's limit; Used the usage booked so far; Estimated the part of Used that no
	// provider reported (tokens only); Reserved the expected usage of running calls; Held the amount
	// kept back from this call; Asked the smallest amount that the call needs. Costs are in the
	// price list's currency.
	Limit, Used, Estimated, Reserved, Held, Asked float64
	// Budget is the budget's name; empty for the budget of the whole run.
	Budget string
}

// Error names the exhausted limit and where to raise it.
func (e *ExceededError) Error() string {
	var b strings.Builder
	what, field := " "+e.What, e.What
	if e.What == "cost" {
		what = " (cost)"
	}
	b.WriteString("budget of " + number(e.Limit) + what)
	if e.Budget != "" {
		fmt.Fprintf(&b, " of %q", e.Budget)
	}
	if e.Asked > e.Limit {
		b.WriteString(" is too small for the call (")
	} else {
		b.WriteString(" is spent (")
	}
	b.WriteString(number(e.Used) + " used, ")
	if e.Estimated != 0 {
		b.WriteString(number(e.Estimated) + " of it estimated, ")
	}
	if e.Reserved != 0 {
		b.WriteString(number(e.Reserved) + " reserved by running calls, ")
	}
	if e.Held != 0 {
		b.WriteString(number(e.Held) + " kept for the end, ")
	}
	b.WriteString(number(e.Asked) + " asked): raise ")
	if e.Budget != "" {
		return b.String() + "its budget." + field
	}
	return b.String() + "it with --budget-" + field + ", budget." + field + " or agent.RunConfig.Budget"
}

// Is reports whether target is [ErrExceeded].
func (e *ExceededError) Is(target error) bool { return target == ErrExceeded }

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// exceeded returns the error for a request that does not fit in the free amount.
func (b *Meter) exceeded(ask, free amount, claims *Hold) *ExceededError {
	e, held := &ExceededError{Budget: b.name}, b.held
	held.sub(claims.at(b))
	switch {
	case ask.calls > free.calls:
		e.What, e.Limit, e.Asked = "calls", float64(b.limit.calls), float64(ask.calls)
		e.Used, e.Reserved, e.Held = float64(b.used.calls), float64(b.reserved.calls), float64(held.calls)
	case ask.tokens > free.tokens:
		e.What, e.Limit, e.Asked = "tokens", float64(b.limit.tokens), float64(ask.tokens)
		e.Used, e.Reserved, e.Held = float64(b.used.input+b.used.output), float64(b.reserved.tokens),
			float64(held.tokens)
		e.Estimated = float64(b.used.guessed)
	default:
		e.What, e.Limit, e.Asked = "cost", currency(b.limit.nanos), currency(ask.nanos)
		e.Used, e.Reserved, e.Held = currency(b.used.nanos), currency(b.reserved.nanos), currency(held.nanos)
	}
	return e
}

// UnknownPriceError reports that a call was not made because a budget limits cost and the cost of
// the call is unknown.
type UnknownPriceError struct {
	// Model is the model without a price. It is empty if an earlier part of the run has an unknown
	// cost.
	Model string
}

// Error names the missing price.
func (e *UnknownPriceError) Error() string {
	if e.Model == "" {
		return "the cost so far is unknown, and a budget limits it: start a run of its own, or leave out budget.cost"
	}
	return fmt.Sprintf("the price of model %q is unknown, and a budget limits cost: add %q to the prices, with input "+
		"and output per million tokens (0 is free), or leave out budget.cost", e.Model, e.Model)
}
