// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/seal/statekey"
	"github.com/refrain-dev/refrain/session"
)

// keyWrites records which agents have written which state keys.
type keyWrites struct {
	on          bool
	ofStep      []string        // that the step under way has written, sorted
	ofCallbacks []string        // that callbacks have written before the iteration
	firstWriter map[string]int  // the step that wrote a key first
	reads       []string        // that decide whether the loop stops
	readsAll    bool            // any may
	stale       map[string]bool // those of them that are left over; never changed, but replaced
}

// findStaleKeys finds out which of the keys that decide whether the loop stops are left over
// from an earlier run, or from an earlier pass of this loop: they are not there until
// a step of this pass has written them.
func (r *run) findStaleKeys() {
	w := &r.writes
	if !w.on || !r.stateDecides() {
		return
	}
	if w.reads, w.readsAll = r.plan.Reads(); len(w.reads) == 0 && !w.readsAll {
		return
	}
	state := r.state(r.loop.Address)
	keys := w.reads
	if w.readsAll {
		keys = slices.Sorted(maps.Keys(state))
	}
	keys = slices.DeleteFunc(slices.Clone(keys), func(k string) bool { _, ok := state[k]; return !ok })
	for _, k := range r.staleKeys(keys) {
		if w.stale == nil {
			w.stale = make(map[string]bool)
		}
		w.stale[k] = true
	}
}

// stateDecides reports whether a key of the state can end the loop, or become a finding.
func (r *run) stateDecides() bool {
	return r.plan.Score != nil || r.plan.StopWhen != nil || r.plan.Watch != nil
}

// staleKeys returns those of the given keys whose values are left over. It does not repeat the
// search of an earlier pass.
func (r *run) staleKeys(keys []string) []string {
	if len(keys) == 0 {
		return nil
	}
	evs := r.ctx.Session().Events()
	last := int64(0)
	if n := evs.Len(); n > 0 {
		last = evs.At(n - 1).Seq
	}
	before := make(map[string]staleResult, len(keys))
	since := last
	for _, k := range keys {
		before[k] = r.knownStale(k)
		since = min(since, before[k].seq)
	}
	left, rest := statekey.Leftovers(newestFirst(evs), keys, r.loop.Address, r.ctx.InvocationID(), since)
	for _, k := range rest {
		if before[k].stale {
			left = append(left, k)
		}
	}
	if r.loop.Cache != nil {
		for _, k := range keys {
			r.loop.Cache.Store(staleKey{r.loop.Address.Place(), k}, staleResult{last, slices.Contains(left, k)})
		}
	}
	return left
}

// newestFirst are the events, the last one first.
func newestFirst(evs session.Events) iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		for i := evs.Len() - 1; i >= 0 && yield(evs.At(i)); i-- {
		}
	}
}

// staleResult has the finding about a key from the events up to a sequence number.
type staleResult struct {
	seq   int64
	stale bool
}

type staleKey struct {
	loop session.Address
	key  string
}

func (r *run) knownStale(key string) staleResult {
	if r.loop.Cache == nil {
		return staleResult{}
	}
	v, _ := r.loop.Cache.Load(staleKey{r.loop.Address.Place(), key})
	known, _ := v.(staleResult)
	return known
}

// noteWrites takes down which keys an event of a step writes, before it does.
func (r *run) noteWrites(ev *session.Event) {
	w := &r.writes
	if !w.on {
		return
	}
	temp, _ := ev.CustomMetadata[drive.MetadataTemp].(map[string]any) // stores leave them out of the delta
	if ev.Partial || len(ev.Actions.StateDelta) == 0 && len(temp) == 0 {
		return
	}
	step := r.observedStep()
	for _, delta := range [...]map[string]any{ev.Actions.StateDelta, temp} {
		for k := range delta {
			if !w.isLogged(k) {
				continue
			}
			if step >= 0 {
				r.learnFromWrite(step, k)
			}
			w.ofStep = w.addKey(w.ofStep, k)
		}
	}
}

// isLogged reports whether the log of a run records the writing of a key. Of temp: keys it records
// those that the loop reads.
func (w *keyWrites) isLogged(key string) bool {
	return !strings.HasPrefix(key, session.KeyPrefixTemp) || w.readsAll || slices.Contains(w.reads, key)
}

// addKeys adds the keys that an event writes to a sorted list. They are left over
// no more.
func (w *keyWrites) addKeys(keys []string, ev *session.Event) []string {
	for k := range ev.Actions.StateDelta {
		if w.isLogged(k) {
			keys = w.addKey(keys, k)
		}
	}
	return keys
}

func (w *keyWrites) addKey(keys []string, k string) []string {
	if i, ok := slices.BinarySearch(keys, k); !ok {
		keys = slices.Insert(keys, i, k)
	}
	if w.stale[k] {
		w.stale = maps.Clone(w.stale)
		delete(w.stale, k)
	}
	return keys
}

// observedStep returns the number of the step under way if the loop observes which keys it works on;
// else -1.
func (r *run) observedStep() int {
	if r.phase.finalizing || len(r.steps.addresses) == 1 {
		return -1
	}
	return slices.Index(r.steps.addresses, r.current.address)
}

// learnFromWrite finds out from a key that a step writes whether the step changes an existing value. Such a
// step makes something, and does not only judge.
func (r *run) learnFromWrite(step int, k string) {
	s, w := &r.results.candidates.steps[step], &r.writes
	by, written := w.firstWriter[k]
	if written && by == step {
		return
	}
	if !written {
		if w.firstWriter == nil {
			w.firstWriter = make(map[string]int)
		}
		w.firstWriter[k] = step
	}
	s.changesInput = s.changesInput || written || r.plan.MayExit(r.plan.Steps[step].Name) && r.isGiven(k)
}

// isGiven reports whether a key is in the state, and not left over from an earlier pass or run. It is
// false for keys that sessions share, because the log does not record their values.
func (r *run) isGiven(key string) bool {
	if strings.HasPrefix(key, session.KeyPrefixApp) || strings.HasPrefix(key, session.KeyPrefixUser) {
		return false
	}
	_, ok := r.state(r.loop.IterationAddress)[key]
	return ok && len(r.staleKeys([]string{key})) == 0
}

// writtenKeys returns the keys that the step has written, never nil; or nil if the loop does not need
// them.
func (r *run) writtenKeys() []string {
	if !r.stateDecides() {
		return nil
	}
	keys := append([]string{}, r.writes.ofStep...)
	for _, k := range r.writes.ofCallbacks {
		if i, ok := slices.BinarySearch(keys, k); !ok {
			keys = slices.Insert(keys, i, k)
		}
	}
	return keys
}
