// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/refrain-dev/refrain/internal/values/brief"
)

// NotWorth ends a loop when the expected gain of the score per Per is less than Gain. It needs
// three scores. If they come from a judge, whose answers are off by chance, what the next
// iterations may gain beyond their price must also be too little to go on for.
type NotWorth struct {
	Gain float64 `json:"gain"`
	// Per is iteration (the default), minute, ktokens or cost.
	Per Per `json:"per,omitzero"`
}

// Per is the unit by which a gain is divided.
type Per string

// The units.
const (
	PerIteration Per = "iteration"
	PerMinute    Per = "minute"  // of active time
	PerKTokens   Per = "ktokens" // a thousand tokens, of input and output
	PerCost      Per = "cost"    // one unit of the currency; an unknown cost never ends the loop
)

func (w *NotWorth) per() Per {
	return cmp.Or(w.Per, PerIteration)
}

// use returns what an iteration uses on average, in the unit of NotWorth. It is 0 if that is unknown.
func (p *Plan) use(t *Tally) float64 {
	n := float64(t.Complete)
	switch p.NotWorth.per() {
	case PerMinute:
		return float64(t.Active-t.FinalActive) / n / float64(time.Minute)
	case PerKTokens:
		return float64(t.Usage.tokens()-t.FinalUsage.tokens()) / n / 1000
	case PerCost:
		if t.Usage.Cost == nil {
			return 0
		}
		return (*t.Usage.Cost - t.FinalUsage.cost()) / n
	}
	return 1
}

// updateWorth stores what to expect of the next iterations, when an iteration has ended.
func (p *Plan) updateWorth(t *Tally) {
	t.Worth, t.Outlook = nil, nil
	if p.NotWorth == nil || t.Score == nil || t.Complete == 0 {
		return
	}
	var o *outlook
	gain, known := 0.0, false
	if p.Version < 4 {
		gain, known = p.nextGain(t)
	} else if o = p.outlook(t); o != nil {
		gain, known = o.Gain, true
	}
	if use := p.use(t); known && use > 0 && isFinite(gain/use) { // an iteration that costs nothing is always worth it
		t.Worth, t.Outlook = new(roundDecimals(gain/use)), o
	}
}

// nextGain returns the next gain of the curve through the scores.
func (p *Plan) nextGain(t *Tally) (gain float64, known bool) {
	scores := t.recent()
	var c trendFit
	if len(scores) < fewGains || !c.fitScores(p, scores, t.Judge.floor()) {
		return 0, false
	}
	return c.best.next, true
}

// notWorth reports whether the next iteration is not worth its price.
func (p *Plan) notWorth(t *Tally) bool {
	switch {
	case p.NotWorth == nil || t.Worth == nil || *t.Worth >= p.NotWorth.Gain:
		return false
	case t.Outlook == nil: // by the rules before version 4
		return p.cheap(t).holds()
	}
	return p.expectedRest(t) < p.leastRest(t)
}

// The constants of outlook; doc/performance.md has their reasons.
const (
	fewGains   = 3    // number of scores below which the gain of an iteration is unknown
	usual      = 0.5  // standard deviation of the gain of an iteration, in errors of a score, before there are scores
	farthest   = 8    // number of next iterations that count
	leastPrice = 0.05 // smallest price of an iteration, in errors of a score
	share      = 0.4  // the loop stops if going on is worth less than this share of the price of an iteration
)

// outlook is what the scores say about the next iterations. Its amounts are points of the score.
type outlook struct {
	Scores int     `json:"scores"`         // number of last scores that it comes from
	Exact  bool    `json:"exact,omitzero"` // the scores have no noise
	Gain   float64 `json:"gain"`           // expected gain of an iteration
	Off    float64 `json:"off,omitzero"`   // standard deviation of the gain
	Error  float64 `json:"error,omitzero"` // standard error of a score
	Use    float64 `json:"use"`            // what an iteration uses, in the unit of NotWorth
}

// outlook returns the outlook of a loop; nil if nothing is known. The gain of an iteration is the slope of scores with
// noise, and the forecast of exact ones, whose scatter about their course takes the place of the error.
func (p *Plan) outlook(t *Tally) *outlook {
	v, exact := p.spread(t)
	o, points := &outlook{Exact: exact, Use: p.use(t)}, t.Course
	if exact {
		gain, known := p.nextGain(t)
		if !known {
			return nil
		}
		scores := t.recent()
		scores = scores[max(0, len(scores)-window):]
		points = make([]point, len(scores))
		for i := range points {
			points[i].N = 1
		}
		v, o.Gain = scatter(scores), gain
	}
	if o.Scores = len(points); o.Scores < fewGains || v == 0 && !exact && len(p.spreadScores(t)) < fewScores {
		return nil
	}
	slope, xx, _, answers := slopeOf(points)
	o.Error = math.Sqrt(v * float64(o.Scores) / answers)
	before, measured, weight := usual*o.Error*usual*o.Error, v/xx, 1.0 // variances of the gain before there are scores, and of slope
	if v > 0 {
		weight = before / (before + measured)
	}
	if !exact {
		o.Gain = weight * slope
	}
	if o.Off = math.Sqrt(weight * measured); !isFinite(o.Gain) || !isFinite(o.Off) || !isFinite(o.Error) {
		return nil
	}
	return o
}

// price returns the price of an iteration, in points of the score.
func (p *Plan) price(o *outlook) float64 { return max(p.NotWorth.Gain*o.Use, leastPrice*o.Error) }

// expectedRest returns the expected gain of the iterations that are left, beyond their price. The loop can stop as soon as
// they cost more than they gain, so that a loss counts as 0.
func (p *Plan) expectedRest(t *Tally) float64 {
	left := uint(farthest)
	if p.MaxIterations > 0 {
		left = max(1, min(left, p.MaxIterations-min(p.MaxIterations, uint(t.endedIterations()))))
	}
	return float64(left) * meanAboveZero(t.Outlook.Gain-p.price(t.Outlook), t.Outlook.Off)
}

// leastRest returns what going on must be worth.
func (p *Plan) leastRest(t *Tally) float64 { return share * p.price(t.Outlook) }

// meanAboveZero returns the mean of a normally distributed value, of which a value below 0 counts as 0.
func meanAboveZero(mean, deviation float64) float64 {
	if deviation == 0 {
		return max(0, mean)
	}
	z := mean / deviation
	return mean*math.Erfc(-z/math.Sqrt2)/2 + deviation*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi)
}

// worthProof returns how sure it is that an iteration gains less than its price; nil if the scores have no noise.
func (p *Plan) worthProof(o *outlook) *Proof {
	if o.Exact || o.Off == 0 {
		return nil
	}
	price := p.price(o)
	chance := math.Erfc((o.Gain-price)/o.Off/math.Sqrt2) / 2
	return &Proof{Chance: brief.Digits(chance, 3), Scores: o.Scores, Gain: brief.Digits(price, 3)}
}

// cheap returns what the course says about gains below the price of an iteration, by the rules before version 4.
func (p *Plan) cheap(t *Tally) standstill {
	v, exact := p.spread(t)
	if exact {
		return standstill{plain: true}
	}
	price := p.NotWorth.Gain * p.use(t)
	return p.Score.weigh(t.Course, v, max(2, p.Score.patience()), func(float64) (float64, float64) { return price, 0 })
}

// worthRow returns the row of NotWorth.
func (p *Plan) worthRow(t *Tally, reason StopReason) Row {
	w := p.NotWorth
	r := Row{ConditionRecord: ConditionRecord{
		Name: "not_worth", Value: "not predictable", Threshold: fmt.Sprintf("< %s per %s", num(w.Gain), w.per()),
		Holds: p.notWorth(t), Fired: reason == ReasonConverged && !p.isConverged(t), Unit: UnitGain, Bound: &w.Gain,
	}, Status: ConditionUnknown}
	if t.Worth == nil {
		return r
	}
	r.Value, r.Have, r.Near, r.Status = num(*t.Worth), t.Worth, ratio(w.Gain, t.Worth), ""
	if o := t.Outlook; o != nil {
		rest, enough := p.expectedRest(t), p.leastRest(t)
		r.Value = fmt.Sprintf("%s an iteration over %d scores, going on is worth %s", signedShort(o.Gain), o.Scores, short(rest))
		r.Threshold = short(p.price(o)) + ", " + short(enough)
		if rest > enough {
			r = r.withNear(enough / rest)
		}
	}
	return r
}
