// SPDX-License-Identifier: Apache-2.0

package loop

import (
	"cmp"
	"encoding/json"
	"fmt"
)

// NoProgress ends a loop whose steps produce the same results again and again. It
// compares fingerprints of the results; a changed result is progress. It skips an
// iteration that was cut short or has a step with an unknown fingerprint.
type NoProgress struct {
	// Repeats is the number of iterations in a row with the same result, at least 2.
	// 0 means 3.
	Repeats uint `json:"repeats,omitzero"`
	// Swings is the number of times in a row that two results alternate (A, B is once).
	// 0 means 2.
	Swings uint `json:"swings,omitzero"`
	// Keys are the state keys to compare instead of the steps' results.
	Keys []string `json:"keys,omitzero"`
}

func (n *NoProgress) repeats() int { return int(max(2, cmp.Or(n.Repeats, 3))) }
func (n *NoProgress) swings() int  { return int(max(1, cmp.Or(n.Swings, 2))) }

// addToFingerprints adds the result of a step to the fingerprint of the iteration, and to the fingerprint of what the judge will
// see. It skips the judge itself, because its answer is not part of what it judges.
func (p *Plan) addToFingerprints(t *Tally, o *addedOutcome) {
	if p.judges(o.Step) {
		return
	}
	if p.NoProgress != nil {
		t.Print = addFingerprint(t.Print, o.Fingerprint)
	}
	if p.Score != nil && p.Score.Judge != nil {
		t.Judge.Print = addFingerprint(t.Judge.Print, o.Fingerprint)
	}
}

// addFingerprint returns print extended by the fingerprint of one more result.
func addFingerprint(print uint64, fingerprint string) uint64 {
	if print == unknownPrint || fingerprint == "" {
		return unknownPrint
	}
	return max(uint64(newHash.number(print).text(fingerprint)), unknownPrint+1)
}

// unknownPrint is the fingerprint of an iteration in which the result of a step is unknown.
const unknownPrint = 1

// countRepeats records the fingerprint of an iteration that has ended, and updates the counts of repetitions.
func (p *Plan) countRepeats(t *Tally, o *addedOutcome) {
	n := p.NoProgress
	if n == nil || !t.Ended.Complete {
		return
	}
	print := t.Print
	if len(n.Keys) > 0 {
		print = fingerprintOf(o.State, n.Keys)
	}
	if print <= unknownPrint {
		return
	}
	var prints []uint64
	switch l := len(t.Prints); {
	case l == 0:
		t.Repeats, t.Turns = 1, 1
	case t.Prints[l-1] == print:
		t.Repeats, t.Turns = t.Repeats+1, 1
		prints = append(prints, print)
	case l > 1 && t.Prints[l-2] == print: // the iteration between them had another result
		t.Repeats, t.Turns = 1, t.Turns+1
		prints = append(prints, t.Prints[l-1])
	default:
		t.Repeats, t.Turns = 1, 2
		prints = append(prints, t.Prints[l-1])
	}
	t.Prints = append(prints, print)
	t.Swings = t.Turns / 2
}

// fingerprintOf returns the fingerprint of the values of some state keys.
func fingerprintOf(state map[string]any, keys []string) uint64 {
	h := newHash
	for _, k := range keys {
		b, err := json.Marshal(state[k])
		if err != nil {
			return unknownPrint
		}
		h = h.number(uint64(len(b))).text(string(b))
	}
	return max(uint64(h), unknownPrint+1)
}

// circles returns the counts of repetitions in a tally, with their limits.
func (n *NoProgress) circles(t *Tally) *Circles {
	return &Circles{Repeats: t.Repeats, MaxRepeats: n.repeats(), Swings: t.Swings, MaxSwings: n.swings()}
}

// circling reports whether the results repeat often enough to end the loop.
func (n *NoProgress) circling(t *Tally) bool {
	c := n.circles(t)
	return c.Repeating() || c.Swinging()
}

// evidence returns a text about the repetition, for people.
func (n *NoProgress) evidence(t *Tally) string {
	if n.circles(t).Repeating() {
		return fmt.Sprintf("the same result %d times running", t.Repeats)
	}
	return fmt.Sprintf("two results take turns, %d times running", t.Swings)
}

// hash is an FNV-1a hash that allocates nothing.
type hash uint64

const newHash hash = 14695981039346656037

func (h hash) text(s string) hash {
	for i := range len(s) {
		h = (h ^ hash(s[i])) * 1099511628211
	}
	return h
}

func (h hash) number(n uint64) hash {
	for range 8 {
		h = (h ^ hash(n&0xff)) * 1099511628211
		n >>= 8
	}
	return h
}
