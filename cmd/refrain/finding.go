// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// note is a finding on a line.
func note(f progress.Finding) string {
	text := f.String()
	if strings.Contains(string(f.Loop), "/") {
		text = string(f.Loop) + ": " + text
	}
	return "Note: " + strings.Join(strings.Fields(text), " ")
}

// stopsBySeq are the stop records in a log, by the place of their events.
func stopsBySeq(events []*session.Event) map[int64]*loop.StopRecord {
	stops := make(map[int64]*loop.StopRecord)
	for _, ev := range events {
		if ev.Mark == nil || ev.Mark.Kind != mark.KindLoopStopped {
			continue
		}
		if rec := new(loop.StopRecord); ev.Mark.Decode(rec) == nil {
			stops[ev.Seq] = rec
		}
	}
	return stops
}
