// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"encoding/json"
	"math"
	"time"

	"github.com/refrain-dev/refrain/loop"
)

// Bound is an upper limit. It is infinite if no limit applies or if the limit is unknown. JSON has
// null for infinite.
type Bound float64

// Unbounded reports whether the limit is infinite.
func (b Bound) Unbounded() bool { return math.IsInf(float64(b), 1) }

// MarshalJSON writes the number, or null if it is infinite.
func (b Bound) MarshalJSON() ([]byte, error) {
	if b.Unbounded() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(b))
}

var unbounded = Bound(math.Inf(1))

// times multiplies; zero times infinity is zero.
func (b Bound) times(n Bound) Bound {
	if b == 0 || n == 0 {
		return 0
	}
	return b * n
}

// AtMost is the most that a run, or an agent in it, can use.
type AtMost struct {
	// Runs is the number of times that the agent runs.
	Runs Bound `json:"runs"`
	// Turns is the number of questions to models. Calls is the number of requests if each question
	// is sent as often as its retries allow. Budgets count requests.
	Turns Bound `json:"turns"`
	Calls Bound `json:"calls"`
	// Tokens are input and output tokens together, and Cost is their cost.
	Tokens Bound `json:"tokens"`
	Cost   Bound `json:"cost"`
	// Seconds is the time of steps and delays, without overhead. A step that does not stop at its
	// timeout is abandoned two seconds later. The time that people may take to answer is included,
	// although no timeout limits it.
	Seconds Bound `json:"seconds"`

	tokensEach, costEach Bound // of the largest request
	waits                Bound // seconds for people to answer, which no timeout bounds
	limited              Bound // seconds for limits of providers to end, which only the timeout of a loop bounds
}

// Time returns Seconds as a duration; ok is false if the time is unbounded.
func (u AtMost) Time() (d time.Duration, ok bool) {
	if u.Seconds.Unbounded() || float64(u.Seconds) > math.MaxInt64/float64(time.Second) {
		return 0, false
	}
	return time.Duration(math.Ceil(float64(u.Seconds)*1e6)) * time.Microsecond, true
}

// plus returns the sum for two agents that run one after the other.
func (u AtMost) plus(v AtMost) AtMost {
	return AtMost{
		Turns: u.Turns + v.Turns, Calls: u.Calls + v.Calls, Tokens: u.Tokens + v.Tokens, Cost: u.Cost + v.Cost,
		Seconds:    u.Seconds + v.Seconds,
		waits:      u.waits + v.waits,
		limited:    u.limited + v.limited,
		tokensEach: max(u.tokensEach, v.tokensEach), costEach: max(u.costEach, v.costEach),
	}
}

// often multiplies the use by a number of runs.
func (u AtMost) often(n Bound) AtMost {
	u.Turns, u.Calls, u.Tokens, u.Cost, u.Seconds = u.Turns.times(n), u.Calls.times(n), u.Tokens.times(n),
		u.Cost.times(n), u.Seconds.times(n)
	u.waits, u.limited = u.waits.times(n), u.limited.times(n)
	return u
}

// within limits the use to that of the enclosing agent.
func (u AtMost) within(v AtMost) AtMost {
	u = u.atMostCalls(v.Calls)
	u.Turns, u.Tokens, u.Cost, u.Seconds = min(u.Turns, v.Turns), min(u.Tokens, v.Tokens), min(u.Cost, v.Cost),
		min(u.Seconds+u.limited, v.Seconds+v.limited)
	u.limited = 0
	u.waits = min(u.waits, v.waits)
	return u
}

// waiting adds the time in which people answer and limits of providers end.
func (u AtMost) waiting() AtMost {
	u.Seconds, u.waits, u.limited = u.Seconds+u.waits+u.limited, 0, 0
	return u
}

// atMostCalls limits the number of requests.
func (u AtMost) atMostCalls(n Bound) AtMost {
	if n < u.Calls {
		u.Calls, u.Turns = n, min(u.Turns, n)
		u.Tokens, u.Cost = min(u.Tokens, n.times(u.tokensEach)), min(u.Cost, n.times(u.costEach))
	}
	return u
}

// noLimit is the use of an agent about which nothing is known.
var noLimit = AtMost{Turns: unbounded, Calls: unbounded, Tokens: unbounded, Cost: unbounded, Seconds: unbounded,
	tokensEach: unbounded, costEach: unbounded}

// seconds converts a timeout, of which 0 means no limit.
func seconds[D time.Duration | loop.Duration](d D) Bound {
	if d == 0 {
		return unbounded
	}
	return Bound(time.Duration(d).Seconds())
}

// budgeted limits the use to a budget.
func (u AtMost) budgeted(b *loop.Budget) AtMost {
	if b == nil {
		return u
	}
	if b.Calls > 0 {
		u = u.atMostCalls(Bound(b.Calls))
	}
	if b.Tokens > 0 {
		u.Tokens = min(u.Tokens, Bound(b.Tokens))
	}
	if b.Cost != nil {
		u.Cost = min(u.Cost, Bound(*b.Cost))
	}
	return u
}

// less returns what is left of u after v, which is a part of it; most returns the larger of each.
func (u AtMost) less(v AtMost) AtMost {
	less := func(u *Bound, v Bound) {
		if !u.Unbounded() {
			*u -= v
		}
	}
	less(&u.Turns, v.Turns)
	less(&u.Calls, v.Calls)
	less(&u.Tokens, v.Tokens)
	less(&u.Cost, v.Cost)
	less(&u.Seconds, v.Seconds)
	less(&u.waits, v.waits)
	less(&u.limited, v.limited)
	return u
}

func (u AtMost) most(v AtMost) AtMost {
	return AtMost{Turns: max(u.Turns, v.Turns), Calls: max(u.Calls, v.Calls), Tokens: max(u.Tokens, v.Tokens), Cost: max(u.Cost, v.Cost),
		Seconds: max(u.Seconds, v.Seconds), waits: max(u.waits, v.waits), limited: max(u.limited, v.limited),
		tokensEach: max(u.tokensEach, v.tokensEach), costEach: max(u.costEach, v.costEach)}
}
