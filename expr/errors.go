// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"fmt"
	"strings"
)

// Error is one mistake in an expression.
type Error struct {
	Line   int // from 1
	Column int // from 1, in characters
	Msg    string
	// Unknown is the name in the expression that is not declared; "" if the mistake is another one. Suggestion is a similar
	// name that is declared; "" if there is none.
	Unknown, Suggestion string
}

// Error implements error, as line:column: message, with the suggestion in brackets.
func (e *Error) Error() string {
	s := fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Msg)
	if e.Suggestion != "" {
		s += fmt.Sprintf(" (did you mean %q?)", e.Suggestion)
	}
	return s
}

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
