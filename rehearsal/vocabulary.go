// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/refrain-dev/refrain/loop"
)

// path is a value that an expression reads: state.review.score is the fields
// review and score of state. In json(state.review).score the first field is a text
// that holds JSON.
type path struct {
	root   string // state or result
	fields string // with dots between them
	text   bool
}

// key is the first of the fields, and rest the others.
func (p path) key() (key, rest string) {
	key, rest, _ = strings.Cut(p.fields, ".")
	return key, rest
}

var (
	chain   = regexp.MustCompile(`(json\(\s*)?\b(state|result)((?:\.\??[A-Za-z_]\w*|\["[^"\]]+"\]|\['[^'\]]+'\])+)(\s*\))?((?:\.\??[A-Za-z_]\w*)*)(\()?`)
	element = regexp.MustCompile(`\.\??([A-Za-z_]\w*)|\["([^"\]]+)"\]|\['([^'\]]+)'\]`)
	quoted  = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'`)
	digits  = regexp.MustCompile(`\b\d+(?:\.\d+)?\b`)
)

// paths are what an expression reads of state and result, by what it looks like:
// stand-ins make up values for them, and whether these fit is seen when the
// expression is evaluated.
func paths(src string) []path {
	var all []path
	for _, m := range chain.FindAllStringSubmatch(src, -1) {
		asJSON, own, after, calls := m[1] != "" && m[4] != "", fields(m[3]), fields(m[5]), m[6] != ""
		p := path{root: m[2], text: asJSON}
		if asJSON {
			own = append(own, after...)
		}
		if calls && len(own) > 1 { // the last one is the name of a method
			own = own[:len(own)-1]
		}
		p.fields = strings.Join(own, ".")
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

func fields(chain string) []string {
	var all []string
	for _, m := range element.FindAllStringSubmatch(chain, -1) {
		all = append(all, m[1]+m[2]+m[3])
	}
	return all
}

// literals are the texts and numbers in an expression.
func literals(src string) []any {
	var all []any
	for _, m := range quoted.FindAllStringSubmatch(src, -1) {
		text := m[1] + m[2]
		if plain, err := strconv.Unquote(`"` + text + `"`); err == nil {
			text = plain
		}
		all = append(all, text)
	}
	for _, m := range digits.FindAllString(quoted.ReplaceAllString(src, ""), -1) {
		if f, err := strconv.ParseFloat(m, 64); err == nil {
			all = append(all, f, f-1, f+1)
		}
	}
	return all
}

// wish is an expression that is to be true, or not.
type wish struct {
	expr string
	want bool
}

// leavesOf are the expressions of a condition, with what makes the whole true.
func leavesOf(c *loop.Condition) []wish {
	if c == nil {
		return nil
	}
	var all []wish
	switch {
	case c.Expr != "":
		return []wish{{c.Expr, true}}
	case c.Not != nil:
		for _, w := range leavesOf(c.Not) {
			all = append(all, wish{w.expr, !w.want})
		}
	default:
		for _, part := range slices.Concat(c.Any, c.All) {
			all = append(all, leavesOf(&part)...)
		}
	}
	return all
}
