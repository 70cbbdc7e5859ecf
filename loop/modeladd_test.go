// SPDX-License-Identifier: Apache-2.0

package loop_test

import (
	"slices"
	"time"

	"github.com/refrain-dev/refrain/loop"
)

// add takes an outcome down.
func (m *model) add(d loop.Decision, o loop.Outcome) {
	p := m.p
	stopped := m.reason() != ""
	leg := d.Action == loop.BeginLeg
	took := o.Finished.Sub(o.Started)
	if took < 0 || o.Started.IsZero() {
		took = 0
	}
	m.active += took
	m.used = sum(m.used, o.Usage)
	m.priceless = m.priceless || o.Usage.Cost == nil && o.Usage.Calls > 0
	if stopped {
		m.lateActive += took
		m.lateUsed = sum(m.lateUsed, o.Usage)
	}
	switch {
	case d.Action == loop.Rollback:
		m.canceled = o.Canceled != ""
		m.fail(o.Failure != nil, "rollback")
		if m.canceled || m.fatal != "" {
			return
		}
		m.due, m.undone = false, m.open
		best, mean, _ := m.ground()
		if !m.open && m.p.Version >= 3 && m.last().score != nil && best != nil && m.proves() {
			m.again = m.variance() > 0
		}
		if m.accepted = nil; best != nil {
			m.accepted = &mean
		}
		return
	case leg:
		m.canceled = o.Canceled != ""
		m.fail(!m.canceled && o.Failure != nil, "rollback")
		if !m.canceled && m.fatal == "" {
			m.beginLeg()
		}
		return
	case d.Action == loop.Finalize:
		m.finalized, m.finalFailed = true, o.Canceled != "" || o.Failure != nil
		return
	case o.Canceled != "" && o.Step < 0:
		m.canceled = true
		return
	case m.again:
		m.rejudge(d, o)
		return
	case m.startSteps() != nil:
		m.scoreStart(d, o)
		return
	}
	around := m.after + time.Duration(p.DelayBefore)
	m.after = 0
	if !m.open {
		m.open, m.iteration, m.place, m.tries, m.asked, m.failures, m.spent = true, d.Iteration, 0, 0, 0, 0, 0
		m.prints, m.worked, m.wrote = nil, 0, false
		took -= min(around, o.Waited) // no part of it
	}
	m.spent += took
	m.holds = false
	if o.Canceled != "" {
		m.canceled, m.idle = true, 0
		return
	}
	m.step(d, o)
	if reason := m.reason(); p.OnRegression == loop.RollbackOnWorse && m.open && (reason == loop.ReasonBudget || reason == loop.ReasonTimeout) {
		m.due = true
	}
}

// beginLeg forgets what counts towards convergence.
func (m *model) beginLeg() {
	m.leg++
	m.legFrom, m.course, m.worthless = len(m.past), nil, false
	if n := len(m.candidates); n > 0 {
		m.candidates[n-1].times = 1
	}
	if m.fresh() {
		m.again, m.ownMean, m.ownCount = false, 0, 0
		if m.start != nil {
			m.ownMean, m.ownCount = *m.start.score, m.start.count
		}
	}
	m.accepted = nil
	if best, mean, _ := m.ground(); best != nil {
		m.accepted = &mean
	}
}

// fail ends the loop if something has failed.
func (m *model) fail(has bool, what string) {
	if has {
		m.fatal = what
	}
}

// rejudge takes an answer about the best, which a rollback has restored.
func (m *model) rejudge(d loop.Decision, o loop.Outcome) {
	if o.Canceled != "" {
		m.canceled = true
		return
	}
	idle := m.idle
	kind := m.remember(d.Step, o)
	m.idle = idle
	if f := o.Failure; f != nil {
		if m.triesAgain(d.Step, kind, f) {
			return
		}
		if m.timedOut, m.refused = kind == loop.TotalTimeout, kind == loop.BudgetSpent; m.timedOut || m.refused {
			return
		}
	}
	m.tries, m.again = 0, false
	score, _, ok := decode(o.State["score"], m.p.Score)
	if o.Failure != nil || !ok || !wrote(o) {
		return
	}
	best, mean, n := m.ground()
	mean = round((mean*float64(n) + score) / float64(n+1))
	if m.best() == best {
		m.bestMean, m.bestCount = mean, n+1
	}
	if m.fresh() {
		m.ownMean, m.ownCount = mean, n+1
	}
	m.accepted = &mean
}

// triesAgain reports whether a failed step outside of iterations is run once more.
func (m *model) triesAgain(step int, kind string, f *loop.Failure) bool {
	switch kind {
	case loop.IterationTimeout, loop.TotalTimeout, loop.BudgetSpent, loop.CircuitOpen:
		return false
	}
	if f.Permanent || m.tries+1 >= attempts(m.p, step) || f.RetryAfter > longestWait(m.p.Steps[step].Retry) {
		return false
	}
	m.tries++
	m.told = f.RetryAfter
	return true
}

// scoreStart takes the outcome of a step that scores what was there before the first iteration.
func (m *model) scoreStart(d loop.Decision, o loop.Outcome) {
	s, idle := &m.p.Steps[d.Step], m.idle
	if o.Canceled != "" {
		m.canceled = true
		return
	}
	kind := m.remember(d.Step, o)
	m.idle = idle
	judge := m.p.Score.Judge != nil
	if f := o.Failure; f != nil {
		if m.triesAgain(d.Step, kind, f) {
			return
		}
		m.tries = 0
		m.timedOut, m.refused = kind == loop.TotalTimeout, kind == loop.BudgetSpent
		m.started = !m.timedOut && !m.refused
	} else {
		if judge && m.askAgain(o) && !o.Cached && (o.Exit == nil || !m.p.MayExit(s.Name)) {
			m.tries = 0
			return
		}
		m.tries = 0
		m.wrote = m.wrote || wrote(o)
		m.scoredSteps++
		if m.startSteps() == nil {
			m.started = true
			it := &past{best: true}
			if m.score(it, loop.Outcome{State: o.State}); it.score != nil {
				m.start, m.accepted, m.bestMean, m.bestCount = it, it.score, *it.score, it.count
			}
		}
	}
	if m.started {
		m.asked, m.said, m.wrote = 0, nil, false
	}
}

// step takes the outcome of a step of the open iteration down.
func (m *model) step(d loop.Decision, o loop.Outcome) {
	p, s := m.p, &m.p.Steps[d.Step]
	exits := o.Exit != nil && p.MayExit(s.Name)
	judge := p.Score != nil && p.Score.Judge != nil && p.Score.Judge.Step == s.Name
	overdue := p.IterationTimeout > 0 && m.spent >= time.Duration(p.IterationTimeout)
	kind := m.remember(d.Step, o)
	if f := o.Failure; f != nil {
		again := s.Retry != nil && m.tries+1 < int(s.Retry.Attempts) && !f.Permanent
		switch kind {
		case loop.IterationTimeout, loop.TotalTimeout, loop.BudgetSpent, loop.CircuitOpen:
			again = false
		}
		if again && f.RetryAfter > longestWait(s.Retry) {
			again = false
		}
		if again && !overdue {
			m.tries++
			m.told = f.RetryAfter
			return
		}
		if again {
			kind = loop.IterationTimeout
		}
	} else if judge && m.askAgain(o) && !o.Cached && !exits && !overdue {
		m.tries = 0
		return
	}
	m.tries = 0
	m.place++
	m.wrote = m.wrote || wrote(o)
	skip := false
	switch {
	case o.Failure == nil:
		m.running = 0
		m.worked++
	case kind == loop.TotalTimeout:
		m.timedOut = true
		return
	case kind == loop.BudgetSpent:
		m.refused = true
		return
	default:
		m.failures++
		m.running++
		policy := m.policy(d.Step, kind)
		skip = policy == loop.NextIteration
		if m.tooMany = p.MaxConsecutiveFailures > 0 && m.running >= p.MaxConsecutiveFailures; m.tooMany || policy == loop.StopOnError {
			m.fail(true, "step "+kind)
			return
		}
	}
	if !judge {
		m.prints = append(m.prints, o.Fingerprint)
		m.unjudged = append(m.unjudged, o.Fingerprint)
	}
	m.after = time.Duration(s.DelayAfter)
	if exits {
		m.exit = loop.ReasonExit
		switch {
		case o.Exit.Status != "":
			m.exit = loop.StopReason(o.Exit.Status)
		case o.Exit.Escalated:
			m.exit = loop.ReasonEscalated
		}
	}
	complete := m.place == len(m.seq) && !skip
	switch {
	case complete || exits:
		m.end(o, complete, true)
	case skip:
		m.end(o, false, false)
	case overdue:
		m.fail(m.policy(d.Step, loop.IterationTimeout) == loop.StopOnError, "iteration")
		m.end(o, false, false)
	case p.StopWhen != nil && p.StopCheck == loop.EachStep:
		m.holds, _ = m.look(p.StopWhen, "", o.State, false)
	}
}

// remember notes what limits and circuits need, and says how the step failed.
func (m *model) remember(step int, o loop.Outcome) (kind string) {
	if o.Failure != nil {
		kind = o.Failure.Kind
	}
	if m.idle++; kind != loop.CircuitOpen {
		m.idle = 0
	}
	if ran := o.Finished.Sub(o.Started) - o.Waited; ran > 0 && !o.Cached && (o.Failure == nil || kind == loop.Timeout) {
		m.runs[step] = append(m.runs[step], ran)
	}
	if c := m.p.Steps[step].Circuit; c != nil && !o.Cached {
		m.count(circuitOf(m.p, step), c, o.Failure != nil, kind)
	}
	return kind
}

// circuitOf is the name of a step's circuit: its endpoint's, if it has one.
func circuitOf(p *loop.Plan, step int) string {
	if e := p.Steps[step].Circuit.Endpoint; e != "" {
		return "endpoint " + e
	}
	return "step " + p.Steps[step].Name
}

// count notes how a step of a circuit went.
func (m *model) count(name string, c *loop.Circuit, failed bool, kind string) {
	switch {
	case !failed:
		m.fails[name] = 0
		delete(m.opened, name)
	case kind == loop.CircuitOpen || kind == loop.BudgetSpent || kind == loop.TotalTimeout:
	default:
		if m.fails[name]++; m.fails[name] >= c.Failures {
			m.opened[name] = m.active
		}
	}
}

// ask notes what the judge has said, and how often it was asked.
func (m *model) ask(o loop.Outcome) int {
	if m.asked == 0 {
		m.said, m.parts = nil, nil
		m.judged, m.unjudged = joined(m.unjudged), nil
	}
	m.asked++
	if score, dims, ok := decode(o.State["score"], m.p.Score); ok && wrote(o) {
		m.said = append(m.said, score)
		m.parts = append(m.parts, dims)
	}
	return m.asked
}

// askAgain takes an answer, and reports whether the plan asks for another.
func (m *model) askAgain(o loop.Outcome) bool {
	j, n := m.p.Score.Judge, m.ask(o)
	return n < int(max(1, j.Samples)) || n < int(j.Max) && m.unclear()
}

func (m *model) policy(step int, kind string) loop.ErrorPolicy {
	own := m.p.Steps[step].OnError
	if own == "" {
		own = m.p.OnError
	}
	switch {
	case own == loop.StopOnError || own == "" && kind != loop.Timeout && kind != loop.IterationTimeout:
		return loop.StopOnError
	case kind == loop.IterationTimeout:
		return loop.NextIteration
	case own == "":
		return loop.SkipStep
	}
	return own
}

// wrote reports whether a step wrote what the score is read from.
func wrote(o loop.Outcome) bool { return o.Wrote == nil || slices.Contains(o.Wrote, "score") }

// end closes the iteration, values it and looks at the conditions.
func (m *model) end(o loop.Outcome, complete, scored bool) {
	p := m.p
	m.open = false
	m.after += time.Duration(p.DelayAfter)
	it := &past{number: m.iteration, complete: complete, failures: m.failures, print: joined(m.prints)}
	it.succeeded = m.exit != "" || complete && m.worked > 0
	if p.MaxIterations == 0 && !it.succeeded { // a pause that doubles
		running := 0
		for _, before := range slices.Backward(m.ended()) {
			if before.succeeded {
				break
			}
			running++
		}
		m.after += min(time.Minute, 100*time.Millisecond<<min(running, 20))
	}
	if p.NoProgress != nil && len(p.NoProgress.Keys) > 0 {
		it.print = o.State["text"].(string)
	}
	m.size = o.StateSize
	m.fail(p.StateLimit > 0 && o.StateSize > p.StateLimit, "state")
	best := m.best()
	ground, groundMean, _ := m.ground()
	m.past = append(m.past, it)
	if p.Score != nil && scored {
		m.score(it, o)
	}
	if p.StopWhen != nil {
		m.holds, _ = m.look(p.StopWhen, "", o.State, true)
	}
	if p.Score == nil {
		return
	}
	rolls := p.OnRegression == loop.RollbackOnWorse
	it.rejected = p.QualityGate != nil && (it.score == nil || m.gain(*p.QualityGate, *it.score) < 0)
	wanted := m.wanted(it)
	if rolls && !wanted {
		it.rejected = it.rejected || !scored || ground != nil && (!m.judgesBest(it, ground) && (it.score == nil || -m.gain(groundMean, *it.score) > m.margin(it)))
	}
	m.due = rolls && it.rejected && !wanted
	if n := len(m.course); m.due && m.proves() && it.score != nil && it.failures == 0 && ground != nil {
		m.course[n-1].y = m.sense() * groundMean
	}
	m.worthless = m.notWorth()
	if it.score != nil && !it.rejected {
		m.accepted = it.score
		if it.best = m.beats(it, best, m.bestMean); it.best || m.judgesBest(it, best) {
			m.bestMean, m.bestCount = *it.score, it.count
		}
		if it.own = m.fresh() && m.beats(it, ground, groundMean); m.fresh() && (it.own || m.judgesBest(it, ground)) {
			m.ownMean, m.ownCount = *it.score, it.count
		}
	}
}

// beats reports whether an iteration is better than the best before it.
func (m *model) beats(it, best *past, mean float64) bool {
	switch {
	case best == nil:
		return true
	case m.proves():
		return !m.judgesBest(it, best) && m.gain(mean, *it.score) > 0
	}
	return m.gain(mean, *it.score) > it.noise
}

// wanted reports whether the loop ends with this iteration for what it is: it is the
// result, be it worse than another.
func (m *model) wanted(it *past) bool {
	switch m.reason() {
	case loop.ReasonTarget:
		return true
	case loop.ReasonExit, loop.ReasonEscalated:
		return !m.p.BestOnExit
	case loop.ReasonCondition:
		all := m.ended()
		before := m.fits(all[:len(all)-1], it.held-1)
		return before == nil || before.score == nil || before.rejected || it.score != nil && m.gain(*before.score, *it.score) >= 0
	}
	return false
}

// fits is the best of the last n iterations, of those at whose end stop_when held:
// the accepted one with the best score, else the last.
func (m *model) fits(all []*past, n uint) (found *past) {
	for _, it := range all[len(all)-int(n):] {
		has := found != nil && found.score != nil && !found.rejected
		if !has || it.score != nil && !it.rejected && m.gain(*found.score, *it.score) > 0 {
			found = it
		}
	}
	return found
}
