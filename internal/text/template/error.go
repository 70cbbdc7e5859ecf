// SPDX-License-Identifier: Apache-2.0

package template

import (
	"fmt"
	"strings"
)

// Error is one mistake in a template.
type Error struct {
	// Line and Column are the position of the mistake, from 1; Column counts characters.
	Line, Column int
	// Msg says what is wrong.
	Msg string
}

// Error returns the position and the message: "2:5: section {{#a}} is not closed".
func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Msg) }

// Errors lists all mistakes of a template, at least one, in the order of the text. errors.As and errors.AsType find
// the first *Error.
type Errors []*Error

// Error returns one line for each mistake.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the mistakes for errors.Is and errors.As.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, err := range e {
		errs[i] = err
	}
	return errs
}
