// SPDX-License-Identifier: Apache-2.0

package tui

import (
	"time"

	"github.com/refrain-dev/refrain/session"
)

// Frame returns what a window of this size shows after the events and the time since the last one, with the colors of a
// terminal. Finished is the frame that remains.
func Frame(cfg Config, log []*session.Event, since time.Duration, finished bool, width, height int) string {
	m := newModel(cfg)
	m.width, m.height = width, height
	m.Update(eventsMsg{events: log})
	m.since, m.spin = since, int(since/time.Second)
	if finished {
		m.Update(finishMsg{})
	}
	return m.frame()
}
