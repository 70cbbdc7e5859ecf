// SPDX-License-Identifier: Apache-2.0

package loopagent

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/statekey"
)

// writing records which agents have written which state keys.
type writing struct {
	on       bool
	keys     []string        // that the step under way has written, sorted
	before   []string        // that callbacks have written before the iteration
	by       map[string]int  // the step that wrote a key first
	reads    []string        // that decide whether the loop stops
	readsAll bool            // any may
	left     map[string]bool // those of them that are left over; never changed, but replaced
}

// inherit finds out which of the keys that decide whether the loop stops are left over
// from an earlier run, or from an earlier pass of this loop: they are not there until
// a step of this pass has written them.
func (r *run) inherit() {
	w := &r.written
	if !w.on || !r.decides() {
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
	for _, k := range r.leftovers(keys) {
		if w.left == nil {
			w.left = make(map[string]bool)
		}
		w.left[k] = true
	}
}

// decides reports whether a key of the state can end the loop, or become a finding.
func (r *run) decides() bool {
	return r.plan.Score != nil || r.plan.StopWhen != nil || r.plan.Watch != nil
}

// leftovers returns those of the given keys whose values are left over. It does not repeat the
// search of an earlier pass.
func (r *run) leftovers(keys []string) []string {
	if len(keys) == 0 {
		return nil
	}
	evs := r.ctx.Session().Events()
	last := int64(0)
	if n := evs.Len(); n > 0 {
		last = evs.At(n - 1).Seq
	}
	before := make(map[string]lookedUp, len(keys))
	since := last
	for _, k := range keys {
		before[k] = r.lookedUp(k)
		since = min(since, before[k].seq)
	}
	left, rest := statekey.Leftovers(newest(evs), keys, r.loop.Address, r.ctx.InvocationID(), since)
	for _, k := range rest {
		if before[k].left {
			left = append(left, k)
		}
	}
	if r.loop.Kept != nil {
		for _, k := range keys {
			r.loop.Kept.Store(lookedUpKey{r.loop.Address.Place(), k}, lookedUp{last, slices.Contains(left, k)})
		}
	}
	return left
}

// newest are the events, the last one first.
func newest(evs session.Events) iter.Seq[*session.Event] {
	return func(yield func(*session.Event) bool) {
		for i := evs.Len() - 1; i >= 0 && yield(evs.At(i)); i-- {
		}
	}
}

// lookedUp has the finding about a key from the events up to a sequence number.
type lookedUp struct {
	seq  int64
	left bool
}

type lookedUpKey struct {
	loop session.Address
	key  string
}

func (r *run) lookedUp(key string) lookedUp {
	if r.loop.Kept == nil {
		return lookedUp{}
	}
	v, _ := r.loop.Kept.Load(lookedUpKey{r.loop.Address.Place(), key})
	known, _ := v.(lookedUp)
	return known
}

// write takes down which keys an event of a step writes, before it does.
func (r *run) write(ev *session.Event) {
	w := &r.written
	if !w.on {
		return
	}
	temp, _ := ev.CustomMetadata[drive.MetadataTemp].(map[string]any) // stores leave them out of the delta
	if ev.Partial || len(ev.Actions.StateDelta) == 0 && len(temp) == 0 {
		return
	}
	step := r.learner()
	for _, delta := range [...]map[string]any{ev.Actions.StateDelta, temp} {
		for k := range delta {
			if !w.tells(k) {
				continue
			}
			if step >= 0 {
				r.learn(step, k)
			}
			w.keys = w.overwritten(w.keys, k)
		}
	}
}

// tells reports whether the log of a run records the writing of a key. Of temp: keys it records
// those that the loop reads.
func (w *writing) tells(key string) bool {
	return !strings.HasPrefix(key, session.KeyPrefixTemp) || w.readsAll || slices.Contains(w.reads, key)
}

// overwrite adds the keys that an event writes to a sorted list. They are left over
// no more.
func (w *writing) overwrite(keys []string, ev *session.Event) []string {
	for k := range ev.Actions.StateDelta {
		if w.tells(k) {
			keys = w.overwritten(keys, k)
		}
	}
	return keys
}

func (w *writing) overwritten(keys []string, k string) []string {
	if i, ok := slices.BinarySearch(keys, k); !ok {
		keys = slices.Insert(keys, i, k)
	}
	if w.left[k] {
		w.left = maps.Clone(w.left)
		delete(w.left, k)
	}
	return keys
}

// learner returns the number of the step under way if the loop observes which keys it works on;
// else -1.
func (r *run) learner() int {
	if r.finalizing || len(r.at) == 1 {
		return -1
	}
	return slices.Index(r.at, r.here)
}

// learn finds out from a key that a step writes whether the step changes an existing value. Such a
// step makes something, and does not only judge.
func (r *run) learn(step int, k string) {
	s, w := &r.made.steps[step], &r.written
	by, written := w.by[k]
	if written && by == step {
		return
	}
	if !written {
		if w.by == nil {
			w.by = make(map[string]int)
		}
		w.by[k] = step
	}
	s.works = s.works || written || r.plan.MayExit(r.plan.Steps[step].Name) && r.given(k)
}

// given reports whether a key is in the state, and not left over from an earlier pass or run. It is
// false for keys that sessions share, because the log does not record their values.
func (r *run) given(key string) bool {
	if strings.HasPrefix(key, session.KeyPrefixApp) || strings.HasPrefix(key, session.KeyPrefixUser) {
		return false
	}
	_, ok := r.state(r.loop.Pass)[key]
	return ok && len(r.leftovers([]string{key})) == 0
}

// wrote returns the keys that the step has written, never nil; or nil if the loop does not need
// them.
func (r *run) wrote() []string {
	if !r.decides() {
		return nil
	}
	keys := append([]string{}, r.written.keys...)
	for _, k := range r.written.before {
		if i, ok := slices.BinarySearch(keys, k); !ok {
			keys = slices.Insert(keys, i, k)
		}
	}
	return keys
}
