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

// keyWrites records which steps have written which state keys.
type keyWrites struct {
	on          bool
	ofStep      []string        // the keys that the current step has written, sorted
	ofCallbacks []string        // the keys that callbacks have written before the iteration, sorted
	firstWriter map[string]int  // for each key the index of the step that wrote it first
	reads       []string        // the keys that decide whether the loop stops
	readsAll    bool            // any key may decide whether the loop stops
	stale       map[string]bool // the keys of reads that are left over; the map is replaced and never changed
}

// findStaleKeys finds the keys that decide whether the loop stops and that are left over: their values come from an
// earlier run, or from an earlier pass of this loop inside an outer one. The loop treats such a key as missing until
// a step of this pass writes it.
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

// staleKeys returns those of the given keys whose values are left over. It searches only the events after the
// search of an earlier pass, whose findings are in r.loop.Cache.
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

// newestFirst returns an iterator over the events from the last one to the first.
func newestFirst(evs session.Events) iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		for i := evs.Len() - 1; i >= 0 && yield(evs.At(i)); i-- {
		}
	}
}

// staleResult reports whether a key is left over, according to the events up to the sequence number seq.
type staleResult struct {
	seq   int64
	stale bool
}

// staleKey is the key in r.loop.Cache of the staleResult for a state key of a loop.
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

// noteWrites records the keys that an event of a step writes, before the event changes the state.
func (r *run) noteWrites(ev *session.Event) {
	w := &r.writes
	if !w.on {
		return
	}
	temp, _ := ev.CustomMetadata[drive.MetadataTemp].(map[string]any) // stores remove temp: keys from the delta
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

// isLogged reports whether the log of a run shows that a key was written. For temp: keys it does so only if the
// loop reads them.
func (w *keyWrites) isLogged(key string) bool {
	return !strings.HasPrefix(key, session.KeyPrefixTemp) || w.readsAll || slices.Contains(w.reads, key)
}

// addKeys adds the keys that an event writes to a sorted list, and returns it. These keys are no longer
// left over.
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

// observedStep returns the index of the current step if the loop observes which keys that step changes,
// and else -1.
func (r *run) observedStep() int {
	if r.phase.finalizing || len(r.steps.addresses) == 1 {
		return -1
	}
	return slices.Index(r.steps.addresses, r.current.address)
}

// learnFromWrite records whether a step that writes the key k changes an existing value. A step that does so makes
// something, and does not only judge.
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

// isGiven reports whether a key is in the state, and not left over from an earlier pass or run. It returns
// false for keys that sessions share, because the log does not have their values.
func (r *run) isGiven(key string) bool {
	if strings.HasPrefix(key, session.KeyPrefixApp) || strings.HasPrefix(key, session.KeyPrefixUser) {
		return false
	}
	_, ok := r.state(r.loop.IterationAddress)[key]
	return ok && len(r.staleKeys([]string{key})) == 0
}

// writtenKeys returns the keys that the step, and the callbacks before the iteration, have written. It returns nil only if the
// loop does not need them.
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
