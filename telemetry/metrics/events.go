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

// run is the state of a run that this process drives.
type run struct {
	definition string    // as a label
	name       string    // as the run has it
	since      time.Time // when an iteration ended, or the run was taken up or last seen in the queue
	steps      map[session.Address]*step
	loops      map[session.Address]*loopRun
}

// step is a step that began in this process and has not ended.
type step struct {
	below budget.Usage // usage of the steps in it that have ended
}

// loopRun is a loop that has not stopped.
type loopRun struct {
	since  time.Time    // when the iteration began; zero if another process began it
	whole  bool         // this process began the loop
	budget *loop.Budget // nil if there is none
	used   budget.Usage // only if whole
}

// hear counts an event. It ignores most events of a run that calls models.
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

// spent counts the usage that a model reports.
func (c *Collector) spent(ev *session.Event) {
	if ev.CustomMetadata["cached"] == true { // a repeated answer uses no tokens
		return
	}
	used := model.Used(ev.UsageMetadata)
	name := c.labels.models.one(ev.ModelVersion)
	c.series.tokens.WithLabelValues(name, "input").Add(float64(used.InputTokens))
	c.series.tokens.WithLabelValues(name, "output").Add(float64(used.OutputTokens))
	for kind, n := range map[string]int64{
		"read": used.CachedTokens, "write": used.CacheWriteTokens, "write_1h": used.CacheWrite1hTokens,
	} {
		if n > 0 {
			c.series.cache.WithLabelValues(name, kind).Add(float64(n))
		}
	}
}

// over counts the end of a run. A run that no process drives can end too, because it can be canceled.
func (c *Collector) over(ev *session.Event) {
	now := mark.RunIn(ev.Actions.StateDelta)
	if now == nil {
		return
	}
	stop := among(stops, loop.StopReason(now.Stop))
	if now.Status == mark.RunCanceled {
		stop = string(loop.ReasonCanceled)
	}
	c.series.ended.WithLabelValues(c.labels.definitions.one(now.Name), string(now.Status), stop).Inc()
}

// paused forgets when iterations began, because the duration of an iteration does not include a pause.
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
	if r == nil { // this process no longer drives the run
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
		c.series.asked.WithLabelValues(r.definition).Inc()
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

// iterated counts an iteration that has ended. The caller holds c.mu.
func (c *Collector) iterated(r *run, ev *session.Event) {
	definition, name := c.labels.loops.of(r.name, ev.Address.Agent())
	l := r.loop(ev.Address)
	c.series.iterations.WithLabelValues(definition, name).Inc()
	if !l.since.IsZero() {
		c.series.iteration.WithLabelValues(definition, name).Observe(max(0, ev.Timestamp.Sub(l.since).Seconds()))
	}
	l.since, r.since = ev.Timestamp, ev.Timestamp
	var rec struct{ Score *float64 } // of its loop.IterationRecord
	if ev.Mark.Decode(&rec) == nil && rec.Score != nil {
		c.series.score.WithLabelValues(definition, name).Set(*rec.Score)
	}
}

// finished counts a step that has ended. The caller holds c.mu.
func (c *Collector) finished(r *run, ev *session.Event) {
	began := r.steps[ev.Address]
	delete(r.steps, ev.Address)
	delete(r.loops, ev.Address) // a loop that was interrupted has not stopped
	var fin mark.StepFinished
	if ev.Mark.Decode(&fin) != nil {
		return
	}
	c.paid(r, ev.Address, began, fin.Usage)
	if began == nil && fin.Error == "" && fin.Seconds == 0 { // the step did not run, because its result was known
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
	agent := c.labels.agents.one(ev.Address.Agent())
	c.series.step.WithLabelValues(agent, status).Observe(max(0, fin.Seconds))
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
	c.series.errors.WithLabelValues(agent, kind).Inc()
}

// paid counts the usage of a step itself, without the steps in it, which are already counted. The caller holds c.mu.
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
	if began == nil { // another process may have used and counted a part of it
		return
	}
	own := used.Sub(began.below)
	switch {
	case own.Calls <= 0:
	case own.Cost == nil:
		c.series.unpriced.Add(float64(own.Calls))
	default:
		c.series.cost.Add(max(0, *own.Cost))
	}
}

// ratio returns the share of its budget that a loop has used. ok is false if the loop has no budget or began in
// another process.
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
