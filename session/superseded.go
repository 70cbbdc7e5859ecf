// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/refrain-dev/refrain/session/mark"

// Current returns the events of a log, oldest first, without the superseded ones.
func Current(log []*Event) []*Event {
	var gone mark.Spans
	for _, ev := range log {
		if s := ev.Mark.Supersedes(); s != nil {
			gone = gone.Union(s)
		}
	}
	if gone == nil {
		return log
	}
	var left []*Event
	for _, ev := range log {
		if !gone.Has(ev.Seq) {
			left = append(left, ev)
		}
	}
	return left
}
