// SPDX-License-Identifier: Apache-2.0

package session

import "strings"

// Answer returns which of two events of a run is the answer of the agents around both. Either event can be
// nil. The later event wins, except under a parallel agent, because the order of its branches is random. There an
// event of a branch does not replace an event from before the parallel agent. Between two branches, the branch
// whose name comes first in the alphabet wins.
func Answer(earlier, later *Event) *Event {
	if earlier == nil || later != nil && later.isBetterAnswer(earlier) {
		return later
	}
	return earlier
}

// isBetterAnswer reports whether e replaces the earlier event as the answer.
func (e *Event) isBetterAnswer(earlier *Event) bool {
	if e.Branch == earlier.Branch || e.Branch == "" {
		return true
	}
	own, other := e.Branch+".", earlier.Branch+"."
	if earlier.Branch == "" || strings.HasPrefix(own, other) {
		return false
	}
	if strings.HasPrefix(other, own) {
		return true
	}
	same := 0 // names that both branches begin with: by turns a parallel agent and its sub-agent
	for i := 0; own[i] == other[i]; i++ {
		if own[i] == '.' {
			same++
		}
	}
	name, rival := splitStep(e.Address, earlier.Address)
	return same%2 == 0 || name <= rival // equal names: the same agent ran twice, one run after the other
}

// splitStep returns the names of the two agents at the first step at which the addresses differ.
func splitStep(a, b Address) (of, other string) {
	i := sameStart(a, b)
	for i > 0 && a[i-1] != '/' {
		i--
	}
	first := func(at Address) string {
		step, _, _ := strings.Cut(string(at[i:]), "/")
		return Address(step).Agent()
	}
	return first(a), first(b)
}
