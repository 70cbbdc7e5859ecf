// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"github.com/refrain-dev/refrain/internal/brief"
	"github.com/refrain-dev/refrain/internal/lazyregexp"
)

// Error is one mistake in an expression.
type Error struct {
	Line   int // from 1
	Column int // from 1, in characters
	Msg    string
}

// Error implements error, as line:column: message.
func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Msg) }

// Errors lists all mistakes in an expression, at least one, in the order of its source.
type Errors []*Error

// Error implements error, one problem a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, x := range e {
		lines[i] = x.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the mistakes for errors.Is and errors.As.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i, x := range e {
		out[i] = x
	}
	return out
}

// KeyError reports that a map has no key of that name.
type KeyError struct {
	Path string // the map, as the source writes it: state, state.result; "" if unknown
	Key  string
}

// Error implements error.
func (e *KeyError) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("no key %q", e.Key)
	}
	return fmt.Sprintf("%s has no key %q", e.Path, e.Key)
}

var undeclared = lazyregexp.New(`^undeclared reference to '([^']*)'.*`)

func compileErrors(issues *cel.Issues, env *cel.Env, vars []Var) Errors {
	var out Errors
	for _, e := range issues.Errors() {
		msg := e.Message
		if syntax, ok := strings.CutPrefix(msg, "Syntax error: "); ok {
			return Errors{syntaxError(issues.Errors(), e, syntax)}
		}
		if m := undeclared().FindStringSubmatch(msg); m != nil {
			msg = fmt.Sprintf("nothing is called %q", m[1])
			if near := Nearest(m[1], names(env, vars)); near != "" {
				msg += fmt.Sprintf(" (did you mean %q?)", near)
			}
		}
		if msg == "invalid matches argument" {
			msg = "not a regular expression: look for brackets that are not closed; the syntax is that of RE2"
		}
		out = append(out, at(e, brief.Printable(msg)))
	}
	return out
}

// names returns the names that a source can use: variables first, then functions.
func names(env *cel.Env, vars []Var) []string {
	var out []string
	for _, v := range vars {
		out = append(out, v.Name)
	}
	for name := range env.Functions() {
		if name[0] >= 'a' && name[0] <= 'z' {
			out = append(out, name)
		}
	}
	for _, m := range env.Macros() {
		out = append(out, m.Function())
	}
	return out
}

// Nearest returns the most similar name to a mistyped one; "" if none is similar.
func Nearest(typed string, names []string) string {
	n := utf8.RuneCountInString(typed)
	if n > 64 {
		return ""
	}
	best, limit := "", min(n, max(1, n/3)+1) // any letter is near a single one
	x := []rune(strings.ToLower(typed))
	for _, name := range names {
		if far := n - utf8.RuneCountInString(name); max(far, -far) > limit {
			continue
		}
		d := distance(x, []rune(strings.ToLower(name)))
		if name != typed && (d < limit || d == limit && best != "" && name < best) {
			best, limit = name, d
		}
	}
	return best
}

// distance counts the letters to insert, delete, change or swap with the next.
func distance(x, y []rune) int {
	var before, prev []int
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		before, prev, row = prev, row, make([]int, len(y)+1)
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, prev[j+1]+1, prev[j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(y)]
}

// evalError rewrites CEL's evaluation errors for the author of the expression.
func (p *Program) evalError(err error) error {
	msg := err.Error()
	if key, ok := strings.CutPrefix(msg, "no such key: "); ok {
		return &KeyError{Path: p.pathOf(key, nodeOf(err)), Key: key}
	}
	if name, ok := strings.CutPrefix(msg, "no such attribute(s): "); ok {
		return fmt.Errorf("no value for %s", name)
	}
	if strings.HasSuffix(msg, "cost limit exceeded") {
		return fmt.Errorf("the expression exceeds the limit of %d CEL cost units: make it read less, or use a command",
			maxCost)
	}
	if msg == "no such overload" {
		return errors.New("the values do not fit the operation")
	}
	return err
}

func nodeOf(err error) int64 {
	if e, ok := errors.AsType[*types.Err](err); ok {
		return e.NodeID()
	}
	return 0
}
