// SPDX-License-Identifier: Apache-2.0

package loop

import "time"

// NotWorth ends a loop when the next iteration is not worth its price: when the expected
// gain of the score per Per is less than Gain. It needs a forecast, and so three scores.
type NotWorth struct {
	Gain float64 `json:"gain"`
	// Per is iteration (the default), minute, ktokens or cost.
	Per Per `json:"per,omitzero"`
}

// Per is the unit to which a gain is related.
type Per string

// The units.
const (
	PerIteration Per = "iteration"
	PerMinute    Per = "minute"  // of active time
	PerKTokens   Per = "ktokens" // a thousand tokens, of input and output
	PerCost      Per = "cost"    // one unit of the currency; an unknown cost is never too much
)

// worth is the expected gain of the next iteration for each Per; known is false
// if it cannot be said.
func (p *Plan) worth(t *Tally) (gain float64, known bool) {
	if len(t.Scores) < 3 || t.Complete == 0 {
		return 0, false
	}
	var c course
	if !c.through(p, t.Scores, t.Judge.floor()) {
		return 0, false
	}
	n := float64(t.Complete)
	switch gain = c.best.next; p.NotWorth.Per {
	case PerMinute:
		return per(gain, float64(t.Active)/n/float64(time.Minute))
	case PerKTokens:
		return per(gain, float64(t.Usage.tokens())/n/1000)
	case PerCost:
		if t.Usage.Cost == nil {
			return 0, false
		}
		return per(gain, *t.Usage.Cost/n)
	}
	return tidy(gain), true
}

// per divides; what costs nothing is always worth it.
func per(gain, use float64) (float64, bool) {
	if use <= 0 || !isFinite(gain/use) {
		return 0, false
	}
	return tidy(gain / use), true
}

func (w *NotWorth) per() Per {
	if w.Per == "" {
		return PerIteration
	}
	return w.Per
}

// weigh takes down what the next iteration is worth.
func (p *Plan) weigh(t *Tally) {
	t.Worth = nil
	if p.NotWorth == nil || t.Score == nil {
		return
	}
	if gain, known := p.worth(t); known {
		t.Worth = new(gain)
	}
}

// notWorth reports whether the next iteration promises too little.
func (p *Plan) notWorth(t *Tally) bool {
	return p.NotWorth != nil && t.Worth != nil && *t.Worth < p.NotWorth.Gain
}
