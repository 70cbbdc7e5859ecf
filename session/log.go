// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"

	"github.com/refrain-dev/refrain/session/mark"
)

// Log is the whole log of a view, as it was when [View.Log] returned it: all events, including superseded ones and those
// that a rewound view does not show yet. As [Events], it reads events that are only in the store with all their texts.
type Log struct {
	window
	superseded mark.Spans
}

// Log returns the whole log as it is now.
func (v *View) Log() *Log {
	v.mu.Lock()
	defer v.mu.Unlock()
	return &Log{v.log.window, v.superseded}
}

// Superseded returns the sequence numbers of the events that [View.Events] leaves out.
func (l *Log) Superseded() mark.Spans { return l.superseded }

// Outline yields the events of the log to a caller that does not need long texts: events read from the
// store may lack them, as in [Event.Outlined]. Outline reads a log of a gigabyte in a fraction of a second.
// [Log.Full] returns the complete event.
func (l *Log) Outline() iter.Seq[*Event] { return l.outline(nil) }

// OutlineByKind yields those events of Outline that have a mark of one of the kinds. If the outline is already cached
// (see [Log.CacheOutline]), OutlineByKind unpacks only the parts of the cache that have such an event.
func (l *Log) OutlineByKind(kinds ...mark.Kind) iter.Seq[*Event] { return l.outline(kinds) }

// Full returns an event of the Outline with all its texts. If no text was cut off, Full returns ev itself.
func (l *Log) Full(ev *Event) *Event {
	if ev.Omitted == 0 {
		return ev
	}
	return l.load(ev)
}

// Reader returns a function that returns an event of the log by its sequence number, with all its
// texts; nil if there is no such event. It reads a cached event from the store only if the cache lacks its long texts.
func (l *Log) Reader() func(seq int64) *Event {
	var cache *outlineCache
	if l.older != nil {
		l.older.mu.Lock()
		cache = l.older.outlineCache
		l.older.mu.Unlock()
	}
	return func(seq int64) *Event {
		if cache != nil && seq < l.first+int64(l.before) {
			if ev := l.older.cachedAt(cache, seq); ev != nil && ev.Omitted == 0 {
				return ev
			}
		}
		return l.bySeq(seq)
	}
}

// CacheOutline makes the view keep the events that Outline reads from the store, until DropOutline. A second Outline
// of a later log of the view, or of a view rewound from it, then reads nothing. This helps because resuming a run reads
// its log several times. The cache takes about 70 bytes of memory per event. Of a long log the view caches the first
// 8 MiB only.
func (l *Log) CacheOutline() {
	if o := l.older; o != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.cachesOutline = true
	}
}

// DropOutline drops the events that the view keeps because of CacheOutline. A function that Reader has returned before still
// uses them.
func (l *Log) DropOutline() {
	if o := l.older; o != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.cachesOutline, o.outlineCache = false, nil
	}
}
