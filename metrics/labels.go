// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/internal/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session/mark"
)

// What stands for a value of a label.
const (
	unknown = "unknown" // nobody has said it
	none    = "none"    // there is none
	other   = "other"   // it is one too many, or not one of those that can be
)

// longest is the largest number of bytes in the value of a label.
const longest = 100

// values are those of a label, or of some labels together, that somebody else chooses.
type values struct {
	most int

	mu   sync.Mutex
	seen map[[2]string]struct{}
}

func newValues(most int) *values { return &values{most: most, seen: make(map[[2]string]struct{})} }

// of returns what stands for two values. All beyond the first few are "other".
func (v *values) of(a, b string) (string, string) {
	key := [2]string{clean(a), clean(b)}
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.seen[key]; !ok {
		if len(v.seen) >= v.most {
			return other, other
		}
		v.seen[[2]string{strings.Clone(key[0]), strings.Clone(key[1])}] = struct{}{} // not the text that they are part of
	}
	return key[0], key[1]
}

// one is of for a single value.
func (v *values) one(a string) string {
	a, _ = v.of(a, "")
	return a
}

// clean is a value as Prometheus takes it.
func clean(s string) string {
	if s == "" {
		return unknown
	}
	return brief.ClipBytes(s, longest)
}

// The values of labels that this project chooses. A log that a newer version has written can have others.
var (
	stops = set(loop.ReasonExit, loop.ReasonEscalated, loop.ReasonCondition, loop.ReasonTarget, loop.ReasonConverged,
		loop.ReasonNoProgress, loop.ReasonMaxIterations, loop.ReasonTimeout, loop.ReasonBudget, loop.ReasonError,
		loop.ReasonCanceled)
	kinds = set(mark.FailurePanic, mark.FailureBudget, mark.FailurePrice, mark.FailureModelCalls, mark.FailureState, mark.FailureDeadline,
		mark.FailureCanceled)
)

func set[T ~string](all ...T) map[T]string {
	m := map[T]string{"": none}
	for _, one := range all {
		m[one] = string(one)
	}
	return m
}

// among is the value of a label that can only be one of some.
func among[T ~string](all map[T]string, s T) string {
	if known, ok := all[s]; ok {
		return known
	}
	return other
}
