// SPDX-License-Identifier: Apache-2.0

// Package canonical writes JSON in its one form that seals are made over: the JSON of
// [json.Marshal] with the fields of all objects sorted by their names. Of fields that have
// one name it keeps the last. Numbers keep their digits.
//
//	text, err := canonical.Append(nil, []byte(`{"b":1,"a":"<"}`)) // {"a":"\u003c","b":1}
package canonical

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"unicode/utf8"
)

// Append appends the canonical form of src, which is one JSON value. It fails for what is
// no JSON.
func Append(dst, src []byte) ([]byte, error) {
	r := reader{src: src}
	out, err := r.value(dst)
	if err == nil && r.at == len(src) {
		return out, nil
	}
	compact, err := json.Marshal(json.RawMessage(src))
	if err != nil {
		return dst, err
	}
	return reread(dst, compact)
}

// AppendJSON appends the canonical form of a value's JSON.
func AppendJSON(dst []byte, v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return dst, err
	}
	return Append(dst, text)
}

// reread decodes src and encodes the values. It is the slow way, for what the reader does
// not read, such as white space.
func reread(dst, src []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	var plain any
	if err := dec.Decode(&plain); err != nil {
		return dst, err
	}
	text, err := json.Marshal(plain)
	return append(dst, text...), err
}

// maxNested is how deep the reader and the writer go.
const maxNested = 500

// errUnread says that the reader leaves the JSON to reread.
var errUnread = errors.New("JSON that the reader does not read")

// reader copies JSON without white space, and sorts the fields of each object that it has
// copied.
type reader struct {
	src   []byte
	at    int
	depth int
}

// next is the byte at the reader's place; 0 at the end.
func (r *reader) next() byte {
	if r.at >= len(r.src) {
		return 0
	}
	return r.src[r.at]
}

func (r *reader) value(dst []byte) ([]byte, error) {
	if r.depth >= maxNested {
		return dst, errUnread
	}
	switch r.next() {
	case '{':
		r.depth++
		dst, err := r.object(dst)
		r.depth--
		return dst, err
	case '[':
		r.depth++
		dst, err := r.list(dst)
		r.depth--
		return dst, err
	case '"':
		t, err := r.text()
		if err != nil {
			return dst, err
		}
		return t.append(dst), nil
	}
	from := r.at
	if !r.word("true") && !r.word("false") && !r.word("null") && !r.number() {
		return dst, errUnread
	}
	return append(dst, r.src[from:r.at]...), nil
}

func (r *reader) word(w string) bool {
	if len(r.src)-r.at < len(w) || string(r.src[r.at:r.at+len(w)]) != w {
		return false
	}
	r.at += len(w)
	return true
}

// number goes behind a number, as the grammar of JSON has it.
func (r *reader) number() bool {
	if r.next() == '-' {
		r.at++
	}
	if r.next() == '0' {
		r.at++
	} else if !r.digits() {
		return false
	}
	if r.next() == '.' {
		if r.at++; !r.digits() {
			return false
		}
	}
	if b := r.next(); b == 'e' || b == 'E' {
		r.at++
		if b := r.next(); b == '+' || b == '-' {
			r.at++
		}
		return r.digits()
	}
	return true
}

func (r *reader) digits() bool {
	from := r.at
	for b := r.next(); '0' <= b && b <= '9'; b = r.next() {
		r.at++
	}
	return r.at > from
}

func (r *reader) list(dst []byte) (_ []byte, err error) {
	r.at++
	dst = append(dst, '[')
	if r.next() == ']' {
		r.at++
		return append(dst, ']'), nil
	}
	for {
		if dst, err = r.value(dst); err != nil {
			return dst, err
		}
		b := r.next()
		r.at++
		switch dst = append(dst, b); b {
		case ']':
			return dst, nil
		case ',':
		default:
			return dst, errUnread
		}
	}
}

// field is one of an object: its name, and where it was written.
type field struct {
	name     []byte
	from, to int
}

func (r *reader) object(dst []byte) (_ []byte, err error) {
	r.at++
	dst = append(dst, '{')
	if r.next() == '}' {
		r.at++
		return append(dst, '}'), nil
	}
	start := len(dst)
	var few [16]field
	fields, rising := few[:0], true
	for {
		t, err := r.text()
		if err != nil {
			return dst, err
		}
		f := field{name: t.read(), from: len(dst)}
		if r.next() != ':' {
			return dst, errUnread
		}
		r.at++
		dst = append(t.append(dst), ':')
		if dst, err = r.value(dst); err != nil {
			return dst, err
		}
		f.to = len(dst)
		rising = rising && (len(fields) == 0 || bytes.Compare(fields[len(fields)-1].name, f.name) < 0)
		fields = append(fields, f)
		b := r.next()
		r.at++
		if b == '}' {
			break
		}
		if b != ',' {
			return dst, errUnread
		}
		dst = append(dst, ',')
	}
	if !rising {
		dst = sorted(dst, start, fields)
	}
	return append(dst, '}'), nil
}

// sorted brings the fields that were written from start on into order: it writes them once
// more, behind what is there, and moves them.
func sorted(dst []byte, start int, fields []field) []byte {
	sortFields(fields)
	end := len(dst)
	for i, f := range fields {
		if i+1 < len(fields) && bytes.Equal(fields[i+1].name, f.name) {
			continue
		}
		if len(dst) > end {
			dst = append(dst, ',')
		}
		dst = append(dst, dst[f.from:f.to]...)
	}
	return dst[:start+copy(dst[start:], dst[end:])]
}

// sortFields sorts fields by name; those of one name stay in their order. Most objects have a few
// fields, in which a place is found sooner than package slices has begun.
func sortFields(fields []field) {
	if len(fields) > 16 {
		slices.SortStableFunc(fields, func(a, b field) int { return bytes.Compare(a.name, b.name) })
		return
	}
	for i := 1; i < len(fields); i++ {
		at := i
		for at > 0 && string(fields[i].name) < string(fields[at-1].name) {
			at--
		}
		if at < i {
			f := fields[i]
			copy(fields[at+1:i+1], fields[at:i])
			fields[at] = f
		}
	}
}

// text is one as it stands in the JSON, with its quotes.
type text struct {
	json    []byte
	plain   bool // json.Marshal writes it so
	escaped bool // it has a backslash
}

// append appends the text as json.Marshal writes it.
func (t text) append(dst []byte) []byte {
	if t.plain {
		return append(dst, t.json...)
	}
	return AppendString(dst, string(t.read()))
}

// read is the text that it stands for.
func (t text) read() []byte {
	if !t.escaped && t.plain {
		return t.json[1 : len(t.json)-1]
	}
	var s string
	_ = json.Unmarshal(t.json, &s) // the reader has checked it
	return []byte(s)
}

// text goes behind a text.
func (r *reader) text() (text, error) {
	if r.next() != '"' {
		return text{}, errUnread
	}
	t := text{plain: true}
	src := r.src
	for i := r.at + 1; i < len(src); {
		b := src[i]
		switch {
		case itself[b]:
			i++
		case b == '"':
			t.json = src[r.at : i+1]
			r.at = i + 1
			return t, nil
		case b == '\\':
			n, plain := escape(src[i+1:])
			if n == 0 {
				return t, errUnread
			}
			t.escaped, t.plain = true, t.plain && plain
			i += 1 + n
		case b < ' ':
			return t, errUnread
		case b < utf8.RuneSelf: // one that json.Marshal escapes
			t.plain = false
			i++
		default:
			c, n := utf8.DecodeRune(src[i:])
			t.plain = t.plain && (c != utf8.RuneError || n > 1) && c != '\u2028' && c != '\u2029'
			i += n
		}
	}
	return t, errUnread
}

// escape is how long the escape behind a backslash is, 0 if it is none, and whether
// json.Marshal writes it.
func escape(src []byte) (n int, plain bool) {
	if len(src) == 0 {
		return 0, false
	}
	switch src[0] {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		return 1, true
	case '/':
		return 1, false
	case 'u':
		if len(src) < 5 {
			return 0, false
		}
	default:
		return 0, false
	}
	c, plain := rune(0), true
	for _, b := range src[1:5] {
		switch {
		case '0' <= b && b <= '9':
			c = c<<4 | rune(b-'0')
		case 'a' <= b && b <= 'f':
			c = c<<4 | rune(b-'a'+10)
		case 'A' <= b && b <= 'F':
			c, plain = c<<4|rune(b-'A'+10), false
		default:
			return 0, false
		}
	}
	switch c {
	case '\b', '\f', '\n', '\r', '\t':
		plain = false
	case '<', '>', '&', '\u2028', '\u2029':
	default:
		plain = plain && c < ' '
	}
	return 5, plain
}
