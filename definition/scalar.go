// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// text reads a text.
func (r *reader) text(n *yaml.Node, what string) (string, bool) {
	if n = deref(n); !plainText(n) {
		r.wrong(n, what, "text")
		return "", false
	}
	return n.Value, true
}

// words reads a text where a number or true is one too, as among the arguments
// of a command.
func (r *reader) words(n *yaml.Node, what string) (string, bool) {
	if n = deref(n); n.Kind != yaml.ScalarNode || isNull(n) {
		r.wrong(n, what, "text")
		return "", false
	}
	return n.Value, true
}

// boolean reads true or false.
func (r *reader) boolean(n *yaml.Node, what string) (v, ok bool) {
	n = deref(n)
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" && n.Load(&v) == nil {
		return v, true
	}
	r.wrong(n, what, "true or false")
	if yes, known := yesWords[strings.ToLower(n.Value)]; known && n.Kind == yaml.ScalarNode {
		r.hint(fmt.Sprintf("write %t", yes))
	}
	return false, false
}

// yesWords are true and false in other words, some of which an older YAML had.
var yesWords = map[string]bool{"yes": true, "on": true, "y": true, "1": true, "no": false, "off": false, "n": false, "0": false}

// hint adds a hint to what was reported last, if it has none.
func (l *loader) hint(text string) {
	if n := len(l.problems); n > 0 && l.problems[n-1].Hint == "" {
		l.problems[n-1].Hint = text
	}
}

// count reads a whole number that is not negative.
func (r *reader) count(n *yaml.Node, what string) (uint, bool) {
	v, ok := r.integer(n, what)
	if ok && (v < 0 || v > math.MaxInt32) {
		r.report(r.src.of(deref(n)), CodeValue, "%s must be between 0 and %d, got %d", what, math.MaxInt32, v)
		return 0, false
	}
	return uint(v), ok
}

// integer reads a whole number.
func (r *reader) integer(n *yaml.Node, what string) (v int64, ok bool) {
	n = deref(n)
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!int" && n.Load(&v) == nil {
		return v, true
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() != "!!str" && strings.Trim(n.Value, "0123456789") == "" {
		r.report(r.src.of(n), CodeValue, "%s is a number too large to count with: %s", what, n.Value)
		return 0, false
	}
	r.wrong(n, what, "a whole number")
	return 0, false
}

// number reads a finite number.
func (r *reader) number(n *yaml.Node, what string) (v float64, ok bool) {
	n = deref(n)
	if n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!int" || n.ShortTag() == "!!float") && n.Load(&v) == nil &&
		!math.IsInf(v, 0) && !math.IsNaN(v) {
		return v, true
	}
	r.wrong(n, what, "a number")
	return 0, false
}

// duration reads a duration such as 90s or 5m; a plain number is seconds.
func (r *reader) duration(n *yaml.Node, what string) (time.Duration, bool) {
	n = deref(n)
	if n.Kind == yaml.ScalarNode {
		if d, ok := parseDuration(n.Value); ok && !isNull(n) {
			if d > 0 {
				return d, true
			}
			r.report(r.src.of(n), CodeValue, "%s must be more than nothing, got %s", what, n.Value).
				Hint = "leave it out for the default"
			return 0, false
		}
	}
	r.wrong(n, what, "a duration such as 90s or 5m")
	r.hint(durationHint(n.Value))
	return 0, false
}

// spelledOut is a time with its unit in words.
var spelledOut = regexp.MustCompile(`^\s*([0-9]+) *(ms|milli|s|m|h|d)[a-z]*\s*$`)

// durationHint is how a time that a person has written in words is written.
func durationHint(text string) string {
	m := spelledOut.FindStringSubmatch(strings.ToLower(text))
	switch {
	case m == nil:
		return ""
	case m[2] == "milli":
		return "write " + m[1] + "ms"
	case m[2] == "d":
		days, _ := strconv.Atoi(m[1])
		return fmt.Sprintf("write %dh", 24*days)
	}
	return "write " + m[1] + m[2]
}

func parseDuration(s string) (time.Duration, bool) {
	if d, err := time.ParseDuration(s); err == nil {
		return d, true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.Abs(f) > 1e9 || math.IsNaN(f) {
		return 0, false
	}
	return time.Duration(f * float64(time.Second)), true
}

// sizeUnits are powers of ten, or of two where they say so.
var sizeUnits = []struct {
	suffix string
	bytes  float64
}{
	{"KIB", 1 << 10}, {"MIB", 1 << 20}, {"GIB", 1 << 30},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1},
}

// size reads a number of bytes, such as 65536, 64KB or 1MiB.
func (r *reader) size(n *yaml.Node, what string) (int64, bool) {
	n = deref(n)
	if n.Kind == yaml.ScalarNode && !isNull(n) {
		if v, ok := parseSize(n.Value); ok {
			return v, true
		}
	}
	r.wrong(n, what, "a size such as 65536, 64KB or 1MiB")
	if m := spelledSize.FindStringSubmatch(strings.ToLower(n.Value)); m != nil {
		r.hint("write " + m[1] + strings.ToUpper(m[2]) + "B")
	}
	return 0, false
}

// spelledSize is a number of bytes with its unit in words.
var spelledSize = regexp.MustCompile(`^\s*([0-9]+) *([kmg])(ilo|ega|iga)?( ?bytes?)?\s*$`)

func parseSize(s string) (int64, bool) {
	s = strings.ToUpper(strings.TrimSpace(s))
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if v *= u.bytes; err == nil && v >= 1 && v <= 1<<40 {
			return int64(v), true
		}
		return 0, false
	}
	return 0, false
}

// any reads a value of a state: text, bool, int64, float64, nil, []any or
// map[string]any.
func (r *reader) any(n *yaml.Node, what string) (any, bool) {
	n = deref(n)
	switch n.Kind {
	case yaml.SequenceNode:
		list, good := make([]any, 0, len(n.Content)), true
		for i, c := range n.Content {
			v, ok := r.any(c, fmt.Sprintf("%s[%d]", what, i))
			list, good = append(list, v), good && ok
		}
		return list, good
	case yaml.MappingNode:
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
