// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"encoding/json"
	"time"

	"github.com/refrain-dev/refrain/budget"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// run is what the collector keeps of a run while it is driven here.
type run struct {
	definition string    // as a label
	name       string    // as the run has it
	since      time.Time // when an iteration has ended, or the run was taken up; later if it had to wait for its turn
	steps      map[session.Address]*step
	loops      map[session.Address]*loopRun
}

// step is one that began here and has not ended.
type step struct {
	below budget.Usage // of the steps in it that have ended
}

// loopRun is a loop that has not stopped.
type loopRun struct {
	since  time.Time    // when the iteration began; zero if that was not here
	whole  bool         // it began here
	budget *loop.Budget // nil if there is none
	used   budget.Usage // if whole
}

// hear counts an event. Most events of a run that asks models count for nothing.
func (c *Collector) hear(id string, ev *session.Event) {
	if ev.Partial {
		return
	}
	if ev.UsageMetadata != nil {
		c.spent(ev)
	}
	if ev.Mark == nil {
		return
	}
	switch ev.Mark.Kind {
	case mark.KindRunEnded:
		c.over(ev)
	case mark.KindRunPaused:
		c.paused(id)
	case mark.KindStepStarted, mark.KindStepFinished, mark.KindLoopStarted, mark.KindLoopContinued, mark.KindLoopStopped,
		mark.KindIterationFinished, mark.KindAsked:
		c.part(id, ev)
	}
}

// spent counts what a model has reported.
func (c *Collector) spent(ev *session.Event) {
	if ev.CustomMetadata["cached"] == true { // an earlier answer, again
		return
	}
	used := model.Used(ev.UsageMetadata)
	name := c.models.one(ev.ModelVersion)
	c.tokens.WithLabelValues(name, "input").Add(float64(used.InputTokens))
	c.tokens.WithLabelValues(name, "output").Add(float64(used.OutputTokens))
	for kind, n := range map[string]int64{
		"read": used.CachedTokens, "write": used.CacheWriteTokens, "write_1h": used.CacheWrite1hTokens,
	} {
		if n > 0 {
			c.cache.WithLabelValues(name, kind).Add(float64(n))
		}
	}
}

// over counts the end of a run. One that nobody drives can be canceled.
func (c *Collector) over(ev *session.Event) {
	now := mark.RunIn(ev.Actions.StateDelta)
	if now == nil {
		return
	}
	stop := among(stops, loop.StopReason(now.Stop))
	if now.Status == mark.RunCanceled {
		stop = string(loop.ReasonCanceled)
	}
	c.ended.WithLabelValues(c.definitions.one(now.Name), string(now.Status), stop).Inc()
}

// paused forgets when iterations began: a pause is not part of them.
func (c *Collector) paused(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.runs[id]; r != nil {
		for _, l := range r.loops {
			l.since = time.Time{}
		}
	}
}

// part counts an event of a step.
func (c *Collector) part(id string, ev *session.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.runs[id]
	if r == nil { // it is not driven here any more
		return
	}
	switch ev.Mark.Kind {
	case mark.KindStepStarted:
		if ev.CustomMetadata[mark.MetadataNotRun] != true {
			r.step(ev.Address)
		}
	case mark.KindStepFinished:
		c.finished(r, ev)
	case mark.KindAsked:
		c.asked.WithLabelValues(r.definition).Inc()
	case mark.KindIterationFinished:
		c.iterated(r, ev)
	case mark.KindLoopStarted, mark.KindLoopContinued:
		var p struct{ Budget *loop.Budget } // of its loop.Plan
		if ev.Mark.Decode(&p) == nil {
			l := r.loop(ev.Address)
			l.since, l.budget = ev.Timestamp, p.Budget
			if ev.Mark.Kind == mark.KindLoopStarted {
				l.whole, l.used = true, budget.Usage{}
			}
		}
	case mark.KindLoopStopped:
		delete(r.loops, ev.Address)
	}
}

func (r *run) step(at session.Address) {
	if r.steps == nil {
		r.steps = make(map[session.Address]*step)
	}
	r.steps[at] = new(step)
}

func (r *run) loop(at session.Address) *loopRun {
	if r.loops == nil {
		r.loops = make(map[session.Address]*loopRun)
	}
	l := r.loops[at]
	if l == nil {
		l = new(loopRun)
		r.loops[at] = l
	}
	return l
}

// iterated counts an iteration that has ended. c.mu is held.
func (c *Collector) iterated(r *run, ev *session.Event) {
	definition, name := c.loops.of(r.name, ev.Address.Agent())
	l := r.loop(ev.Address)
	c.iterations.WithLabelValues(definition, name).Inc()
	if !l.since.IsZero() {
		c.iteration.WithLabelValues(definition, name).Observe(max(0, ev.Timestamp.Sub(l.since).Seconds()))
	}
	l.since, r.since = ev.Timestamp, ev.Timestamp
	var rec struct{ Score *float64 } // of its loop.IterationRecord
	if ev.Mark.Decode(&rec) == nil && rec.Score != nil {
		c.score.WithLabelValues(definition, name).Set(*rec.Score)
	}
}

// finished counts a step that has ended. c.mu is held.
func (c *Collector) finished(r *run, ev *session.Event) {
	began := r.steps[ev.Address]
	delete(r.steps, ev.Address)
	delete(r.loops, ev.Address) // one that was cut off has not stopped
	var fin mark.StepFinished
	if ev.Mark.Decode(&fin) != nil {
		return
	}
	c.paid(r, ev.Address, began, fin.Usage)
	if began == nil && fin.Error == "" && fin.Seconds == 0 { // it did not run: its result was known
		return
	}
	status := "ok"
	switch {
	case fin.Canceled:
		status = "canceled"
	case fin.Timeout:
		status = "timeout"
	case fin.Error != "":
		status = "error"
	}
	agent := c.agents.one(ev.Address.Agent())
	c.step.WithLabelValues(agent, status).Observe(max(0, fin.Seconds))
	if fin.Error == "" || fin.Canceled || fin.At != "" && fin.At != string(ev.Address) {
		return
	}
	kind := among(kinds, fin.Kind)
	switch {
	case fin.Timeout:
		kind = loop.Timeout
	case fin.Kind == "":
		kind = loop.Failed
	}
	c.errors.WithLabelValues(agent, kind).Inc()
}

// paid counts what a step itself has used, without the steps in it, which have been counted. c.mu is held.
func (c *Collector) paid(r *run, at session.Address, began *step, usage json.RawMessage) {
	var used budget.Usage
	if len(usage) == 0 || json.Unmarshal(usage, &used) != nil {
		return
	}
	if around := r.steps[at.Parent()]; around != nil {
		around.below = around.below.Add(used)
	}
	if l := r.loops[at.Parent()]; l != nil && l.whole {
		l.used = l.used.Add(used)
	}
	if began == nil { // part of it may have been used by another process, and counted there
		return
	}
	own := used.Sub(began.below)
	switch {
	case own.Calls <= 0:
	case own.Cost == nil:
		c.unpriced.Add(float64(own.Calls))
	default:
		c.cost.Add(max(0, *own.Cost))
	}
}

// ratio is the share of the budget that a loop has used, and false if it has no budget or began elsewhere.
func (l *loopRun) ratio() (share float64, ok bool) {
	b := l.budget
	if !l.whole || b == nil {
		return 0, false
	}
	if b.Calls > 0 {
		share, ok = float64(l.used.Calls)/float64(b.Calls), true
	}
	if b.Tokens > 0 {
		share, ok = max(share, float64(l.used.Tokens())/float64(b.Tokens)), true
	}
	if b.Cost != nil && *b.Cost > 0 && (l.used.Cost != nil || l.used.Calls == 0) {
		spent := 0.0
		if l.used.Cost != nil {
			spent = *l.used.Cost
		}
		share, ok = max(share, spent / *b.Cost), true
	}
	return share, ok
}
