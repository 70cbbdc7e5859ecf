// SPDX-License-Identifier: Apache-2.0

package session

// Current are the events that count: those of a log, oldest first, without the
// superseded ones.
func Current(log []*Event) []*Event {
	var gone Spans
	for _, ev := range log {
		if s := SupersededBy(ev); s != nil {
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

// SupersededBy are the events that no longer count because of this one, which
// is a [MarkRunResumed]; nil for others.
func SupersededBy(ev *Event) Spans {
	if ev.Mark == nil || ev.Mark.Kind != MarkRunResumed {
		return nil
	}
	var r RunResumed
	if ev.Mark.Decode(&r) != nil {
		return nil // as if nothing were superseded
	}
	return r.Superseded
}
