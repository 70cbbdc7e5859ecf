// SPDX-License-Identifier: Apache-2.0

package session

import (
	"iter"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/session/mark"
)

// iterationValue is the value of an iteration: key in one loop iteration, its owner.
type iterationValue struct {
	owner Address
	key   string
	value any
	size  int64 // see entrySize; 0 until a caller asks for it
}

// stateView is a view's state as a step sees it. An empty address sees the newest
// value of each iteration: key.
type stateView struct {
	view    *View
	address Address
}

func (s stateView) Get(key string) (any, error) {
	s.view.mu.Lock()
	defer s.view.mu.Unlock()
	if strings.HasPrefix(key, KeyPrefixIteration) {
		if sv := s.view.state.iterationValue(key, s.address); sv != nil {
			return sv.value, nil
		}
		return nil, ErrStateKeyNotExist
	}
	if val, ok := s.view.state.values[key]; ok {
		return val, nil
	}
	return nil, ErrStateKeyNotExist
}

func (s stateView) Set(key string, value any) error {
	value, err := Plain(value)
	if err != nil {
		return keyError(key, err)
	}
	s.view.mu.Lock()
	defer s.view.mu.Unlock()
	if s.view.logOnly && !temporary(key, nil) {
		return keyError(key, ErrNotLogged)
	}
	s.view.setValue(key, value, s.address)
	return nil
}

func (s stateView) All() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		for k, val := range s.Map() {
			if !yield(k, val) {
				return
			}
		}
	}
}

// setValue writes one key; nil removes it. v.mu is held.
func (v *View) setValue(key string, value any, at Address) {
	if strings.HasPrefix(key, KeyPrefixIteration) {
		owner := at.loop()
		v.state.iterationValues = slices.DeleteFunc(v.state.iterationValues, func(sv iterationValue) bool { return sv.key == key && sv.owner == owner })
		if value != nil { // the newest is last
			v.state.iterationValues = append(v.state.iterationValues, iterationValue{owner: owner, key: key, value: value})
		}
		return
	}
	if strings.HasPrefix(key, mark.KeyPrefix) {
		v.setLogKey(key, value)
		return
	}
	v.state.setKey(key, value)
}

// iterationValue returns the value of an iteration: key that a step sees; nil if there is none. A step sees the
// value of the innermost loop around it. An empty address sees the newest value.
func (s *viewState) iterationValue(key string, at Address) *iterationValue {
	var found *iterationValue
	for i := range s.iterationValues {
		sv := &s.iterationValues[i]
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
	v.state.iterationValues = slices.DeleteFunc(v.state.iterationValues, func(sv iterationValue) bool { return sv.owner.Under(pass) })
}

// isDurable reports whether a key outlives its invocation.
func isDurable(key string) bool {
	return !strings.HasPrefix(key, KeyPrefixTemp) && !strings.HasPrefix(key, KeyPrefixIteration)
}
