// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// Refusals says which requests were refused, and counts them: the first of a kind is logged at once, and
// of those that follow within a minute only how many they were.
type Refusals struct {
	Log  *slog.Logger
	Told func(kind string) // of each; may be nil

	mu    sync.Mutex
	kinds map[string]*refused // of this minute
	end   *time.Timer         // of the minute; nil if there is none
}

// refused are requests that were refused for one reason.
type refused struct {
	why     string
	further int    // besides the one that was logged
	from    string // of the last
}

const refusedEvery = time.Minute

// Add takes one of a kind. why says it for people, and attrs what else is known of it.
func (r *Refusals) Add(ctx context.Context, kind, message, why, from string, attrs ...any) {
	if r.Told != nil {
		r.Told(kind)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.kinds[kind]; one != nil {
		one.further++
		one.from = from
		return
	}
	if r.end == nil {
		r.end = time.AfterFunc(refusedEvery, r.Flush)
		r.kinds = make(map[string]*refused)
	}
	r.kinds[kind] = &refused{why: why}
	r.Log.WarnContext(ctx, message, append([]any{"why", why, "from", from}, attrs...)...)
}

// Flush ends the minute: it logs how many more there were.
func (r *Refusals) Flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end != nil {
		r.end.Stop()
		r.end = nil
	}
	for _, kind := range slices.Sorted(maps.Keys(r.kinds)) {
		if one := r.kinds[kind]; one.further > 0 {
			r.Log.Warn("more requests were refused", "why", one.why, "count", one.further, "within", refusedEvery, "last_from", one.from)
		}
	}
	r.kinds = nil
}
