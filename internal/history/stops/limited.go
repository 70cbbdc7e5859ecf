// SPDX-License-Identifier: Apache-2.0

package stops

import (
	"strings"

	"github.com/refrain-dev/refrain/loop"
)

// Limited reports whether a limit or no_progress stopped the loop before something else that the loop had to reach: a criterion
// or, for time and budget, its number of iterations.
func Limited(rec *loop.StopRecord) bool {
	return (rec.Reason.Limit() || rec.Reason == loop.ReasonNoProgress) && hasGoal(rec)
}

// hasGoal reports whether a condition other than a limit could have stopped the loop. A condition that only ends a failing loop
// is not a goal.
func hasGoal(rec *loop.StopRecord) bool {
	for _, c := range rec.Conditions {
		switch {
		case c.Name == "max_iterations":
			if rec.Reason != loop.ReasonMaxIterations {
				return true
			}
		case c.Name == "max_consecutive_failures", c.Name == "no_progress", c.Name == "timeout",
			strings.HasPrefix(c.Name, "budget"):
		case c.Name == "exit_loop" && c.Who != nil && len(c.Who) == 0:
		default:
			return true
		}
	}
	return false
}
