// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/session/mark"
)

// scopedValue is an iteration: key with the loop iteration that it lives in.
type scopedValue struct {
	owner Address
	key   string
	value any
	size  int64 // of both; 0 if nobody has asked
}

// stateAt is a view's state as a step sees it. An empty address sees the newest
// value of each iteration: key.
type stateAt struct {
	view *View
	at   Address
}

func (s stateAt) Get(key string) (any, error) {
	s.view.mu.Lock()
	defer s.view.mu.Unlock()
	if strings.HasPrefix(key, KeyPrefixIteration) {
		if sv := s.view.scopedValue(key, s.at); sv != nil {
			return sv.value, nil
		}
		return nil, ErrStateKeyNotExist
	}
	if val, ok := s.view.state[key]; ok {
		return val, nil
	}
	return nil, ErrStateKeyNotExist
}

func (s stateAt) Set(key string, value any) error {
	value, err := Plain(value)
	if err != nil {
		return keyError(key, err)
	}
	s.view.mu.Lock()
	defer s.view.mu.Unlock()
	if s.view.held && !temporary(key, nil) {
		return keyError(key, ErrNotLogged)
	}
	s.view.set(key, value, s.at)
	return nil
}

func (s stateAt) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for k, val := range s.Map() {
			if !yield(k, val) {
				return
			}
		}
	}
}

// set writes one key; nil removes it. v.mu is held.
func (v *View) set(key string, value any, at Address) {
	if strings.HasPrefix(key, KeyPrefixIteration) {
		owner := at.loop()
		v.scoped = slices.DeleteFunc(v.scoped, func(sv scopedValue) bool { return sv.key == key && sv.owner == owner })
		if value != nil { // the newest is last
			v.scoped = append(v.scoped, scopedValue{owner: owner, key: key, value: value})
		}
		return
	}
	if strings.HasPrefix(key, mark.KeyPrefix) {
		v.note(key, value)
		return
	}
	v.put(key, value)
}

// scopedValue finds the value of an iteration: key that a step sees, which is
// that of the innermost loop, or for an empty address the newest; nil if there
// is none.
func (v *View) scopedValue(key string, at Address) *scopedValue {
	var found *scopedValue
	for i := range v.scoped {
		sv := &v.scoped[i]
		if sv.key != key {
			continue
		}
		// Outside loops a key has no owner: it lives with the run.
		if at == "" || (sv.owner == "" || at.Under(sv.owner)) && (found == nil || len(sv.owner) > len(found.owner)) {
			found = sv
		}
	}
	return found
}

// EndIteration removes the iteration: keys of one iteration of a loop, such as
// "story/refine[3]".
func (v *View) EndIteration(pass Address) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.scoped = slices.DeleteFunc(v.scoped, func(sv scopedValue) bool { return sv.owner.Under(pass) })
}

// durable reports whether a key outlives its invocation.
func durable(key string) bool {
	return !strings.HasPrefix(key, KeyPrefixTemp) && !strings.HasPrefix(key, KeyPrefixIteration)
}
