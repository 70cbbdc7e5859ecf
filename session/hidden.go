// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"
	"slices"
	"sort"

	"github.com/refrain-dev/refrain/session/mark"
)

// hiddenRange is a range of sequence numbers that a window does not show. before is how many numbers
// the ranges in front of it have together.
type hiddenRange struct{ first, last, before int64 }

// hiddenRanges is a list of ranges in rising order. Nothing changes a list: a view replaces it by a new one.
type hiddenRanges []hiddenRange

func newHiddenRanges(s mark.Spans) hiddenRanges {
	var g hiddenRanges
	var n int64
	for _, sp := range s {
		g = append(g, hiddenRange{sp.First, sp.Last, n})
		n += sp.Last - sp.First + 1
	}
	return g
}

// upTo returns how many sequence numbers up to seq, seq included, are hidden.
func (g hiddenRanges) upTo(seq int64) int64 {
	i := sort.Search(len(g), func(i int) bool { return g[i].first > seq }) - 1
	if i < 0 {
		return 0
	}
	return g[i].before + min(seq, g[i].last) - g[i].first + 1
}

// at returns the sequence number of the i-th shown event, counted from 0. base is the sequence number of the
// window's first event, shown or hidden.
func (g hiddenRanges) at(base, i int64) int64 {
	off := g.upTo(base - 1)
	passed := sort.Search(len(g), func(k int) bool { return g[k].first-base-(g[k].before-off) > i })
	hidden := int64(0)
	if passed > 0 {
		last := g[passed-1]
		hidden = max(0, last.before+last.last-last.first+1-off)
	}
	return base + i + hidden
}

// visibleWindow is a window that omits the events in hidden ranges, and the events after a sequence number. The
// sequence numbers of the window itself must have no gap.
type visibleWindow struct {
	window
	gaps hiddenRanges
	to   int64 // the last sequence number that is shown; 0: no limit, -1: none is shown
}

// base returns the sequence number of the window's first event; 0 if the window is empty.
func (w *window) base() int64 {
	switch {
	case w.before > 0:
		return w.first
	case w.log.n > w.from:
		return w.log.at(w.from).Seq
	}
	return 0
}

// isContiguous reports whether the sequence numbers of the window's events have no gap.
func (w *window) isContiguous() bool {
	if w.log.n == w.from {
		return true
	}
	return w.base() > 0 && w.log.at(w.log.n-1).Seq == w.base()+int64(w.Len())-1
}

func (s *visibleWindow) Len() int {
	n := int64(s.window.Len())
	base := s.base()
	if s.to != 0 {
		n = max(0, min(n, s.to-base+1))
	}
	if n == 0 {
		return 0
	}
	return int(n - (s.gaps.upTo(base+n-1) - s.gaps.upTo(base-1)))
}

func (s *visibleWindow) At(i int) *Event {
	if i < 0 || i >= s.Len() {
		panic("session: event index out of range")
	}
	base := s.base()
	return s.window.At(int(s.gaps.at(base, int64(i)) - base))
}

// All yields the shown events. It counts sequence numbers itself, because At searches the hidden ranges each time.
func (s *visibleWindow) All() iter.Seq[*Event] {
	return func(yield func(*Event) bool) {
		left, next := s.Len(), 0
		seq := s.base()
		for ev := range s.window.All() {
			if left == 0 {
				return
			}
			for next < len(s.gaps) && s.gaps[next].last < seq {
				next++
			}
			if next == len(s.gaps) || seq < s.gaps[next].first {
				left--
				if !yield(ev) {
					return
				}
			}
			seq++
		}
	}
}

// Current returns the events of a log that are not superseded, oldest first.
func Current(log []*Event) []*Event {
	var gone mark.Spans
	for _, ev := range log {
		if s := ev.Mark.Supersedes(); s != nil {
			gone = gone.Union(s)
		}
	}
	return Without(log, gone)
}

// Without returns the events of a log that are in none of the spans. If gone is nil, it returns log itself, else a copy.
func Without(log []*Event, gone mark.Spans) []*Event {
	if gone == nil {
		return log
	}
	return slices.DeleteFunc(slices.Clone(log), func(ev *Event) bool { return gone.Has(ev.Seq) })
}
