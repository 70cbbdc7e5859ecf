// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"
	"maps"
	"strings"
)

// scopedValue is an iteration: key with the loop iteration that it lives in.
type scopedValue struct {
	owner Address
	key   string
	value any
}

// stateAt is a view's state as a step sees it. An empty address sees the newest
// value of each iteration: key.
type stateAt struct {
	view *View
	at   Address
}

func (s stateAt) Get(key string) (any, error) {
	s.view.mu.RLock()
	defer s.view.mu.RUnlock()
	if strings.HasPrefix(key, KeyPrefixIteration) {
		if i := s.view.scopedIndex(key, s.at); i >= 0 {
			return s.view.scoped[i].value, nil
		}
		return nil, ErrStateKeyNotExist
	}
	if val, ok := s.view.state[key]; ok {
		return val, nil
	}
	return nil, ErrStateKeyNotExist
}

func (s stateAt) Set(key string, value any) error {
	s.view.mu.Lock()
	defer s.view.mu.Unlock()
	s.view.set(key, value, s.at)
	return nil
}

func (s stateAt) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		s.view.mu.RLock()
		all := maps.Clone(s.view.state)
		if all == nil {
			all = make(map[string]any, len(s.view.scoped))
		}
		for _, sv := range s.view.scoped { // outer loops first, so inner ones win
			if s.at == "" || s.at.Under(sv.owner) {
				all[sv.key] = sv.value
			}
		}
		s.view.mu.RUnlock()
		for k, val := range all {
			if !yield(k, val) {
				return
			}
		}
	}
}

// set writes one key; nil removes it. v.mu is held.
func (v *View) set(key string, value any, at Address) {
	if strings.HasPrefix(key, KeyPrefixIteration) {
		v.setScoped(key, value, at.loop())
		return
	}
	if value == nil {
		delete(v.state, key)
		return
	}
	if v.state == nil {
		v.state = make(map[string]any)
	}
	v.state[key] = value
}

func (v *View) setScoped(key string, value any, owner Address) {
	for i := range v.scoped {
		if v.scoped[i].key == key && v.scoped[i].owner == owner {
			v.scoped[i].value = value
			return
		}
	}
	v.scoped = append(v.scoped, scopedValue{owner: owner, key: key, value: value})
}

// scopedIndex finds the innermost value of an iteration: key that a step sees.
func (v *View) scopedIndex(key string, at Address) int {
	for i := len(v.scoped) - 1; i >= 0; i-- {
		sv := &v.scoped[i]
		if sv.key == key && sv.value != nil && (at == "" || at.Under(sv.owner)) {
			return i
		}
	}
	return -1
}

// EndIteration forgets the iteration: keys that were set in one pass of a loop,
// given as "story/refine[3]".
func (v *View) EndIteration(pass Address) {
	v.mu.RLock()
	none := len(v.scoped) == 0
	v.mu.RUnlock()
	if none {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	kept := v.scoped[:0]
	for _, sv := range v.scoped {
		if sv.owner == "" || !sv.owner.Under(pass) {
			kept = append(kept, sv)
		}
	}
	clear(v.scoped[len(kept):])
	v.scoped = kept
}

// durable reports whether a key outlives its invocation.
func durable(key string) bool {
	return !strings.HasPrefix(key, KeyPrefixTemp) && !strings.HasPrefix(key, KeyPrefixIteration)
}
