// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Edit is one piece of the difference of two texts. The kept and removed pieces form the old text, the kept and
// inserted pieces the new one.
type Edit struct {
	Op   EditOp `json:"op"`
	Text string `json:"text"`
}

// EditOp says whether a piece of text was kept, removed or inserted.
type EditOp string

// The operations of an [Edit].
const (
	Kept EditOp = "="
	Left EditOp = "-" // out
	Put  EditOp = "+" // in
)

// maxEdits limits the number of changed words that DiffWords searches for. Texts with more changes have little in
// common: then everything between their common beginning and their common end counts as changed.
const maxEdits = 1000

// DiffWords returns the difference of two texts, word by word.
func DiffWords(before, after string) []Edit {
	a, b := wordsIn(before), wordsIn(after)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var e edits
	e.add(Kept, a[:head]...)
	e.between(a[head:len(a)-tail], b[head:len(b)-tail])
	e.add(Kept, a[len(a)-tail:]...)
	return e.tidy()
}

// wordsIn splits a text into words and the spaces between them. Scripts without spaces are split by letter.
func wordsIn(s string) []string {
	var words []string
	start, kind := 0, 0
	for i, r := range s {
		k := 1
		switch {
		case unicode.IsSpace(r):
			k = 2
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai):
			k = 3
		}
		if i > start && (k != kind || k == 3) {
			words = append(words, s[start:i])
			start = i
		}
		kind = k
	}
	if start < len(s) {
		words = append(words, s[start:])
	}
	return words
}

type edits []Edit

func (e *edits) add(op EditOp, words ...string) {
	text := strings.Join(words, "")
	if text == "" {
		return
	}
	if n := len(*e); n > 0 && (*e)[n-1].Op == op {
		(*e)[n-1].Text += text
		return
	}
	*e = append(*e, Edit{op, text})
}

// between adds a shortest way from a to b, as Myers found it: frontier[d] holds
// how far one gets in a with d words changed, on each diagonal.
func (e *edits) between(a, b []string) {
	var frontiers [][]int
	last := []int{0, 0, 0} // diagonals -1 to 1
	for d := 0; d <= min(len(a)+len(b), maxEdits); d++ {
		next := make([]int, 2*d+3) // diagonals -d-1 to d+1
		for k := -d; k <= d; k += 2 {
			x := furthest(last, d, k)
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			next[k+d+1] = x
			if x >= len(a) && x-k >= len(b) {
				e.walk(a, b, frontiers, k)
				return
			}
		}
		frontiers = append(frontiers, next)
		last = next
	}
	e.add(Left, a...)
	e.add(Put, b...)
}

// furthest returns the end of the d-th change on diagonal k, from the frontier of one change less.
func furthest(last []int, d, k int) int {
	at := func(k int) int { return last[k+d] } // its diagonals are -d to d
	switch {
	case d == 0:
		return 0
	case k == -d || k != d && at(k-1) < at(k+1):
		return at(k + 1)
	}
	return at(k-1) + 1
}

// walk follows the path back from the end on diagonal k, and appends it from its beginning.
func (e *edits) walk(a, b []string, frontiers [][]int, k int) {
	var back []Edit
	x, y := len(a), len(b)
	for d := len(frontiers); d >= 0; d-- {
		from, prev := 0, 0
		if d > 0 {
			f := frontiers[d-1]
			prev = k - 1
			if k == -d || k != d && f[k-1+d] < f[k+1+d] {
				prev = k + 1
			}
			from = f[prev+d]
			if prev == k-1 {
				from++ // behind the word of a that is left out
			}
		}
		for x > from {
			x--
			y--
			back = append(back, Edit{Kept, a[x]})
		}
		if d > 0 {
			if prev == k+1 {
				y--
				back = append(back, Edit{Put, b[y]})
			} else {
				x--
				back = append(back, Edit{Left, a[x]})
			}
		}
		k = prev
	}
	for _, one := range slices.Backward(back) {
		e.add(one.Op, one.Text)
	}
}

// tidy puts removals before insertions, and treats a space between two changes as changed, because whole phrases read
// better than single words.
func (e edits) tidy() []Edit {
	var out edits
	var left, put string
	flush := func() {
		out.add(Left, left)
		out.add(Put, put)
		left, put = "", ""
	}
	for i, one := range e {
		switch {
		case one.Op == Left:
			left += one.Text
		case one.Op == Put:
			put += one.Text
		case i > 0 && i < len(e)-1 && strings.TrimSpace(one.Text) == "" && utf8.RuneCountInString(one.Text) == 1:
			left += one.Text
			put += one.Text
		default:
			flush()
			out.add(Kept, one.Text)
		}
	}
	flush()
	return out
}
