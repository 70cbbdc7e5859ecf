// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"sync"

	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session/mark"
)

// Values of a label that replace a missing or unexpected value.
const (
	unknown = "unknown" // not given
	none    = "none"    // has no value
	other   = "other"   // beyond the limit, or outside the known values
)

// longest is the largest number of bytes in the value of a label.
const longest = 100

// labels are the values that labels have.
type labels struct {
	definitions, agents, models, loops, refusals *values
}

// newLabels returns labels without values. Each takes at most this number of values.
func newLabels(most int) labels {
	return labels{definitions: newValues(most), agents: newValues(most), models: newValues(most), loops: newValues(most),
		refusals: newValues(most)}
}

// values has the values of a label, or of a pair of labels, that definitions, models or clients choose.
type values struct {
	most int

	mu   sync.Mutex
	seen map[[2]string]struct{}
}

func newValues(most int) *values { return &values{most: most, seen: make(map[[2]string]struct{})} }

// of returns two values as labels. Beyond the first few pairs it returns "other".
func (v *values) of(a, b string) (string, string) {
	key := [2]string{clean(a), clean(b)}
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, ok := v.seen[key]; !ok {
		if len(v.seen) >= v.most {
			return other, other
		}
		v.seen[[2]string{strings.Clone(key[0]), strings.Clone(key[1])}] = struct{}{} // cloned to release the text around it
	}
	return key[0], key[1]
}

// one does what of does for a single value.
func (v *values) one(a string) string {
	a, _ = v.of(a, "")
	return a
}

// clean shortens a value for Prometheus, and replaces an empty one by "unknown".
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

// among returns the label of one of the known values, and "other" for an unknown one.
func among[T ~string](all map[T]string, s T) string {
	if known, ok := all[s]; ok {
		return known
	}
	return other
}
