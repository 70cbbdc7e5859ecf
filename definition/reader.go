// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/definition/internal/meant"
	"github.com/refrain-dev/refrain/definition/internal/rename"
	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// reader reads the values of one file.
type reader struct {
	*loader
	src *source.Source
	def *Definition
}

// report reports an error in a value of the file.
func (r *reader) report(n *source.Node, code, format string, args ...any) *Problem {
	return r.loader.report(r.src.Of(n), code, format, args...)
}

// pair is one entry of a map.
type pair struct {
	key   string
	at    *source.Node // the key
	value *source.Node
}

// pairs lists the entries of a map; those that "<<" merges in come last. Of keys given twice the first counts.
func (r *reader) pairs(n *source.Node, what string) (ps []pair, ok bool) {
	n = source.Deref(n)
	if n.Kind != source.Map {
		r.wrong(n, what, "a map")
		return nil, false
	}
	seen := make(map[string]*source.Node)
	var merged []*source.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := source.Deref(n.Content[i]), source.Deref(n.Content[i+1])
		switch {
		case k.ShortTag() == "!!merge":
			merged = append(merged, v)
			continue
		case k.Kind != source.Scalar || k.ShortTag() != "!!str":
			r.report(k, CodeValue, "a key of %s must be text, got %s", what, source.Describe(k)).Hint = source.Unquoted(k)
			continue
		}
		if first, twice := seen[k.Value]; twice {
			r.report(k, CodeDuplicate, "%q is given twice, first in line %d", k.Value, first.Line)
			continue
		}
		seen[k.Value] = k
		ps = append(ps, pair{k.Value, k, v})
	}
	for _, m := range merged {
		for _, p := range r.merge(m) {
			if _, own := seen[p.key]; !own {
				seen[p.key] = p.at
				ps = append(ps, p)
			}
		}
	}
	return ps, true
}

// merge lists the entries of the map, or the list of maps, to which "<<" refers.
func (r *reader) merge(n *source.Node) []pair {
	if n.Kind != source.List {
		ps, _ := r.pairs(n, "<<")
		return ps
	}
	var all []pair
	for _, c := range n.Content {
		ps, _ := r.pairs(c, "<<")
		all = append(all, ps...)
	}
	return all
}

// items lists the elements of a list.
func (r *reader) items(n *source.Node, what string) ([]*source.Node, bool) {
	n = source.Deref(n)
	if n.Kind != source.List {
		r.wrong(n, what, "a list")
		r.hint(listHint(n, what))
		return nil, false
	}
	out := make([]*source.Node, len(n.Content))
	for i, c := range n.Content {
		out[i] = source.Deref(c)
	}
	return out, true
}

// listHint shows how to write the value as a list.
func listHint(n *source.Node, what string) string {
	switch {
	case n.Kind == source.Map && what == "sub_agents":
		return "each agent begins with - name:"
	case n.Kind == source.Scalar && what == "workspace.setup":
		return "write " + strings.TrimPrefix(meant.CommandLine(n.Value), "command: ")
	case n.Kind == source.Scalar && !source.IsNull(n) && n.Value != "" && len(n.Value) < 60 && !strings.ContainsAny(n.Value, "[]{}\n"):
		if strings.ContainsRune("*&!|>%@`#?:-\"'", rune(n.Value[0])) || strings.Contains(n.Value, ": ") || strings.Contains(n.Value, " #") {
			return "write ['" + strings.ReplaceAll(n.Value, "'", "''") + "']" // as it is, it would be something else in YAML
		}
		return "write [" + n.Value + "]"
	}
	return ""
}

// wrong reports a value of the wrong type.
func (r *reader) wrong(n *source.Node, what, must string) {
	r.report(n, CodeValue, "%s must be %s, got %s", what, must, source.Describe(n)).Hint = source.Unquoted(n)
}

func article(t Type) string {
	switch {
	case t == "":
		return "an"
	case t.kind().an:
		return "an " + string(t)
	}
	return "a " + string(t)
}

func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// choice reads one of several words; empty if the text is none of them.
func (r *reader) choice(n *source.Node, what string, words []string) string {
	text, ok := r.text(n, what)
	if !ok || slices.Contains(words, text) {
		return text
	}
	r.report(n, CodeValue, "%s must be %s, got %q", what, schema.Join(words, "or"), text).suggest(meant.Hint(text, words, ""))
	return ""
}

// list reads a list of texts. An element that cannot be read becomes empty, so that the others keep their indexes.
func (r *reader) list(n *source.Node, what string, read func(*source.Node, string) (string, bool)) []string {
	items, _ := r.items(n, what)
	var all []string
	for i, item := range items {
		text, _ := read(item, index(what, i))
		all = append(all, text)
	}
	return all
}

// text reads a text.
func (r *reader) text(n *source.Node, what string) (string, bool) {
	if n = source.Deref(n); !source.PlainText(n) {
		r.wrong(n, what, "text")
		return "", false
	}
	return n.Value, true
}

// words reads a text, or a number or boolean as text, as among the arguments of a command.
func (r *reader) words(n *source.Node, what string) (string, bool) {
	if n = source.Deref(n); n.Kind != source.Scalar || source.IsNull(n) {
		r.wrong(n, what, "text")
		return "", false
	}
	return n.Value, true
}

// boolean reads true or false.
func (r *reader) boolean(n *source.Node, what string) (v, ok bool) {
	n = source.Deref(n)
	if n.Kind == source.Scalar && n.ShortTag() == "!!bool" && n.Load(&v) == nil {
		return v, true
	}
	r.wrong(n, what, "true or false")
	if yes, known := yesWords[strings.ToLower(n.Value)]; known && n.Kind == source.Scalar {
		r.hint(fmt.Sprintf("write %t", yes))
	}
	return false, false
}

// yesWords maps other words for true and false, some of which are booleans in YAML 1.1.
var yesWords = map[string]bool{"yes": true, "on": true, "y": true, "1": true, "no": false, "off": false, "n": false,
	"0": false}

// hint adds a hint to the last problem, if that has none.
func (l *loader) hint(text string) {
	if n := len(l.problems); n > 0 && l.problems[n-1].Hint == "" {
		l.problems[n-1].Hint = text
	}
}

// leadingZero matches a number that YAML 1.1 reads in base 8, and a person in base 10.
var leadingZero = lazyregexp.New(`^([-+]?)0+([0-9]+)$`)

// ambiguous reports a number with a leading zero, because some readers of YAML read 010 as 8 and others as 10.
func (r *reader) ambiguous(n *source.Node, what string) bool {
	n = source.Deref(n)
	m := leadingZero().FindStringSubmatch(n.Value)
	if n.Kind != source.Scalar || m == nil || n.ShortTag() != "!!int" && n.ShortTag() != "!!float" {
		return false
	}
	r.report(n, CodeValue, "%s has a leading zero: some readers of YAML take %s as a number in base 8", what,
		n.Value).
		Hint = "write " + strings.TrimPrefix(m[1], "+") + m[2]
	return true
}

// count reads a whole number that is not negative.
func (r *reader) count(n *source.Node, what string) (uint, bool) {
	v, ok := r.integer(n, what)
	return uint(v), ok && r.within(n, what, v, 0, math.MaxInt32)
}

// within reports a number that is not in a range.
func (r *reader) within(n *source.Node, what string, v, low, high int64) bool {
	if v < low || v > high {
		r.report(source.Deref(n), CodeValue, "%s must be between %d and %d, got %d", what, low, high, v)
		return false
	}
	return true
}

// integer reads a whole number.
func (r *reader) integer(n *source.Node, what string) (v int64, ok bool) {
	if n = source.Deref(n); r.ambiguous(n, what) {
		return 0, false
	}
	if n.Kind == source.Scalar && n.ShortTag() == "!!int" && n.Load(&v) == nil {
		return v, true
	}
	var f float64
	if n.Kind == source.Scalar && n.ShortTag() == "!!float" && n.Load(&f) == nil && f == math.Trunc(f) &&
		math.Abs(f) <= 1<<53 {
		return int64(f), true // 5.0, as JSON Schema has it
	}
	if n.Kind == source.Scalar && n.ShortTag() != "!!str" && strings.Trim(n.Value, "0123456789") == "" {
		r.report(n, CodeValue, "%s is too large a number: %s", what, n.Value)
		return 0, false
	}
	r.wrong(n, what, "a whole number")
	return 0, false
}

// number reads a finite number.
func (r *reader) number(n *source.Node, what string) (v float64, ok bool) {
	if n = source.Deref(n); r.ambiguous(n, what) {
		return 0, false
	}
	if n.Kind == source.Scalar && (n.ShortTag() == "!!int" || n.ShortTag() == "!!float") && n.Load(&v) == nil &&
		!math.IsInf(v, 0) && !math.IsNaN(v) {
		return v, true
	}
	r.wrong(n, what, "a number")
	return 0, false
}

// duration reads a duration such as 90s or 5m; a plain number is seconds.
func (r *reader) duration(n *source.Node, what string) (time.Duration, bool) {
	if n = source.Deref(n); r.ambiguous(n, what) {
		return 0, false
	}
	d, ok := spanOf(n)
	switch {
	case ok && d > 0:
		return d, true
	case ok:
		r.report(n, CodeValue, "%s must be greater than zero, got %s", what, n.Value).Hint = "leave it out for the default"
		return 0, false
	}
	r.wrong(n, what, "a duration such as 90s or 5m")
	if n.Kind == source.Scalar {
		r.hint(durationHint(n.Value))
	}
	return 0, false
}

// spelledOut matches a duration with its unit in words.
var spelledOut = lazyregexp.New(`^\s*([0-9]+) *(ms|milli|s|m|h|d)[a-z]*\s*$`)

// longest is the hint for a duration that is too long. A number of that many digits never overflows Go's durations,
// in any unit.
const longest = "the longest times are 99999h, or 1000000000 seconds as a number"

// durationHint shows how to write a duration that a person has written in words.
func durationHint(text string) string {
	m := spelledOut().FindStringSubmatch(strings.ToLower(text))
	if m == nil {
		return ""
	}
	better := m[1] + m[2]
	switch m[2] {
	case "milli":
		better = m[1] + "ms"
	case "d":
		days, _ := strconv.Atoi(m[1])
		better = fmt.Sprintf("%dh", 24*days)
	}
	if !spans().MatchString(better) {
		return longest
	}
	return "write " + better
}

var spans = lazyregexp.New(schema.SpanPattern)

// spanOf returns the duration of a value: text in the form of the schema, or a number of seconds. It may be zero or
// negative.
func spanOf(n *source.Node) (time.Duration, bool) {
	if n = source.Deref(n); n.Kind != source.Scalar {
		return 0, false
	}
	text := n.Value
	if tag := n.ShortTag(); tag == "!!int" || tag == "!!float" {
		var f float64
		if n.Load(&f) != nil || !(math.Abs(f) <= schema.MaxSeconds) {
			return 0, false
		}
		return ofSeconds(f), true
	}
	sign := time.Duration(1)
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		text, sign = rest, -1
	}
	if !source.PlainText(n) || !spans().MatchString(text) {
		return 0, false
	}
	if d, err := time.ParseDuration(text); err == nil {
		if d == 0 && strings.ContainsAny(text, "123456789") {
			d = 1 // less than a nanosecond is not nothing
		}
		return sign * d, true
	}
	f, err := strconv.ParseFloat(text, 64)
	return sign * ofSeconds(f), err == nil
}

func ofSeconds(f float64) time.Duration {
	d := time.Duration(f * float64(time.Second))
	if d == 0 && f > 0 {
		d = 1
	}
	return d
}

// sizeUnits are powers of ten, or powers of two for units such as MiB.
var sizeUnits = []struct {
	suffix string
	bytes  float64
}{
	{"KIB", 1 << 10}, {"MIB", 1 << 20}, {"GIB", 1 << 30},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1},
}

// size reads a number of bytes, such as 65536, 64KB or 1MiB.
func (r *reader) size(n *source.Node, what string) (int64, bool) {
	if n = source.Deref(n); r.ambiguous(n, what) {
		return 0, false
	}
	if n.Kind != source.Scalar {
		r.wrong(n, what, "a size such as 65536, 64KB or 1MiB")
		return 0, false
	}
	if tag := n.ShortTag(); tag == "!!int" || tag == "!!float" {
		var f float64
		if n.Load(&f) == nil && f >= 1 && f <= schema.MaxBytes {
			return int64(f), true
		}
	} else if v, ok := ParseSize(n.Value); ok && source.PlainText(n) {
		return v, true
	}
	r.wrong(n, what, "a size such as 65536, 64KB or 1MiB")
	if m := spelledSize().FindStringSubmatch(strings.ToLower(n.Value)); m != nil {
		if better := m[1] + strings.ToUpper(m[2]) + "B"; sizes().MatchString(better) {
			r.hint("write " + better)
		}
	}
	if strings.Trim(n.Value, "+-.0123456789 kKmMgGtTiIbB") == "" {
		r.hint("a size is between 1 byte and 999GiB")
	}
	return 0, false
}

// spelledSize matches a number of bytes with its unit in words.
var spelledSize = lazyregexp.New(`^\s*([0-9]+) *([kmg])(ilo|ega|iga)?( ?bytes?)?\s*$`)

var sizes = lazyregexp.New(schema.SizePattern)

// ParseSize reads a number of bytes with its unit, such as 64KB or 1MiB.
func ParseSize(s string) (int64, bool) {
	if !sizes().MatchString(s) || !strings.ContainsAny(s, "123456789") {
		return 0, false
	}
	s = strings.ToUpper(strings.TrimSpace(s))
	for _, u := range sizeUnits {
		if digits, ok := strings.CutSuffix(s, u.suffix); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
			return max(1, int64(v*u.bytes)), err == nil
		}
	}
	return 0, false
}

// any reads a value of the state: text, bool, int64, float64, nil, []any or map[string]any.
func (r *reader) any(n *source.Node, what string) (any, bool) {
	n = source.Deref(n)
	switch n.Kind {
	case source.List:
		list, good := make([]any, 0, len(n.Content)), true
		for i, c := range n.Content {
			v, ok := r.any(c, index(what, i))
			list, good = append(list, v), good && ok
		}
		return list, good
	case source.Map:
		ps, good := r.pairs(n, what)
		m := make(map[string]any, len(ps))
		for _, p := range ps {
			v, ok := r.any(p.value, what+"."+p.key)
			m[p.key], good = v, good && ok
		}
		return m, good
	}
	switch n.ShortTag() {
	case "!!null":
		return nil, true
	case "!!bool":
		return r.boolean(n, what)
	case "!!int":
		return r.integer(n, what)
	case "!!float":
		return r.number(n, what)
	}
	return r.text(n, what)
}

// delay reads a duration that may be zero.
func (r *reader) delay(n *source.Node, what string) (time.Duration, bool) {
	d, ok := spanOf(n)
	switch {
	case ok && d < 0:
		r.report(n, CodeValue, "%s must not be negative, got %s", what, n.Value)
		return 0, false
	case ok && d == 0:
		return 0, true
	}
	return r.duration(n, what)
}

// change is how agents differ from their description in the file.
type change struct {
	names   rename.Names
	of      *source.Node // the outermost of these agents
	without []string     // fields that it does not have
	outer   *change      // an earlier change of the same agents; nil if there is none
}

// apply returns a field of an agent that n describes; false if the agent does not have the field.
func (c *change) apply(n *source.Node, p pair) (pair, bool) {
	if c == nil {
		return p, true
	}
	p, ok := c.outer.apply(n, p)
	if !ok || n == c.of && slices.Contains(c.without, p.key) {
		return p, false
	}
	p.value = c.names.Field(p.key, p.value)
	return p, true
}

// changed returns the fields of an agent, and those beside its ref, after the change.
func (c *change) changed(n *source.Node, ps []pair, u *use) ([]pair, *use) {
	if c == nil {
		return ps, u
	}
	var own []pair
	for _, p := range ps {
		if p, ok := c.apply(n, p); ok {
			own = append(own, p)
		}
	}
	if u == nil {
		return own, nil
	}
	other := *u
	other.fields = nil
	for _, b := range u.fields {
		if p, ok := c.apply(n, b.pair); ok {
			other.fields = append(other.fields, beside{p, b.reader})
		}
	}
	return own, &other
}

// copyOf reads an agent again, with the agents inside it, as a part of another agent.
func (l *loader) copyOf(a, parent *Agent, c change) *Agent {
	r := &reader{loader: l, src: a.src, def: a.def}
	c.of, c.outer = a.node, a.change
	before := l.change
	l.change = &c
	defer func() { l.change = before }()
	ps, _ := r.pairs(a.node, "an agent")
	return r.described(a.node, ps, parent, a.written)
}
