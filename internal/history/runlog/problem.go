// SPDX-License-Identifier: Apache-2.0

package runlog

import (
	"strings"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// ProblemIn returns the error that an event records, such as that of a failed step; empty if it records none.
func ProblemIn(ev *session.Event) string {
	if ev.ErrorCode != "" || ev.ErrorMessage != "" {
		return strings.TrimPrefix(ev.ErrorCode+": "+ev.ErrorMessage, ": ")
	}
	if x := ev.Actions.Exit; x != nil && x.Refused != "" {
		return "exit refused: " + x.Refused
	}
	if ev.Mark == nil {
		return ""
	}
	switch ev.Mark.Kind {
	case mark.KindStepFinished:
		var fin mark.StepFinished
		if ev.Mark.Decode(&fin) == nil && !fin.Canceled { // a canceled step has not failed
			return fin.Error
		}
	case mark.KindLoopStopped:
		var rec loop.StopRecord
		if ev.Mark.Decode(&rec) == nil && rec.Reason.Failed() {
			return rec.String()
		}
	case mark.KindRunEnded:
		var end mark.RunEnded
		if ev.Mark.Decode(&end) == nil && end.Status == mark.RunFailed {
			return end.Error
		}
	}
	return ""
}
