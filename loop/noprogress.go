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

// repetition is how often the results of iterations have repeated.
type repetition struct {
	// Print is the fingerprint of the results of the running iteration. Prints has the fingerprints of the last two
	// iterations before it, the older first.
	Print  uint64   `json:"print,omitzero"`
	Prints []uint64 `json:"prints,omitzero"`
	// Repeats is the number of iterations in a row with the same result. Turns is the number of iterations in a row in
	// which two results alternate, and Swings is half of Turns.
	Repeats int `json:"repeats,omitzero"`
	Turns   int `json:"turns,omitzero"`
	Swings  int `json:"swings,omitzero"`
}

// count adds the fingerprint of an iteration that has ended.
func (r *repetition) count(print uint64) {
	var prints []uint64
	switch l := len(r.Prints); {
	case l == 0:
		r.Repeats, r.Turns = 1, 1
	case r.Prints[l-1] == print:
		r.Repeats, r.Turns = r.Repeats+1, 1
		prints = append(prints, print)
	case l > 1 && r.Prints[l-2] == print: // the iteration between them had another result
		r.Repeats, r.Turns = 1, r.Turns+1
		prints = append(prints, r.Prints[l-1])
	default:
		r.Repeats, r.Turns = 1, 2
		prints = append(prints, r.Prints[l-1])
	}
	r.Prints = append(prints, print)
	r.Swings = r.Turns / 2
}

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
	if print > unknownPrint {
		t.repetition.count(print)
	}
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

// circles returns the counts of repetitions, with their limits.
func (n *NoProgress) circles(r *repetition) *Circles {
	return &Circles{Repeats: r.Repeats, MaxRepeats: n.repeats(), Swings: r.Swings, MaxSwings: n.swings()}
}

// isCircling reports whether the results repeat often enough to end the loop.
func (n *NoProgress) isCircling(r *repetition) bool {
	c := n.circles(r)
	return c.Repeating() || c.Swinging()
}

// evidence returns a text about the repetition, for people.
func (n *NoProgress) evidence(r *repetition) string {
	if n.circles(r).Repeating() {
		return fmt.Sprintf("the same result %d times running", r.Repeats)
	}
	return fmt.Sprintf("two results take turns, %d times running", r.Swings)
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
