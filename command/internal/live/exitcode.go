// SPDX-License-Identifier: Apache-2.0

package live

import (
	"strings"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/loop"
)

// exitCode returns the exit code of a completed run. A limit or no_progress has its own exit code only where the loop had
// something else to reach: a criterion or, for time and budget, its number of iterations.
func exitCode(stops []*loop.StopRecord, zeroOnLimit bool) int {
	for _, rec := range stops {
		if (rec.Reason.Limit() || rec.Reason == loop.ReasonNoProgress) && hasGoal(rec) && !zeroOnLimit {
			return term.ExitLimit
		}
	}
	return term.ExitOK
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
		case c.Name == "exit_loop" && c.Threshold == "nobody":
		default:
			return true
		}
	}
	return false
}
