// SPDX-License-Identifier: Apache-2.0

package template

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Parse reads a template. Its error is [Errors], with every mistake: a section that is not closed,
// a closing tag without a section, an incomplete tag, a partial, a change of delimiters.
func Parse(text string, opts Options) (*Template, error) {
	p := &parser{src: text, opts: opts, line: 1, column: 1, open: make([]section, 1, 4)}
	p.parse()
	if len(p.errs) > 0 {
		return nil, p.errs
	}
	return &Template{nodes: p.open[0].nodes, refs: p.refs}, nil
}

// parser walks once over src, from left to right.
type parser struct {
	src  string
	opts Options

	text  int       // where the text starts that is not yet in a node
	open  []section // the sections around the current place; first, the template
	items int       // how many of them may push an item
	refs  []Ref
	errs  Errors

	tooDeep bool // a section was left out for it

	seen, line, column int // line and column of the offset seen
}

// maxDepth limits the nesting of sections, because Parse reads the content of a section again for
// each enclosing one.
const maxDepth = 64

// section is a section that is being parsed.
type section struct {
	kind         kind
	key          key
	ref          int // its index in refs; -1 if it has none
	nodes        []node
	line, column int
}

func (p *parser) parse() {
	for at := 0; ; {
		i := strings.IndexByte(p.src[at:], '{')
		if i < 0 {
			break
		}
		at = p.tag(at + i)
	}
	p.flush(len(p.src))
	for len(p.open) > 1 {
		p.unclosed("")
	}
	slices.SortStableFunc(p.errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// tag reads the tag that begins with the brace at i and returns where to continue. It skips a brace
// that begins no tag, which stays in the text.
func (p *parser) tag(i int) int {
	rest := p.src[i:]
	if !strings.HasPrefix(rest, "{{") {
		return p.single(i)
	}
	if strings.HasPrefix(rest, "{{{") {
		if end, ok := p.value(i, 3, "}}}"); ok {
			return end
		}
		return i + 1
	}
	inside := 2 + space(rest[2:])
	if inside == len(rest) {
		return i + 1
	}
	switch c := rest[inside]; c {
	case '&':
		if end, ok := p.value(i, inside+1, "}}"); ok {
			return end
		}
	case '#', '^', '/':
		return p.section(i, inside, c)
	case '!':
		return p.comment(i)
	case '>', '=', '<', '$':
		return p.unsupported(i, inside, c)
	default:
		if end, ok := p.value(i, 2, "}}"); ok {
			return end
		}
	}
	return i + 1
}

// single reads {key} and {key?}.
func (p *parser) single(i int) int {
	if p.opts.Dialect != Canonical {
		return i + 1
	}
	n := scanADK(p.src[i+1:])
	if n == 0 {
		return i + 1
	}
	name, end := p.src[i+1:i+1+n], i+1+n
	optional := strings.HasPrefix(p.src[end:], "?")
	if optional {
		end++
	}
	if !strings.HasPrefix(p.src[end:], "}") {
		return i + 1
	}
	return p.add(i, end+1, newKey(name, optional), true)
}

// value reads a tag for a value. Its name starts after skip bytes and ends with
// closing. ok is false where there is no name: that is text, not a mistake.
func (p *parser) value(i, skip int, closing string) (end int, ok bool) {
	at := i + skip
	at += space(p.src[at:])
	n := scanKey(p.src[at:])
	if n == 0 || p.src[at] == '.' && n > 1 && p.items == 0 {
		return 0, false // "{{ .Values.x }}" outside a section is somebody else's template
	}
	name := p.src[at : at+n]
	at += n
	optional := strings.HasPrefix(p.src[at:], "?")
	if optional {
		at++
	}
	at += space(p.src[at:])
	switch {
	case strings.HasPrefix(p.src[at:], closing):
		return p.add(i, at+len(closing), newKey(name, optional), false), true
	case at == len(p.src) || p.src[at] == '}':
		p.fail(i, "%s%s is not closed by %s", p.src[i:i+skip], name, closing)
		return at, true
	}
	return 0, false
}

// add appends a value between the offsets i and end, and returns end.
func (p *parser) add(i, end int, k key, single bool) int {
	p.flush(i)
	p.text = end
	p.ref(i, k, Ref{Optional: k.optional, Single: single, To: end})
	p.append(node{kind: kindValue, key: k})
	return end
}

// section reads {{#key}}, {{^key}} or {{/key}}; inside is the position of its sign.
func (p *parser) section(i, inside int, sign byte) int {
	at := i + inside + 1
	at += space(p.src[at:])
	n := scanKey(p.src[at:])
	name := p.src[at : at+n]
	at += n
	at += space(p.src[at:])
	if n == 0 || !strings.HasPrefix(p.src[at:], "}}") {
		p.fail(i, "{{%c needs the name of a key and then }}", sign)
		return i + 2
	}
	from, to := p.standalone(i, at+2)
	p.flush(from)
	p.text = to
	k := newKey(name, false)
	switch sign {
	case '/':
		p.close(i, name)
	case '#':
		p.push(i, at+2, kindSection, k)
		p.items++
	default:
		p.push(i, at+2, kindInverted, k)
	}
	return to
}

func (p *parser) push(i, end int, kind kind, k key) {
	if len(p.open) > maxDepth {
		if !p.tooDeep {
			p.fail(i, "sections are nested more than %d deep", maxDepth)
		}
		p.tooDeep = true
		return
	}
	ref := p.ref(i, k, Ref{Section: true, To: end})
	p.open = append(p.open, section{kind: kind, key: k, ref: ref, line: p.line, column: p.column})
}

// close ends the innermost section of that name, and reports sections inside it that are still
// open.
func (p *parser) close(i int, name string) {
	p.place(i)
	known := false
	for _, s := range p.open[1:] {
		known = known || s.key.name == name
	}
	if !known && p.tooDeep {
		return // it may close one that was left out
	}
	if !known {
		p.fail(i, "{{/%s}} closes a section that is not open", name)
		return
	}
	for p.open[len(p.open)-1].key.name != name {
		p.unclosed(fmt.Sprintf(" before {{/%s}} at %d:%d", name, p.line, p.column))
	}
	if ref := p.open[len(p.open)-1].ref; ref >= 0 {
		p.refs[ref].Close = i
	}
	p.pop()
}

// unclosed reports the innermost section and gives up on it.
func (p *parser) unclosed(where string) {
	s := p.open[len(p.open)-1]
	sign := '#'
	if s.kind == kindInverted {
		sign = '^'
	}
	p.errs = append(p.errs, &Error{s.line, s.column, fmt.Sprintf("section {{%c%s}} is not closed%s", sign, s.key.name,
		where)})
	p.pop()
}

func (p *parser) pop() {
	s := p.open[len(p.open)-1]
	p.open = p.open[:len(p.open)-1]
	if s.kind == kindSection {
		p.items--
	}
	p.append(node{kind: s.kind, key: s.key, body: s.nodes})
}

// comment drops {{! words }}.
func (p *parser) comment(i int) int {
	n := strings.Index(p.src[i:], "}}")
	if n < 0 {
		p.fail(i, "comment is not closed by }}")
		return len(p.src)
	}
	from, to := p.standalone(i, i+n+2)
	p.flush(from)
	p.text = to
	return to
}

// unsupported refuses Mustache's tags that this package does not support, and accepts text that
// only looks like such a tag.
func (p *parser) unsupported(i, inside int, sign byte) int {
	at := i + inside + 1
	if sign == '=' {
		if line, _, _ := strings.Cut(p.src[at:], "\n"); strings.Contains(line, "=}}") {
			p.fail(i, "the delimiters {{ }} cannot be changed")
			return at
		}
		return i + 1
	}
	at += space(p.src[at:])
	n := scanKey(p.src[at:])
	end := at + n + space(p.src[at+n:])
	if n == 0 || !strings.HasPrefix(p.src[end:], "}}") {
		return i + 1
	}
	p.fail(i, "partials and blocks do not exist: {{%c%s}}", sign, p.src[at:at+n])
	return end + 2
}

// standalone widens the tag between start and end to its whole line, if the
// line holds nothing else but white space.
func (p *parser) standalone(start, end int) (from, to int) {
	from = len(strings.TrimRight(p.src[:start], " \t"))
	if from > 0 && p.src[from-1] != '\n' {
		return start, end
	}
	to = end
	for to < len(p.src) && (p.src[to] == ' ' || p.src[to] == '\t') {
		to++
	}
	switch rest := p.src[to:]; {
	case rest == "":
		return from, to
	case rest[0] == '\n':
		return from, to + 1
	case strings.HasPrefix(rest, "\r\n"):
		return from, to + 2
	}
	return start, end
}

// flush moves the text up to end into a node.
func (p *parser) flush(end int) {
	if p.text < end {
		p.append(node{kind: kindText, text: p.src[p.text:end]})
	}
	p.text = end
}

func (p *parser) append(n node) {
	s := &p.open[len(p.open)-1]
	s.nodes = append(s.nodes, n)
}

// ref notes that the tag at i asks for k, leaves the place at i, and returns the index in refs.
func (p *parser) ref(i int, k key, r Ref) int {
	p.place(i)
	inner := p.items > 0
	if k.item && inner {
		return -1
	}
	r.Name, r.Line, r.Column, r.From = k.name, p.line, p.column, i
	r.Inner = inner && !k.scoped()
	p.refs = append(p.refs, r)
	return len(p.refs) - 1
}

func (p *parser) fail(i int, format string, args ...any) {
	p.place(i)
	p.errs = append(p.errs, &Error{p.line, p.column, fmt.Sprintf(format, args...)})
}

// place moves line and column on to the offset i; it only goes forward.
func (p *parser) place(i int) {
	passed := p.src[p.seen:i]
	p.seen = i
	if n := strings.Count(passed, "\n"); n > 0 {
		p.line += n
		p.column = 1
		passed = passed[strings.LastIndexByte(passed, '\n')+1:]
	}
	p.column += utf8.RuneCountInString(passed)
}

// space returns the length of the white space that s begins with.
func space(s string) int {
	return len(s) - len(strings.TrimLeft(s, " \t\r\n"))
}
