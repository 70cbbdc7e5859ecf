// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/refrain-dev/refrain/loop"
)

// model is the law of the loop in the plainest words: it keeps all that has
// happened, and finds out anew each time what follows from it. It is slow and
// grows without bound, but it can be read beside the law.
type model struct {
	p   *loop.Plan
	seq []int

	open        bool // an iteration is
	iteration   int
	place       int
	tries       int                      // failed ones, of the step that is due
	told        time.Duration            // how long the last of them asks to wait
	asked       int                      // of the judge, in this iteration
	start       *past                    // what was there before the first one; nil if it has no score
	started     bool                     // the start has been scored, or cannot be
	scoredSteps int                      // steps of it that ran
	said        []float64                // by the judge
	parts       []map[string]float64     // the dimensions of that
	prints      []string                 // in this iteration
	unjudged    []string                 // since the judge ran last
	judged      string                   // what it judged then; "" if it is unknown
	failures    int                      // in this iteration
	worked      int                      // steps of it that did not fail
	wrote       bool                     // one of them the score's key
	running     uint                     // failures
	idle        int                      // steps running that were refused
	spent       time.Duration            // in this iteration
	after       time.Duration            // the delay to wait
	runs        map[int][]time.Duration  // of a step, that count for its limit
	fails       map[string]uint          // of a circuit, running
	opened      map[string]time.Duration // when a circuit did
	truths      map[string][]bool        // of a condition, at the ends of iterations
	holds       bool                     // stop_when, at the last outcome
	worthless   bool                     // what comes next, seen when an iteration ended
	past        []*past
	candidates  []candidate

	active, lateActive time.Duration
	used, lateUsed     loop.Usage // what is known of the cost
	ahead, enough      float64    // what an iteration gains beyond its price, and what all of them must
	priceless          bool       // some cost is not known

	canceled, timedOut, refused, tooMany bool
	fatal                                string // what has failed: a step and how, iteration, state or rollback
	exit                                 loop.StopReason
	size                                 int64 // of the state
	again                                bool  // the judge is due for the best
	due, undone                          bool  // a rollback; one in the middle of an iteration
	accepted                             *float64
	bestMean                             float64 // of all answers about the best
	bestCount                            int
	price                                float64 // of an iteration, in points of the score
	course                               []mean  // more is better
	finalized, finalFailed               bool
	leg, legFrom                         int // its number, and how many iterations had ended before it
	ownMean                              float64
	ownCount                             int // of the best of a leg from the start
}

// past is an iteration that has ended.
type past struct {
	number, failures         int
	complete, best, rejected bool
	own                      bool // the best of its leg
	succeeded, undone        bool
	held                     uint // for how many iterations running stop_when has, its For apart
	score, delta             *float64
	percent                  float64
	dims                     map[string]float64
	noise                    float64
	judged                   bool
	doubted                  bool   // it may be below the target
	count                    int    // answers that the score is the mean of
	print                    string // "" if it cannot be said
}

// candidate is what a judge has said about one text, over iterations running.
type candidate struct {
	text  string // "" if it is unknown
	said  []float64
	first int // the iteration that judged it first
	times int // iterations that did
}

type mean struct {
	y float64
	n int
}

func newModel(p *loop.Plan) *model {
	return &model{
		p: p, seq: p.Sequence(), runs: map[int][]time.Duration{}, fails: map[string]uint{}, opened: map[string]time.Duration{}, truths: map[string][]bool{},
	}
}

// ended are the iterations that came to their end.
func (m *model) ended() []*past {
	return slices.DeleteFunc(slices.Clone(m.past), func(it *past) bool { return it.undone })
}

func (m *model) last() *past { return m.past[len(m.past)-1] }

// best is the iteration with the best accepted score; nil if there is none.
func (m *model) best() *past {
	for _, it := range slices.Backward(m.past) {
		if it.best {
			return it
		}
	}
	return m.start
}

// begins reports whether the next step begins an iteration.
func (m *model) begins() bool { return !m.open && m.startSteps() == nil && !m.again }

// startSteps are the steps that have yet to score what was there before the first iteration.
func (m *model) startSteps() (left []int) {
	s := m.p.Score
	if s == nil || !s.Baseline || m.started || m.iteration > 0 {
		return nil
	}
	for _, i := range m.seq {
		name := m.p.Steps[i].Name
		if s.Judge != nil && name == s.Judge.Step || s.Judge == nil && slices.Contains(s.Scorers, name) {
			left = append(left, i)
		}
	}
	if m.scoredSteps >= len(left) {
		return nil
	}
	return left[m.scoredSteps:]
}

// reason is the first in the order of checks, but what no iteration has succeeded
// in has failed, unless a step asked to leave.
func (m *model) reason() loop.StopReason {
	r := m.first()
	if r == "" || r == m.exit || r == loop.ReasonCanceled || m.open && m.worked > 0 {
		return r
	}
	ended := false
	for _, it := range m.past {
		if it.succeeded {
			return r
		}
		ended = ended || !it.undone
	}
	if ended {
		return loop.ReasonError
	}
	return r
}

// legDue reports whether the loop goes on in another leg in place of stopping.
func (m *model) legDue() bool {
	if m.leg == len(m.p.OnPlateau) || m.p.MaxIterations > 0 && m.iteration >= int(m.p.MaxIterations) || m.holding() != loop.ReasonConverged {
		return false
	}
	_, full := m.budget()
	return !full
}

func (m *model) fresh() bool { return m.leg > 0 && m.p.OnPlateau[m.leg-1].Fresh }

// ground is what a rollback restores, and the mean of the answers about it.
func (m *model) ground() (it *past, mean float64, count int) {
	if !m.fresh() {
		return m.best(), m.bestMean, m.bestCount
	}
	it = m.start
	for _, own := range m.past[m.legFrom:] {
		if own.own {
			it = own
		}
	}
	return it, m.ownMean, m.ownCount
}

func (m *model) first() loop.StopReason {
	if m.legDue() {
		return ""
	}
	return m.holding()
}

// budget reports whether it is exceeded, and whether nothing of it is left.
func (m *model) budget() (over, full bool) {
	p := m.p
	calls, tokens, cost := m.counted()
	if b := p.Budget; b != nil {
		keep := 1 - p.Share()
		if b.Calls > 0 {
			limit := int64(math.Floor(float64(b.Calls) * keep))
			over, full = over || calls > limit, full || calls >= limit
		}
		if b.Tokens > 0 {
			limit := int64(math.Floor(float64(b.Tokens) * keep))
			over, full = over || tokens > limit, full || tokens >= limit
		}
		if b.Cost != nil {
			over, full = over || cost > round(*b.Cost*keep), full || cost >= round(*b.Cost*keep)
		}
	}
	return over, full
}

// holding is the first reason that holds.
func (m *model) holding() loop.StopReason {
	p := m.p
	over, full := m.budget()
	switch {
	case m.canceled:
		return loop.ReasonCanceled
	case m.fatal != "":
		return loop.ReasonError
	case over || m.refused:
		return loop.ReasonBudget
	case m.timedOut || p.Timeout > 0 && m.active-m.lateActive >= m.deadline():
		return loop.ReasonTimeout
	case m.exit != "":
		return m.exit
	case m.holds:
		return loop.ReasonCondition
	case m.open || len(m.past) == 0:
		return ""
	case m.reached():
		return loop.ReasonTarget
	case m.isConverged():
		return loop.ReasonConverged
	case m.isCircling():
		return loop.ReasonNoProgress
	case m.worthless && (m.p.Version >= 4 && m.left()*m.ahead < m.enough || m.p.Version < 4 && (!m.proves() || m.findStandstill(max(2, m.p.Score.Patience), func(float64) float64 { return m.price }, false))):
		return loop.ReasonConverged
	case full:
		return loop.ReasonBudget
	case p.MaxIterations > 0 && uint(m.iteration) >= p.MaxIterations:
		return loop.ReasonMaxIterations
	}
	return ""
}

// counted is what the limits count: nothing after the reason to stop.
func (m *model) counted() (calls, tokens int64, cost float64) {
	u, l := m.used, m.lateUsed
	if u.Cost != nil {
		cost += *u.Cost
	}
	if l.Cost != nil {
		cost -= *l.Cost
	}
	return u.Calls - l.Calls, u.InputTokens + u.OutputTokens - l.InputTokens - l.OutputTokens, round(cost)
}

func round(f float64) float64 { return math.Round(f*1e9) / 1e9 }

// deadline is the time that the iterations have.
func (m *model) deadline() time.Duration {
	all := time.Duration(m.p.Timeout)
	return all - time.Duration(float64(all)*m.p.Share())
}

func (m *model) reached() bool {
	s := m.p.Score
	if s == nil || m.last().score == nil || m.last().rejected || s.Target == nil && s.DimensionTarget == nil {
		return false
	}
	if s.Target != nil && m.gain(*s.Target, *m.last().score) < 0 || m.last().doubted {
		return false
	}
	if s.DimensionTarget != nil {
		if len(m.last().dims) == 0 {
			return false
		}
		for _, d := range m.last().dims {
			if m.gain(*s.DimensionTarget, d) < 0 {
				return false
			}
		}
	}
	return true
}

func (m *model) gain(from, to float64) float64 {
	if m.p.Score.LowerIsBetter {
		from, to = to, from
	}
	return round(to - from)
}

// converged: the improvement was too small, so many times running.
func (m *model) isConverged() bool {
	s := m.p.Score
	if s == nil || s.MinDelta == nil && s.MinDeltaPercent == nil || m.last().delta == nil || m.last().failures > 0 {
		return false
	}
	n := uint(0)
	for _, it := range m.past[m.legFrom:] {
		if it.delta == nil || it.failures > 0 {
			continue
		}
		n++
		if !(s.MinDelta != nil && *it.delta < *s.MinDelta || s.MinDeltaPercent != nil && it.percent < *s.MinDeltaPercent || it.noise > 0 && *it.delta <= it.noise) {
			n = 0
		}
	}
	return n >= max(1, s.Patience) && (!m.proves() || m.findStandstill(max(1, s.Patience), func(level float64) (gain float64) {
		if s.MinDelta != nil {
			gain = *s.MinDelta
		}
		if s.MinDeltaPercent != nil {
			gain = max(gain, *s.MinDeltaPercent/100*math.Abs(level))
		}
		return gain
	}, true))
}

// circling: the same again and again, or two that take turns.
func (m *model) isCircling() bool {
	rule := m.p.NoProgress
	if rule == nil {
		return false
	}
	var all []string
	for _, it := range m.past[m.legFrom:] {
		if it.print != "" && it.complete {
			all = append(all, it.print)
		}
	}
	l := len(all)
	if l == 0 {
		return false
	}
	repeats, swings := 0, 0
	for i := l - 1; i >= 0 && all[i] == all[l-1]; i-- {
		repeats++
	}
	for i := l; repeats == 1 && i >= 2 && slices.Equal(all[i-2:i], all[l-2:]); i -= 2 {
		swings++
	}
	wantRepeats, wantSwings := 3, 2
	if rule.Repeats > 0 {
		wantRepeats = int(rule.Repeats)
	}
	if rule.Swings > 0 {
		wantSwings = int(rule.Swings)
	}
	return repeats >= wantRepeats || swings >= wantSwings
}

// notWorth: what the next iteration is expected to bring, for what it uses.
func (m *model) notWorth() bool {
	rule := m.p.NotWorth
	if rule == nil || m.last().score == nil {
		return false
	}
	u := loop.Tally{Iteration: m.iteration, Active: m.active - m.lateActive}
	u.Usage.InputTokens, u.Usage.OutputTokens = m.used.InputTokens-m.lateUsed.InputTokens, m.used.OutputTokens-m.lateUsed.OutputTokens
	if _, _, cost := m.counted(); !m.priceless && m.used.Cost != nil {
		u.Usage.Cost = &cost
	}
	for i, it := range m.past {
		if it.complete {
			u.Complete++
		}
		if i >= m.legFrom && it.score != nil {
			u.Scores = append(u.Scores, *it.score)
		}
	}
	u.Judge.Samples = m.said
	for _, c := range m.candidates {
		u.Judge.PastSquares += squares(c.said)
		u.Judge.PastFreedom += len(c.said) - 1
	}
	f := m.p.Forecast(&u)
	use := 1.0
	switch rule.Per {
	case loop.PerMinute:
		use = f.Time.Minutes()
	case loop.PerKTokens:
		use = float64(u.Usage.InputTokens+u.Usage.OutputTokens) / float64(u.Complete) / 1000
	case loop.PerCost:
		if use = 0; f.Cost != nil {
			use = *f.Cost
		}
	}
	m.price = rule.Gain * use
	switch {
	case u.Complete == 0 || use <= 0:
		return false
	case m.p.Version >= 4:
		return m.expects(f, u.Scores, use)
	}
	return f.Predictable && f.Gain/use < rule.Gain
}

// look evaluates a condition in three values; at the end of an iteration its
// For counts.
func (m *model) look(c *loop.Condition, path string, state map[string]any, ended bool) (holds, known bool) {
	switch {
	case c.Expr != "":
		holds, known = m.leaf(c.Expr, state)
	case c.Not != nil:
		holds, known = m.look(c.Not, path+"n", state, ended)
		holds = !holds && known
	default:
		cs, decides := c.Any, true
		if c.Any == nil {
			cs, decides = c.All, false
		}
		holds, known = !decides, true
		decided := false
		for i := range cs {
			h, k := m.look(&cs[i], fmt.Sprintf("%s%d", path, i), state, ended)
			known = known && k
			decided = decided || k && h == decides
		}
		if decided {
			holds, known = decides, true
		} else if !known {
			holds = false
		}
	}
	if ended {
		m.truths[path] = append(m.truths[path], holds)
		if it := m.last(); path == "" && holds {
			it.held = 1
			if all := m.ended(); len(all) > 1 {
				it.held += all[len(all)-2].held
			}
		}
	}
	if c.For > 1 {
		n := uint(0)
		for _, h := range slices.Backward(m.truths[path]) {
			if !h {
				break
			}
			n++
		}
		holds = holds && n >= c.For
	}
	return holds, known
}

func (m *model) leaf(src string, state map[string]any) (holds, known bool) {
	switch src {
	case "state.score > 8.0":
		f, ok := state["score"].(float64)
		return f > 8, ok
	case "state.done":
		return state["done"].(bool), true
	case "iteration >= 4":
		return m.iteration >= 4, true
	case "score != null && score >= 9.0":
		return len(m.past) > 0 && m.last().score != nil && *m.last().score >= 9, true
	case "usage.calls > 12":
		return m.used.Calls > 12, true
	case "elapsed >= 40":
		return m.active >= 40*time.Second, true
	}
	return false, false
}
