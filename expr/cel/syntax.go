// SPDX-License-Identifier: Apache-2.0

package cel

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// CEL's grammar has two wordings for text that it cannot parse, and continues after an error: after a missing quote,
// each further character may be another error. So a source reports one syntax error.
var (
	noToken    = lazyregexp.New(`(?s)^token recognition error at: '(.*)'$`)
	unexpected = lazyregexp.New(`(?s)^(?:mismatched input|extraneous input|no viable alternative at input|missing .* at) '(.*?)'(?: expecting .*)?$`)
)

// syntaxError returns the mistake in a source that cannot be parsed: a missing quote if there is one, else the first
// error.
func syntaxError(all []*common.Error, first *common.Error, msg string) *expr.Error {
	for _, e := range all {
		if m := noToken().FindStringSubmatch(strings.TrimPrefix(e.Message, "Syntax error: ")); m != nil && isQuote(m[1]) {
			return at(e, "the text that begins here does not end: a quote is missing, or one too many (write "+
				"'it\\'s' for it's)")
		}
	}
	return at(first, syntaxWords(msg))
}

func at(e *common.Error, msg string) *expr.Error {
	return &expr.Error{Line: max(e.Location.Line(), 1), Column: max(e.Location.Column()+1, 1), Msg: msg}
}

func isQuote(s string) bool { return strings.HasPrefix(s, `"`) || strings.HasPrefix(s, "'") }

// instead maps characters of other languages to the text to write.
var instead = map[rune]string{
	'=': "== compares, and values are set by the keys of set", '&': "and is written &&", '|': "or is written ||",
	'≥': "write >=", '≤': "write <=", '≠': "write !=", '“': `write "`, '”': `write "`, '„': `write "`, '‘': "write '",
	'’': "write '",
	'×': "write *", '÷': "write /", '−': "write -", '$': "a key of the state is state.key",
	'@': "a key of the state is state.key", '~': "write matches, as in text.matches('a+')",
}

func syntaxWords(msg string) string {
	if m := noToken().FindStringSubmatch(msg); m != nil {
		r, _ := utf8.DecodeRuneInString(m[1])
		if better := instead[r]; better != "" {
			return fmt.Sprintf("%q is nothing in an expression: %s", r, better)
		}
		return fmt.Sprintf("%q is nothing in an expression", r)
	}
	m := unexpected().FindStringSubmatch(msg)
	switch {
	case m == nil:
		return brief.Printable(msg)
	case m[1] == "<EOF>":
		return "the expression is not finished"
	}
	return fmt.Sprintf("%q was not expected here", m[1])
}
