// SPDX-License-Identifier: Apache-2.0

package check

// Pass says when a case-run passes: if all checks pass, or, with a Score above 0, if the weighted mean of their values
// is at least that score.
type Pass struct {
	Score float64 `json:"score,omitzero"`
}

// Grade is what all checks of a case-run found together.
type Grade struct {
	Results []Result `json:"results"`
	// Score is the weighted mean of the values, and Passed whether the case-run passes. Both are nil if no check was
	// evaluated.
	Score  *float64 `json:"score,omitzero"`
	Passed *bool    `json:"passed,omitzero"`
}

// slack is the difference between two sums of the same numbers in another order.
const slack = 1e-9

// Combine makes one grade of the results of all checks. Results that are informational or were not evaluated do not
// count.
func Combine(results []Result, pass Pass) Grade {
	g := Grade{Results: results}
	all, sum, weights := true, 0.0, 0.0
	for _, r := range results {
		if r.Informational || r.Passed == nil || r.Value == nil {
			continue
		}
		w := r.Weight
		if w == 0 {
			w = 1
		}
		all = all && *r.Passed
		sum, weights = sum+w**r.Value, weights+w
	}
	if weights == 0 {
		return g
	}
	g.Score = new(sum / weights)
	if pass.Score > 0 {
		all = *g.Score >= pass.Score-slack
	}
	g.Passed = &all
	return g
}
