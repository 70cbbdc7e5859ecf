// SPDX-License-Identifier: Apache-2.0

package loop

// Hits makes the forecasts of a past run again, one after each score from the
// third on, and counts those whose interval held the iterations that it really
// took. scores are all of the run's, until is why it stopped: a run that was
// ended from outside says nothing, and made is 0.
func (p *Plan) Hits(scores []float64, until StopReason) (hits, made int) {
	if p.Score == nil || until != ReasonTarget && until != ReasonConverged && until != ReasonMaxIterations {
		return 0, 0
	}
	for n := 3; n < len(scores); n++ {
		var f Forecast
		p.forecast(&f, &Tally{Scores: scores[:n]}, n)
		if !f.Predictable || f.Until == "" {
			continue
		}
		made++
		if took := len(scores) - n; took >= f.Low && took <= f.High {
			hits++
		}
	}
	return hits, made
}
