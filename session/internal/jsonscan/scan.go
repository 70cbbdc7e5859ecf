// SPDX-License-Identifier: Apache-2.0

// Package jsonscan reads JSON values one by one. It is for decoders of structs whose JSON is nearly
// always as encoding/json writes it: what is unusual it leaves to encoding/json.
package jsonscan

import (
	"encoding/binary"
	"math/bits"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Scanner is at one place in a JSON text. Its methods read a value, and return false for one that is
// not as they expect it, or that encoding/json may read in another way: then the scanner is of no
// further use.
type Scanner struct {
	Strings Strings // nil: each string is a copy
	b       []byte
	i       int
	depth   int
	buf     []byte // of a string with escapes
}

// Strings makes the strings that a scanner returns. Name is for those of which there are few.
type Strings interface {
	Text([]byte) string
	Name([]byte) string
}

// New returns a scanner at the beginning of a text. Each string is a copy.
func New(text []byte) Scanner { return Scanner{b: text} }

// maxDepth bounds how deep values are nested. exact is where float64 begins to leave out integers.
const (
	maxDepth = 100
	exact    = 1 << 53
)

// Reset begins another text, with the room that the scanner has.
func (p *Scanner) Reset(text []byte) { p.b, p.i, p.depth = text, 0, 0 }

func (p *Scanner) space() {
	if p.i == len(p.b) || p.b[p.i] > ' ' { // as it mostly is
		return
	}
	for p.i < len(p.b) && (p.b[p.i] == ' ' || p.b[p.i] == '\n' || p.b[p.i] == '\t' || p.b[p.i] == '\r') {
		p.i++
	}
}

// is reads a character, if it comes next.
func (p *Scanner) is(c byte) bool {
	p.space()
	return p.here(c, c)
}

// End reports whether nothing more comes.
func (p *Scanner) End() bool {
	p.space()
	return p.i == len(p.b)
}

// Object reads an object: value reads each value. The key is valid until it does.
func (p *Scanner) Object(value func(key []byte) bool) bool {
	if !p.is('{') || p.depth == maxDepth {
		return false
	}
	if p.is('}') {
		return true
	}
	p.depth++
	for {
		p.space()
		key, ok := p.Bytes()
		if !ok || !p.is(':') || !value(key) {
			return false
		}
		switch {
		case p.is(','):
		case p.is('}'):
			p.depth--
			return true
		default:
			return false
		}
	}
}

// Array reads an array: element reads each element.
func (p *Scanner) Array(element func() bool) bool {
	if !p.is('[') || p.depth == maxDepth {
		return false
	}
	if p.is(']') {
		return true
	}
	p.depth++
	for {
		if !element() {
			return false
		}
		switch {
		case p.is(','):
		case p.is(']'):
			p.depth--
			return true
		default:
			return false
		}
	}
}

// plain returns the index, from i on, of the first byte of a string that is not itself: its end, a
// backslash, a control character, or a byte of a rune that is not ASCII. It looks at eight at a time.
func plain(b []byte, i int) int {
	const each, high = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^'"'*each, x^'\\'*each
		// A byte's high bit is set where it is below a space, 0, 0, or has it. A carry makes
		// wrong ones only behind a right one.
		if found := ((x-' '*each)&^x | (quote-each)&^quote | (slash-each)&^slash | x) & high; found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for i < len(b) && b[i] >= ' ' && b[i] != '"' && b[i] != '\\' && b[i] < utf8.RuneSelf {
		i++
	}
	return i
}

// Bytes reads a string. The result is valid until the next one is read.
func (p *Scanner) Bytes() ([]byte, bool) {
	if !p.is('"') {
		return nil, false
	}
	from, ascii := p.i, true
	for i := plain(p.b, from); i < len(p.b); i = plain(p.b, i+1) {
		switch c := p.b[i]; {
		case c == '"':
			s := p.b[from:i]
			p.i = i + 1
			return s, ascii || utf8.Valid(s)
		case c == '\\':
			p.i = i
			return p.escaped(from)
		case c < ' ':
			return nil, false
		}
		ascii = false
	}
	return nil, false
}

// escaped is Bytes for one in which an escape comes next.
func (p *Scanner) escaped(from int) ([]byte, bool) {
	s := append(p.buf[:0], p.b[from:p.i]...)
	for p.i < len(p.b) {
		c := p.b[p.i]
		p.i++
		switch {
		case c == '"':
			p.buf = s
			return s, utf8.Valid(s)
		case c < ' ':
			return nil, false
		case c == '\\':
			var ok bool
			if s, ok = p.escape(s); !ok {
				return nil, false
			}
		default:
			end := plain(p.b, p.i)
			s = append(s, p.b[p.i-1:end]...)
			p.i = end
		}
	}
	return nil, false
}

// escape appends what is written behind a backslash.
func (p *Scanner) escape(s []byte) ([]byte, bool) {
	if p.i == len(p.b) {
		return s, false
	}
	c := p.b[p.i]
	p.i++
	switch c {
	case '"', '\\', '/':
		return append(s, c), true
	case 'b':
		return append(s, '\b'), true
	case 'f':
		return append(s, '\f'), true
	case 'n':
		return append(s, '\n'), true
	case 'r':
		return append(s, '\r'), true
	case 't':
		return append(s, '\t'), true
	case 'u':
		r, ok := p.unit()
		if utf16.IsSurrogate(r) { // the other half has to follow
			if ok = ok && p.i+1 < len(p.b) && p.b[p.i] == '\\' && p.b[p.i+1] == 'u'; !ok {
				return s, false
			}
			p.i += 2
			var low rune
			low, ok = p.unit()
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				return s, false
			}
		}
		return utf8.AppendRune(s, r), ok
	}
	return s, false
}

// unit reads the four digits of \uXXXX.
func (p *Scanner) unit() (r rune, ok bool) {
	if p.i+4 > len(p.b) {
		return 0, false
	}
	for _, c := range p.b[p.i : p.i+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|' ' >= 'a' && c|' ' <= 'f':
			r = r<<4 | rune(c|' '-'a'+10)
		default:
			return 0, false
		}
	}
	p.i += 4
	return r, true
}

// Into reads a string into a field.
func (p *Scanner) Into(to *string) bool {
	s, ok := p.Bytes()
	if ok {
		*to = p.text(s)
	}
	return ok
}

// NameInto is Into for a string of which there are few.
func (p *Scanner) NameInto(to *string) bool {
	s, ok := p.Bytes()
	if ok {
		*to = p.name(s)
	}
	return ok
}

func (p *Scanner) text(b []byte) string {
	if p.Strings == nil {
		return string(b)
	}
	return p.Strings.Text(b)
}

func (p *Scanner) name(b []byte) string {
	if p.Strings == nil {
		return string(b)
	}
	return p.Strings.Name(b)
}

// Quoted is a string without escapes, as it is written.
func (p *Scanner) Quoted() []byte {
	p.space()
	from := p.i
	if s, ok := p.Bytes(); !ok || len(s)+2 != p.i-from {
		return nil
	}
	return p.b[from:p.i]
}

// word reads a word, if it comes next.
func (p *Scanner) word(w string) bool {
	p.space()
	if len(p.b)-p.i < len(w) || string(p.b[p.i:p.i+len(w)]) != w {
		return false
	}
	p.i += len(w)
	return true
}

// Bool reads a boolean.
func (p *Scanner) Bool(to *bool) bool {
	*to = p.word("true")
	return *to || p.word("false")
}

// Float reads a number.
func (p *Scanner) Float(to *float64) bool {
	text, _ := p.number()
	f, err := strconv.ParseFloat(string(text), 64)
	*to = f
	return text != nil && err == nil
}

// number is a number as it is written; whole says that it has digits alone.
func (p *Scanner) number() (text []byte, whole bool) {
	p.space()
	from := p.i
	p.here('-', '-')
	switch {
	case p.here('0', '0'):
	case !p.digits():
		return nil, false
	}
	whole = true
	if p.here('.', '.') {
		if whole = false; !p.digits() {
			return nil, false
		}
	}
	if p.here('e', 'E') {
		p.here('+', '-')
		if whole = false; !p.digits() {
			return nil, false
		}
	}
	return p.b[from:p.i], whole
}

// digits reads digits, if one comes next.
func (p *Scanner) digits() bool {
	i := p.i
	for i < len(p.b) && p.b[i]-'0' <= 9 {
		i++
	}
	n := i - p.i
	p.i = i
	return n > 0
}

// here reads one of two characters, if it comes next without a space.
func (p *Scanner) here(a, b byte) bool {
	if p.i == len(p.b) || p.b[p.i] != a && p.b[p.i] != b {
		return false
	}
	p.i++
	return true
}

// Int64 reads an integer that has few enough digits.
func (p *Scanner) Int64(to *int64) bool {
	text, whole := p.number()
	if !whole || len(text) > 18 {
		return false
	}
	*to = parseInt(text)
	return true
}

// Int is Int64 for an int.
func (p *Scanner) Int(to *int) bool {
	var n int64
	ok := p.Int64(&n)
	*to = int(n)
	return ok && int64(*to) == n
}

// parseInt is the value of up to 18 digits.
func parseInt(text []byte) (n int64) {
	minus := text[0] == '-'
	if minus {
		text = text[1:]
	}
	for _, c := range text {
		n = 10*n + int64(c-'0')
	}
	if minus {
		return -n
	}
	return n
}

// Values reads an object of any values. The keys are names.
func (p *Scanner) Values(to *map[string]any) bool {
	m := make(map[string]any)
	*to = m
	return p.Object(func(key []byte) bool {
		name := p.name(key)
		v, ok := p.value()
		m[name] = v
		return ok
	})
}

// value reads any value, as plain values are. It returns false for a number that may be an integer
// with more digits than a float64 has.
func (p *Scanner) value() (any, bool) {
	p.space()
	if p.i == len(p.b) {
		return nil, false
	}
	switch c := p.b[p.i]; c {
	case '"':
		s, ok := p.Bytes()
		if !ok {
			return nil, false
		}
		return p.text(s), true
	case '{':
		var m map[string]any
		ok := p.Values(&m)
		return m, ok
	case '[':
		all := []any{}
		ok := p.Array(func() bool {
			v, ok := p.value()
			all = append(all, v)
			return ok
		})
		return all, ok
	case 't':
		return true, p.word("true")
	case 'f':
		return false, p.word("false")
	case 'n':
		return nil, p.word("null")
	}
	text, whole := p.number()
	switch {
	case text == nil:
		return nil, false
	case whole && len(text) <= 15 && text[0] != '-':
		return float64(parseInt(text)), true
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil && f > -exact && f < exact
}

// Place is where the scanner is, for Back.
func (p *Scanner) Place() Place { return Place{p.i, p.depth} }

// Place is a place in a text.
type Place struct{ i, depth int }

// Back goes back to a place. After that a method that has returned false there is as if it had not
// been called.
func (p *Scanner) Back(to Place) { p.i, p.depth = to.i, to.depth }

// Once reports whether a field, a small number of the caller's, comes for the first time; seen begins
// with 0. What encoding/json makes of a second one depends on its type.
func Once(seen *uint64, field uint) bool {
	was := *seen
	*seen |= 1 << field
	return was != *seen
}

// Raw is a value as it is written; nil if it is no JSON.
func (p *Scanner) Raw() []byte {
	p.space()
	from := p.i
	if !p.skip() {
		return nil
	}
	return p.b[from:p.i:p.i]
}

// skip reads a value, and looks whether it is JSON.
func (p *Scanner) skip() bool {
	p.space()
	if p.i == len(p.b) {
		return false
	}
	switch p.b[p.i] {
	case '"':
		_, ok := p.Bytes()
		return ok
	case '{':
		return p.Object(func([]byte) bool { return p.skip() })
	case '[':
		return p.Array(p.skip)
	case 't':
		return p.word("true")
	case 'f':
		return p.word("false")
	case 'n':
		return p.word("null")
	}
	text, _ := p.number()
	return text != nil
}
