// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"slices"
	"strings"
	"time"
)

// Ledger lists every stop condition of a loop at one moment. While the loop runs, it shows how
// the loop can stop; afterwards, what stopped it. The rows are always the same, in the same
// order.
type Ledger struct {
	// Reason is why the loop has stopped; "" while it runs.
	Reason StopReason `json:"reason,omitzero"`
	// Nearest is the name of the row whose condition is closest to holding, apart from the
	// reason; "" if none is close.
	Nearest string `json:"nearest,omitzero"`
	Rows    []Row  `json:"rows"`
	// Forecast is what to expect of the next iterations; nil when the loop has stopped.
	Forecast *Forecast `json:"forecast,omitzero"`
}

// Row is one stop condition in a [Ledger]. While the loop runs, Have is the value now.
type Row struct {
	ConditionRecord
	Status ConditionStatus `json:"tense"`
	// Counted is the part of Have that comes from the running iteration, in the row's Unit.
	Counted float64 `json:"counted,omitzero"`
	// Reserved is the amount beyond Bound that is kept for the finalizer, in the row's Unit.
	Reserved float64 `json:"kept,omitzero"`
	// Near is how close the condition is to holding, from 0 to 1; 1 if it holds.
	Near float64 `json:"near"`
	// Provisional says that the value depends on the score of the running iteration, which may
	// still change.
	Provisional bool `json:"provisional,omitzero"`
}

// ConditionStatus is the status of a stop condition.
type ConditionStatus string

// The tenses.
const (
	ConditionFar      ConditionStatus = "far"       // the condition does not hold
	ConditionLikely   ConditionStatus = "likely"    // the forecast expects the condition to end the loop
	ConditionHolds    ConditionStatus = "holds"     // the condition holds, and is not the reason
	ConditionFired    ConditionStatus = "fired"     // it is the reason
	ConditionNotAsked ConditionStatus = "not_asked" // no agent that may leave has asked to
	ConditionUnknown  ConditionStatus = "unknown"   // the value is not known
)

// Unit is the unit of the numbers of a [Row].
type Unit string

// The units.
const (
	UnitScore      Unit = "score"
	UnitTimes      Unit = "times" // in a row
	UnitIterations Unit = "iterations"
	UnitFailures   Unit = "failures"
	UnitSeconds    Unit = "seconds" // of active time
	UnitCalls      Unit = "calls"
	UnitTokens     Unit = "tokens"
	UnitCost       Unit = "cost"  // in the currency of the price list
	UnitGain       Unit = "gain"  // of the score; see NotWorth
	UnitValue      Unit = "value" // of the state, or of anything else that an expression compares
)

// counts reports whether the unit adds up over the iterations.
func (u Unit) counts() bool { return u != UnitScore && u != UnitGain && u != UnitValue && u != "" }

// Moment holds what is known about a loop in addition to the outcomes in its tally. The zero
// value stands for a loop between two iterations.
type Moment struct {
	// Reason is why the loop has stopped; "" means the reason in the tally.
	Reason StopReason
	// Iteration is the running iteration; 0 if there is none.
	Iteration int
	// Score and Dimensions are the running iteration's score so far; nil if it has none yet. A
	// judge's samples in the tally take precedence over them.
	Score      *float64
	Dimensions []Dimension
	// Active and Usage are the time and the usage of the running steps, which no outcome
	// includes yet.
	Active time.Duration
	Usage  Usage
	// Began is the tally at the beginning of the iteration; nil means unknown.
	Began *Tally
}

// Ledger returns how the loop can stop, or why it has stopped, according to t and m. It changes
// nothing and has no effect on the loop, which follows [Plan.Next].
func (p *Plan) Ledger(t *Tally, m Moment) Ledger {
	if m.Reason == "" {
		m.Reason = p.reason(t) // the tally has the reason even before the finalizer has run
	}
	u, provisional := p.tallyAt(t, &m)
	l := Ledger{Reason: m.Reason}
	l.Rows = p.rows(&u, m.Reason)
	if m.Reason == "" {
		f := p.forecastAt(t, &u, &m, provisional)
		l.Forecast = &f
	}
	var began []Row
	if m.Began != nil && m.Iteration > 0 {
		began = p.rows(m.Began, "")
	}
	for i := range l.Rows {
		r := &l.Rows[i]
		if m.Reason == "" && m.Iteration > 0 {
			r.adaptToRunning(&m, provisional)
		}
		if j := slices.IndexFunc(began, func(b Row) bool { return b.Name == r.Name && b.Unit == r.Unit }); j >= 0 {
			r.countAdded(&began[j])
		}
		r.Status = r.status(&l)
	}
	l.Nearest = nearest(l.Rows)
	return l
}

// nearest returns the name of the row that is closest to holding, apart from rows that have fired; "" if none is close.
func nearest(rows []Row) (name string) {
	best := 0.0
	for i := range rows {
		r := &rows[i]
		if r.Near > best && !r.Fired && !strings.HasPrefix(r.Name, "stop_when.") {
			best, name = r.Near, r.Name
		}
	}
	return name
}

// adaptToRunning adapts the row to the running iteration.
func (r *Row) adaptToRunning(m *Moment, provisional bool) {
	switch r.Name {
	case "max_iterations": // the running iteration counts, although it has not ended
		r.Have = new(float64(m.Iteration))
		r.Near = min(*r.Have/(*r.Bound), nearly)
		r.Holds = false
	case "target", "dimension_target", "converged":
		r.Provisional = provisional
	}
}

// countAdded sets Counted to the part of Have that has been added since the row was b.
func (r *Row) countAdded(b *Row) {
	if r.Unit.counts() && r.Have != nil && b.Have != nil {
		r.Counted = max(0, roundDecimals(*r.Have-*b.Have))
	}
}

// tense returns the status of the row.
func (r *Row) status(l *Ledger) ConditionStatus {
	switch {
	case r.Fired:
		return ConditionFired
	case r.Holds:
		return ConditionHolds
	case r.Name == "exit_loop":
		return ConditionNotAsked
	case r.Status == ConditionUnknown:
		return ConditionUnknown
	case l.Forecast != nil && l.Forecast.Until != "" && r.Name == likely[l.Forecast.Until]:
		return ConditionLikely
	}
	return ConditionFar
}

// likely maps the stop reasons that a forecast can have to the names of their rows.
var likely = map[StopReason]string{
	ReasonTarget: "target", ReasonConverged: "converged", ReasonMaxIterations: "max_iterations",
}

// tallyAt returns the tally as it would be if the running iteration ended now. provisional reports whether u contains a
// score of that iteration, which may still change.
func (p *Plan) tallyAt(t *Tally, m *Moment) (u Tally, provisional bool) {
	u = *t
	u.Active += m.Active
	u.Usage.add(&m.Usage)
	if c := m.Usage.Cost; c != nil {
		u.KnownCost += *c
		if u.Usage.Cost = nil; !u.CostUnknown {
			u.Usage.Cost = new(u.KnownCost)
		}
	}
	if m.Reason != "" || m.Iteration == 0 {
		return u, false
	}
	if p.isBetweenIterations(t) && m.Iteration > t.Iteration {
		u.IterationFailures, u.Judge.Runs = 0, 0
	}
	if p.Score == nil {
		return u, false
	}
	got, samples := reading{dims: m.Dimensions}, 0
	if p.judging(&u) {
		samples = len(u.Judge.Samples)
		got = reading{u.Judge.pool(m.Iteration), u.Dimensions}
	} else if m.Score == nil {
		return u, false
	} else {
		got.score = *m.Score
	}
	u.Iteration = m.Iteration
	u.Ended = IterationRecord{Number: m.Iteration, Leg: u.Leg, Complete: true, Failures: u.IterationFailures, Samples: samples}
	p.setScore(&u, got)
	return u, true
}

// ForecastAt returns the forecast of [Plan.Forecast] for t and m together.
func (p *Plan) ForecastAt(t *Tally, m Moment) Forecast {
	u, provisional := p.tallyAt(t, &m)
	return p.forecastAt(t, &u, &m, provisional)
}

// Judgement is the result of a judge's samples in the iteration under way.
type Judgement struct {
	Score   float64   `json:"score"`
	Samples []float64 `json:"samples"`
	// Noise is the difference between two such scores that chance explains; 0 if unknown.
	Noise float64 `json:"noise,omitzero"`
}

// Judged returns the result of the samples of the running iteration so far; ok is false if
// there are none.
func (p *Plan) Judged(t *Tally) (j Judgement, ok bool) {
	if !p.judging(t) {
		return j, false
	}
	judge := t.Judge
	return Judgement{Score: judge.pool(t.Iteration), Samples: slices.Clone(judge.Samples), Noise: judge.floor()}, true
}

// judging reports whether the judge has given scores in the iteration under way.
func (p *Plan) judging(t *Tally) bool {
	return p.Score != nil && p.Score.Judge != nil && t.Judge.Runs > 0 && len(t.Judge.Samples) > 0 && t.Ended.Number == 0
}
