// SPDX-License-Identifier: Apache-2.0

package mark

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Span is a range of sequence numbers, both ends included.
type Span struct{ First, Last int64 }

// Spans are ranges of sequence numbers in rising order, none of which touches
// the next. As text, and in JSON, they are "5-9,12".
type Spans []Span

// SpansOf returns the spans of sequence numbers, which may be in any order.
func SpansOf(seqs ...int64) Spans {
	s := make(Spans, 0, len(seqs))
	for _, n := range seqs {
		s = append(s, Span{n, n})
	}
	return s.Union(nil)
}

// Union returns the spans of the numbers that are in s or in t.
func (s Spans) Union(t Spans) Spans {
	all := slices.Concat(s, t)
	slices.SortFunc(all, func(a, b Span) int { return cmp.Compare(a.First, b.First) })
	var out Spans
	for _, sp := range all {
		if n := len(out); n > 0 && sp.First <= out[n-1].Last+1 {
			out[n-1].Last = max(out[n-1].Last, sp.Last)
			continue
		}
		out = append(out, sp)
	}
	return out
}

// Has reports whether one of the spans contains a sequence number.
func (s Spans) Has(seq int64) bool {
	_, in := slices.BinarySearchFunc(s, seq, func(sp Span, seq int64) int {
		switch {
		case sp.Last < seq:
			return -1
		case sp.First > seq:
			return 1
		}
		return 0
	})
	return in
}

// String returns the spans as text, such as "5-9,12".
func (s Spans) String() string {
	var b []byte
	for i, sp := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, sp.First, 10)
		if sp.Last > sp.First {
			b = append(b, '-')
			b = strconv.AppendInt(b, sp.Last, 10)
		}
	}
	return string(b)
}

// MarshalText writes what String returns.
func (s Spans) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what MarshalText writes. It fails for spans that are not in
// rising order.
func (s *Spans) UnmarshalText(text []byte) error {
	*s = nil
	if len(text) == 0 {
		return nil
	}
	last := int64(-1)
	for part := range strings.SplitSeq(string(text), ",") {
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		var sp Span
		var err, err2 error
		sp.First, err = strconv.ParseInt(from, 10, 64)
		sp.Last, err2 = strconv.ParseInt(to, 10, 64)
		if err != nil || err2 != nil || sp.First <= last+1 && last >= 0 || sp.First < 1 || sp.Last < sp.First {
			return fmt.Errorf("spans %q: %q is not a range of sequence numbers above those before it, such as 5-9",
				text, part)
		}
		last = sp.Last
		*s = append(*s, sp)
	}
	return nil
}
