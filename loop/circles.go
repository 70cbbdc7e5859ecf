// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
)

// NoProgress finds a loop that goes round in circles by the fingerprints of
// what its steps produce. A changed result is progress. An iteration with a
// step whose fingerprint is unknown, or that was cut short, is passed over.
type NoProgress struct {
	// Repeats is how many iterations running must produce the same, at most
	// 32. 0 means 3.
	Repeats uint `json:"repeats,omitzero"`
	// Swings is how often running two results must take turns (A, B is once),
	// at most 16. 0 means 2.
	Swings uint `json:"swings,omitzero"`
	// Keys are the state keys to look at instead of what the steps produce.
	Keys []string `json:"keys,omitzero"`
}

func (n *NoProgress) repeats() int { return int(max(2, defaulted(n.Repeats, 3))) }
func (n *NoProgress) swings() int  { return int(max(1, defaulted(n.Swings, 2))) }

func defaulted(n, otherwise uint) uint {
	if n == 0 {
		return otherwise
	}
	return n
}

// print adds what a step has produced to the iteration's print. A judge's words
// are no part of what it judges.
func (p *Plan) print(t *Tally, o *Outcome) {
	if p.samples(o.Step) > 0 || t.Print == unknownPrint {
		return
	}
	if o.Fingerprint == "" {
		t.Print = unknownPrint
		return
	}
	h := fnv.New64a()
	var b [8]byte
	for i := range b {
		b[i] = byte(t.Print >> (8 * i))
	}
	h.Write(b[:])
	h.Write([]byte(o.Fingerprint))
	t.Print = max(h.Sum64(), unknownPrint+1)
}

// unknownPrint is that of an iteration in which something could not be seen.
const unknownPrint = 1

// circle takes down the print of an iteration that has ended.
func (p *Plan) circle(t *Tally, o *Outcome) {
	n := p.NoProgress
	if n == nil || !t.Ended.Complete {
		return
	}
	print := t.Print
	if len(n.Keys) > 0 {
		print = printOf(o.State, n.Keys)
	}
	if print <= unknownPrint {
		return
	}
	prints := append(slices.Clone(t.Prints), print)
	t.Prints = prints[max(0, len(prints)-maxPrints):]
	t.Repeats, t.Swings = repeated(t.Prints), swung(t.Prints)
}

func printOf(state map[string]any, keys []string) uint64 {
	h := fnv.New64a()
	for _, k := range keys {
		b, err := json.Marshal(state[k])
		if err != nil {
			return unknownPrint
		}
		h.Write(b)
		h.Write([]byte{0})
	}
	return max(h.Sum64(), unknownPrint+1)
}

// circling reports whether the loop goes round.
func (n *NoProgress) circling(t *Tally) bool {
	return t.Repeats >= n.repeats() || t.Swings >= n.swings()
}

// evidence says how it does.
func (n *NoProgress) evidence(t *Tally) string {
	if t.Repeats >= n.repeats() {
		return fmt.Sprintf("the same result %d times running", t.Repeats)
	}
	return fmt.Sprintf("two results take turns, %d times running", t.Swings)
}

// repeated is how often running the last print was seen.
func repeated(prints []uint64) int {
	n := 0
	for i := len(prints) - 1; i >= 0 && prints[i] == prints[len(prints)-1]; i-- {
		n++
	}
	return n
}

// swung is how often running the last two prints, different ones, took turns.
func swung(prints []uint64) int {
	l := len(prints)
	if l < 2 || prints[l-1] == prints[l-2] {
		return 0
	}
	n := 0
	for i := l - 2; i >= 0 && prints[i] == prints[l-2] && prints[i+1] == prints[l-1]; i -= 2 {
		n++
	}
	return n
}
