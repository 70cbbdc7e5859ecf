// SPDX-License-Identifier: Apache-2.0

package live

import (
	"strings"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/loop"
)

// exitCode is how the process of a run ends that has completed. A limit, or a loop that makes no progress, is a stop of
// its own kind only where the loop had something else to reach: a criterion or, for time and budget, its number of
// iterations.
func exitCode(stops []*loop.StopRecord, zeroOnLimit bool) int {
	for _, rec := range stops {
		if (rec.Reason.Limit() || rec.Reason == loop.ReasonNoProgress) && hasGoal(rec) && !zeroOnLimit {
			return term.ExitLimit
		}
	}
	return term.ExitOK
}

// hasGoal reports whether the loop could have stopped by anything but a limit.
// What only ends a loop that has gone wrong is no goal either.
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

// ranOut reports whether a loop has stopped because it had no more iterations.
func ranOut(rec *loop.StopRecord) bool { return rec.Reason == loop.ReasonMaxIterations }
