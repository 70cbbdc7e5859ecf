// SPDX-License-Identifier: Apache-2.0

package session

import "strings"

// Answer returns which of two events of a run answers for the agents around both: what an agent says, and what one says
// later. Either can be nil. The later event answers, unless a parallel agent makes the order a matter of chance: what a
// branch says does not replace what was said before the parallel agent began. Of two branches the one whose name comes
// first in the alphabet answers.
func Answer(earlier, later *Event) *Event {
	if earlier == nil || later != nil && later.replaces(earlier) {
		return later
	}
	return earlier
}

// replaces reports whether e answers in place of an earlier event.
func (e *Event) replaces(earlier *Event) bool {
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
	same := 0 // names in both branches; they are those of parallel agents and of their sub-agents in turn
	for i := 0; own[i] == other[i]; i++ {
		if own[i] == '.' {
			same++
		}
	}
	name, rival := parted(e.Address, earlier.Address)
	return same%2 == 0 || name <= rival // two runs of one agent follow one another
}

// parted returns the first agent of each address that is not in the other.
func parted(a, b Address) (of, other string) {
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
