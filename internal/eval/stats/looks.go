// SPDX-License-Identifier: Apache-2.0

package stats

import "math"

// A Look is a point of an evaluation at which it may end early.
type Look struct {
	Cases int     // after this many cases have finished, all repeats of both versions
	Alpha float64 // for [Options.Alpha]: an evaluation that ends here has decided at this level
}

// Looks returns the points at which an evaluation of planned cases may end, the last of them after all cases. Whoever
// compares the cases so far at each look, in an order drawn before, and ends at the first verdict of [Better] or [Worse], has a
// false verdict in at most 5% of the evaluations of equal versions. The bounds are O'Brien's and Fleming's for five looks.
func Looks(planned int) []Look {
	alphas := [...]float64{0.000005, 0.0013, 0.0084, 0.0226, 0.0413}
	var looks []Look
	for i, alpha := range alphas {
		cases := int(math.Ceil(float64(planned) * float64(i+1) / float64(len(alphas))))
		if cases >= Least { // fewer never decide
			looks = append(looks, Look{cases, alpha})
		}
	}
	return looks
}
