// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/refrain-dev/refrain/session/mark"
)

// setKey writes one key without the prefix iteration:; nil removes it. v.mu is held.
func (s *viewState) setKey(key string, value any) {
	s.asMap = nil
	if s.sizes != nil {
		s.updateSize(key, value)
	}
	if value == nil {
		delete(s.values, key)
		return
	}
	if s.values == nil {
		s.values = make(map[string]any)
	}
	s.values[key] = value
}

// updateSize updates the recorded size of a key, and the sum of all sizes. v.mu is held.
func (s *viewState) updateSize(key string, value any) {
	n := entrySize(key, value)
	s.size += n - s.sizes[key]
	if s.sizes[key] = n; n == 0 {
		delete(s.sizes, key)
	}
}

// Map returns the state as a map, which others may share: do not change it.
func (s stateView) Map() map[string]any {
	s.view.mu.Lock()
	defer s.view.mu.Unlock()
	if s.view.state.asMap == nil {
		if s.view.state.asMap = maps.Clone(s.view.state.values); s.view.state.asMap == nil {
			s.view.state.asMap = make(map[string]any)
		}
	}
	if len(s.view.state.iterationValues) == 0 {
		return s.view.state.asMap
	}
	all := maps.Clone(s.view.state.asMap)
	for _, sv := range s.view.state.iterationValues {
		if seen := s.view.state.iterationValue(sv.key, s.address); seen != nil {
			all[sv.key] = seen.value
		}
	}
	return all
}

// Size returns the [StateSize] of the state. A loop asks for it after each step, and a state can be large, so Size
// measures the state once. After that, each write of a key updates the size.
func (s stateView) Size() int64 {
	s.view.mu.Lock()
	defer s.view.mu.Unlock()
	if s.view.state.sizes == nil {
		s.view.state.sizes, s.view.state.size = make(map[string]int64, len(s.view.state.values)), StateSize(map[string]any{})
		for key, value := range s.view.state.values {
			s.view.state.updateSize(key, value)
		}
	}
	total := s.view.state.size
	for i := range s.view.state.iterationValues {
		sv := &s.view.state.iterationValues[i]
		if s.view.state.iterationValue(sv.key, s.address) != sv {
			continue // the step sees another value of this key
		}
		if sv.size == 0 {
			sv.size = entrySize(sv.key, sv.value)
		}
		total += sv.size
	}
	return total
}

// ErrStateLimit: the state would be larger than its limit.
var ErrStateLimit = errors.New("the state is too large")

// StateLimitError reports a change that was refused because the state would be too large.
type StateLimitError struct {
	StateChange
	// Limit is the largest size that the state may have. SetBy says who set the limit, such as
	// `state_limit of the loop "refine"`.
	Limit int64
	SetBy string
}

// Error names the sizes, the largest key and the limit, and says how to stay below it.
func (e *StateLimitError) Error() string {
	return fmt.Sprintf("the state would have %d bytes, %d of them in key %q, and %s is %d: keep less in it, set keys that nobody "+
		"reads to null, or raise the limit", e.After, e.KeySize, e.Key, e.SetBy, e.Limit)
}

// Unwrap returns [ErrStateLimit].
func (e *StateLimitError) Unwrap() error { return ErrStateLimit }

// Permanent returns true, because a retry cannot succeed.
func (e *StateLimitError) Permanent() bool { return true }

// ErrLogLimit: the log of the run would be larger than its limit.
var ErrLogLimit = errors.New("the log of the run is too large")

// LogLimitError reports that the log of a run has reached its limit.
type LogLimitError struct {
	// Size is the weight that the run's events would have, and Limit the largest one allowed; see [Event.Weight].
	Size, Limit int64
	// Name is what Error calls the limit; the default is "its limit".
	Name string
}

// Error names the sizes, and says how the run can continue.
func (e *LogLimitError) Error() string {
	return fmt.Sprintf("the log of the run would have about %d bytes, and %s is %d: let its steps write less, "+
		"or retry the run with a higher limit; all that it has written stays", e.Size, cmp.Or(e.Name, "its limit"), e.Limit)
}

// Unwrap returns [ErrLogLimit].
func (e *LogLimitError) Unwrap() error { return ErrLogLimit }

// Permanent returns true, because a retry cannot succeed.
func (e *LogLimitError) Permanent() bool { return true }

// StateChange describes how an event changes the size of the state, in bytes.
type StateChange struct {
	// Before and After are the [StateSize] of the state without and with the event.
	Before, After int64
	// Key is the largest key of the event, and KeySize its size.
	Key     string
	KeySize int64
}

// Change returns how an event that is not appended yet will change the size of the state.
func (v *View) Change(ev *Event) StateChange {
	before := stateView{view: v, address: ev.Address}.Size()
	c := StateChange{Before: before, After: before}
	v.mu.Lock()
	defer v.mu.Unlock()
	for key, value := range ev.Actions.StateDelta {
		switch {
		case strings.HasPrefix(key, mark.KeyPrefix):
			continue // a key of the log itself, which the state does not show
		case strings.HasPrefix(key, KeyPrefixIteration):
			if sv := v.state.iterationValue(key, ev.Address); sv != nil && sv.owner == ev.Address.loop() {
				c.After -= entrySize(key, sv.value)
			}
		default:
			c.After -= v.state.sizes[key]
		}
		n := entrySize(key, value)
		c.After += n
		if n > c.KeySize || n == c.KeySize && key < c.Key {
			c.Key, c.KeySize = key, n
		}
	}
	return c
}

// StateSize estimates how many bytes a value of the state takes as JSON.
func StateSize(v any) int64 {
	switch x := v.(type) {
	case string:
		return int64(len(x)) + 2
	case []byte:
		return int64(len(x))
	case map[string]any:
		n := int64(2)
		for k, v := range x {
			n += int64(len(k)) + 4 + StateSize(v) // with quotes, a colon and a comma
		}
		return n
	case []any:
		n := int64(2)
		for _, v := range x {
			n += StateSize(v) + 1
		}
		return n
	case nil, bool, int, int64, float64:
		return 8
	}
	b, err := json.Marshal(v)
	if err != nil {
		return 0
	}
	return int64(len(b))
}

// entrySize returns the size of a key with its value, in bytes. It is 0 for the value nil, which removes a key.
func entrySize(key string, value any) int64 {
	if value == nil {
		return 0
	}
	return int64(len(key)) + 4 + StateSize(value) // with quotes, a colon and a comma
}
