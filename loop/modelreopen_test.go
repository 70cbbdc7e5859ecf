// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"math/rand/v2"
	"time"

	"github.com/refrain-dev/refrain/loop"
)

// reopen lets the loop go on under a plan with other limits, if these lift what
// has ended it. Since the model finds out everything anew from what has
// happened, it then does what it would have done under that plan all along.
func (m *model) reopen(p *loop.Plan) (ok bool) {
	old := m.p
	switch {
	case m.exit != "",
		m.timedOut && p.Timeout > 0 && p.Timeout <= old.Timeout,
		m.refused && !more(p.Budget, old.Budget),
		m.fatal == "state" && p.StateLimit > 0 && m.size > p.StateLimit,
		(m.fatal == "iteration" || m.fatal == "step "+loop.IterationTimeout) && p.IterationTimeout > 0 && m.spent >= time.Duration(p.IterationTimeout),
		m.tooMany && p.MaxConsecutiveFailures > 0 && m.running >= p.MaxConsecutiveFailures:
		return false
	}
	cut := m.timedOut || m.refused || m.fatal != "" && m.fatal != "rollback"
	switch {
	case m.undone: // the next iteration begins
		m.past = append(m.past, &past{number: m.iteration, rejected: true, undone: true})
		m.open = false
	case m.open && cut: // its step is due again
		m.place--
	}
	if m.open {
		m.due = false
	}
	m.p = p
	m.canceled, m.timedOut, m.refused, m.tooMany, m.fatal, m.undone = false, false, false, false, "", false
	m.finalized, m.finalFailed = false, false
	m.lateActive, m.lateUsed = 0, loop.Usage{}
	return m.reason() == ""
}

// more reports whether a budget leaves more of anything than it did.
func more(now, then *loop.Budget) bool {
	if now == nil || then == nil {
		return true
	}
	return then.Calls > 0 && (now.Calls == 0 || now.Calls > then.Calls) || then.Tokens > 0 && (now.Tokens == 0 || now.Tokens > then.Tokens) ||
		then.Cost != nil && (now.Cost == nil || *now.Cost > *then.Cost)
}

// raised is the plan with some of its limits raised, or dropped, or none.
func raised(r *rand.Rand, p *loop.Plan) *loop.Plan {
	q := *p
	if q.MaxIterations > 0 && !one(r, 4) {
		q.MaxIterations += pick(r, 1, 2, uint(7))
	}
	if q.Timeout > 0 && !one(r, 4) {
		q.Timeout *= pick(r, 0, 2, loop.Duration(5))
	}
	if q.IterationTimeout > 0 && !one(r, 4) {
		q.IterationTimeout *= pick(r, 0, 2, loop.Duration(5))
	}
	if q.Timeout > 0 {
		q.IterationTimeout = min(q.IterationTimeout, q.Timeout)
	}
	if b := q.Budget; b != nil && !one(r, 4) {
		more := *b
		more.Calls *= pick(r, 1, 2, int64(5))
		more.Tokens *= pick(r, 1, 2, int64(5))
		if b.Cost != nil {
			more.Cost = new(*b.Cost * 2)
		}
		if q.Budget = &more; one(r, 5) {
			q.Budget = nil
		}
	}
	if q.MaxConsecutiveFailures > 0 && !one(r, 4) {
		q.MaxConsecutiveFailures *= pick(r, 0, 2, uint(4))
	}
	if q.StateLimit > 0 && !one(r, 4) {
		q.StateLimit *= pick(r, 0, int64(2))
	}
	return &q
}
