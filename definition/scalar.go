// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"math"
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
	return false, false
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
	return 0, false
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
	return 0, false
}

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
