// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// canonical appends to dst the JSON that [json.Marshal] makes of what src, JSON without
// white space as it makes it too, is read as: the fields of objects by their names, the
// last of those with one name, and texts written as it writes them. Numbers stay as
// they are. It is what reread does, in a fraction of the time.
func canonical(dst, src []byte) ([]byte, error) {
	c := canon{src: src}
	out, err := c.value(dst)
	if err != nil || c.at != len(src) {
		return reread(dst, src)
	}
	return out, nil
}

// reread makes values of src, and writes them.
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

// maxNested is how deep canonical goes: each object looks once more at all in it.
const maxNested = 32

// errNotPlain is for JSON that this does not know how to read.
var errNotPlain = jsonError("JSON that json.Marshal does not write")

type jsonError string

func (e jsonError) Error() string { return string(e) }

type canon struct {
	src   []byte
	at    int
	depth int
}

func (c *canon) next() byte {
	if c.at >= len(c.src) {
		return 0
	}
	return c.src[c.at]
}

func (c *canon) value(dst []byte) ([]byte, error) {
	if c.depth++; c.depth > maxNested {
		return dst, errNotPlain
	}
	defer func() { c.depth-- }()
	switch c.next() {
	case '{':
		return c.object(dst)
	case '[':
		return c.list(dst)
	case '"':
		text, err := c.text()
		return append(dst, text...), err
	}
	n := bytes.IndexAny(c.src[c.at:], ",]}") // a number, true, false or null
	if n < 0 {
		n = len(c.src) - c.at
	}
	if n == 0 || c.next() <= ' ' {
		return dst, errNotPlain
	}
	word := c.src[c.at : c.at+n]
	c.at += n
	return append(dst, word...), nil
}

func (c *canon) list(dst []byte) (_ []byte, err error) {
	c.at++
	dst = append(dst, '[')
	for first := true; c.next() != ']'; first = false {
		if !first {
			if c.next() != ',' {
				return dst, errNotPlain
			}
			c.at++
			dst = append(dst, ',')
		}
		if dst, err = c.value(dst); err != nil {
			return dst, err
		}
	}
	c.at++
	return append(dst, ']'), nil
}

// field is one of an object: its name, and its value where it stands.
type field struct {
	name     string // as it is read
	text     []byte // as it is written
	from, to int
}

func (c *canon) object(dst []byte) (_ []byte, err error) {
	c.at++
	var few [16]field
	fields := few[:0]
	for c.next() != '}' {
		if len(fields) > 0 {
			if c.next() != ',' {
				return dst, errNotPlain
			}
			c.at++
		}
		var f field
		if f.text, err = c.text(); err != nil {
			return dst, err
		}
		if f.name, err = nameIn(f.text); err != nil {
			return dst, err
		}
		if c.next() != ':' {
			return dst, errNotPlain
		}
		c.at++
		f.from = c.at
		if err := c.skip(); err != nil {
			return dst, err
		}
		f.to = c.at
		fields = append(fields, f)
	}
	c.at++
	slices.SortStableFunc(fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	dst = append(dst, '{')
	after := c.at
	first := true
	for i, f := range fields {
		if i+1 < len(fields) && fields[i+1].name == f.name {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(append(dst, f.text...), ':')
		c.at = f.from
		if dst, err = c.value(dst); err != nil {
			return dst, err
		}
		if c.at != f.to {
			return dst, errNotPlain
		}
	}
	c.at = after
	return append(dst, '}'), nil
}

// skip goes behind a value.
func (c *canon) skip() error {
	for depth := 0; ; {
		switch b := c.next(); b {
		case 0:
			return errNotPlain
		case '"':
			end := textEnd(c.src, c.at)
			if end < 0 {
				return errNotPlain
			}
			c.at = end
		case '{', '[':
			depth++
			c.at++
		case '}', ']':
			depth--
			c.at++
		default:
			c.at++
			if depth > 0 {
				continue
			}
			for b := c.next(); b != 0 && b != ',' && b != ']' && b != '}'; b = c.next() {
				c.at++
			}
			return nil
		}
		if depth == 0 {
			return nil
		}
	}
}

// textEnd is behind the text that begins at a place; below 0 if it has no end.
func textEnd(src []byte, at int) int {
	for from := at + 1; ; {
		n := bytes.IndexByte(src[from:], '"')
		if n < 0 {
			return -1
		}
		quote := from + n
		slashes := 0
		for quote-slashes-1 > at && src[quote-slashes-1] == '\\' {
			slashes++
		}
		if from = quote + 1; slashes%2 == 0 { // else it is one of the text
			return from
		}
	}
}

// text is the next text as json.Marshal writes it.
func (c *canon) text() ([]byte, error) {
	if c.next() != '"' {
		return nil, errNotPlain
	}
	end := textEnd(c.src, c.at)
	if end < 0 {
		return nil, errNotPlain
	}
	text := c.src[c.at:end]
	c.at = end
	if plainly(text) {
		return text, nil
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

// nameIn is a text as it is read.
func nameIn(text []byte) (string, error) {
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text[1 : len(text)-1]), nil
	}
	var s string
	err := json.Unmarshal(text, &s)
	return s, err
}

// plainly reports whether a text is as json.Marshal writes it: it has no escape but
// those that it writes, and all of it is UTF-8.
func plainly(text []byte) bool {
	if !utf8.Valid(text) {
		return false
	}
	for rest := text; ; {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 {
			return true
		}
		rest = rest[i+1:]
		switch {
		case len(rest) > 0 && strings.IndexByte(`"\bfnrt`, rest[0]) >= 0:
			rest = rest[1:]
		case len(rest) > 5 && byNumber[string(rest[:5])]:
			rest = rest[5:]
		default:
			return false
		}
	}
}

// byNumber are the characters that json.Marshal writes by their numbers.
var byNumber = func() map[string]bool {
	m := make(map[string]bool)
	for r := range rune(0x20) {
		m[escaped(r)] = true
	}
	for _, r := range "<>&\u2028\u2029" {
		m[escaped(r)] = true
	}
	delete(m, "")
	return m
}()

// escaped is what json.Marshal writes for a character, without the backslash; empty if
// that is no number.
func escaped(r rune) string {
	text, _ := json.Marshal(string(r))
	if s, ok := strings.CutPrefix(strings.Trim(string(text), `"`), `\u`); ok {
		return "u" + s
	}
	return ""
}
