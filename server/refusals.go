// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// refusals says which requests were refused, and counts them: the first of a kind is logged at once, and
// of those that follow within a minute only how many they were.
type refusals struct {
	log  *slog.Logger
	told func(kind string) // of each; may be nil

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

// add takes one of a kind. why says it for people, and attrs what else is known of it.
func (r *refusals) add(ctx context.Context, kind, message, why, from string, attrs ...any) {
	if r.told != nil {
		r.told(kind)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.kinds[kind]; one != nil {
		one.further++
		one.from = from
		return
	}
	if r.end == nil {
		r.end = time.AfterFunc(refusedEvery, r.flush)
		r.kinds = make(map[string]*refused)
	}
	r.kinds[kind] = &refused{why: why}
	r.log.WarnContext(ctx, message, append([]any{"why", why, "from", from}, attrs...)...)
}

// flush ends the minute: it logs how many more there were.
func (r *refusals) flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end != nil {
		r.end.Stop()
		r.end = nil
	}
	for _, kind := range slices.Sorted(maps.Keys(r.kinds)) {
		if one := r.kinds[kind]; one.further > 0 {
			r.log.Warn("more requests were refused", "why", one.why, "count", one.further, "within", refusedEvery, "last_from", one.from)
		}
	}
	r.kinds = nil
}
