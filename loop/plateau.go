// SPDX-License-Identifier: Apache-2.0

package loop

// plateau is what counts towards convergence. Its zero value is a loop, or a leg, without scores.
type plateau struct {
	// Flat is the number of times in a row that the improvement was too small. FlatBy is the threshold that the last
	// improvement stayed below.
	Flat   uint   `json:"flat,omitzero"`
	FlatBy string `json:"flat_by,omitzero"`
	// Course has the last scores with noise, from which convergence is proved.
	Course []point `json:"course,omitzero"`
	// Worth is the expected gain of the next iteration, in the unit of NotWorth; nil if it is unknown. Outlook is where
	// it comes from; nil by the rules before version 4.
	Worth   *float64 `json:"worth,omitzero"`
	Outlook *outlook `json:"outlook,omitzero"`
}

// countFlat updates c.Flat, the number of consecutive iterations whose improvement was below a threshold or within the
// judge's noise.
func (s *Score) countFlat(c *plateau, rec *IterationRecord) {
	percent, is := 0.0, *rec.Delta <= 0 // a percentage of a previous score of zero does not exist
	if rec.Percent != nil {
		percent, is = *rec.Percent, true
	}
	switch {
	case s.MinDelta == nil && s.MinDeltaPercent == nil:
		return
	case s.MinDelta != nil && *rec.Delta < *s.MinDelta:
		c.flatBy(*s.MinDelta, "")
	case s.MinDeltaPercent != nil && is && percent < *s.MinDeltaPercent:
		c.flatBy(*s.MinDeltaPercent, "%")
	case rec.Noise > 0 && *rec.Delta <= rec.Noise:
		c.flatBy(rec.Noise, " (the judge's noise)")
	default:
		c.Flat, c.FlatBy = 0, ""
	}
}

func (c *plateau) flatBy(threshold float64, unit string) {
	c.Flat++
	c.FlatBy = num(threshold) + unit
}
