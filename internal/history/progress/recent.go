// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"time"

	"github.com/refrain-dev/refrain/session"
)

// maxRecent limits the texts, and the events, that a [Live] keeps, in bytes each. Of older ones it keeps the
// beginning.
const maxRecent = 8 << 20

// recent has the newest of some texts.
type recent struct {
	all    []cuttable
	weight int
}

// cuttable is a text that can be shortened, with its size in bytes.
type cuttable struct {
	bytes int
	cut   func()
}

// overhead is what recent itself takes for a text, in bytes.
const overhead = 256

// add adds the newest text, and shortens the oldest ones if there is too much.
func (r *recent) add(bytes int, cut func()) {
	bytes += overhead
	r.all = append(r.all, cuttable{bytes, cut})
	for r.weight += bytes; r.weight > maxRecent && len(r.all) > 1; r.all = r.all[1:] {
		r.all[0].cut()
		r.weight -= r.all[0].bytes
		r.all[0] = cuttable{}
	}
}

// keep stores an event for the case that some folded events no longer count.
func (l *Live) keep(ev *session.Event, now time.Duration) {
	i := len(l.log)
	l.log, l.times = append(l.log, ev), append(l.times, now)
	short := ev.Outlined()
	if short == ev { // nothing of it is long
		return
	}
	l.heavy.add(int(short.Omitted-ev.Omitted), func() { l.log[i] = short })
}
