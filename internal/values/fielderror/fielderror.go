// SPDX-License-Identifier: Apache-2.0

// Package fielderror describes mistakes in the fields of a Go config. A program that reads such a config from a file can write the
// same messages with the file's names of the fields.
//
//	err := fielderror.New(`Set["n"]`, "%s also writes %q; remove one", fielderror.Name("OutputKey"), "n")
//	err.Error()          // Set["n"]: OutputKey also writes "n"; remove one
//	err.Message(inFile)  // set.n: output_key also writes "n"; remove one
package fielderror

import (
	"errors"
	"fmt"
)

// Name is the name of another field in the text of an error, such as OutputKey. Give it as an argument of the format.
type Name string

// Error is one mistake in a config.
type Error struct {
	// Field is the path of the wrong field, such as Timeout, Args[2] or Set["n"]. It is empty if the mistake is in no single
	// field.
	Field string

	separator string // between the field and the text
	text      error  // the text with the names of the config
	format    string
	args      []any
}

// New returns an error whose text is about a value in a field: the message is "field: text".
func New(field, format string, args ...any) *Error {
	return &Error{field, ": ", fmt.Errorf(format, args...), format, args}
}

// About returns an error whose sentence begins with the field: the message is "field text".
func About(field, format string, args ...any) *Error {
	return &Error{field, " ", fmt.Errorf(format, args...), format, args}
}

// Whole returns an error whose text is a whole sentence about several fields.
func Whole(format string, args ...any) *Error {
	return &Error{text: fmt.Errorf(format, args...), format: format, args: args}
}

// Error returns the message with the names of the config.
func (e *Error) Error() string { return e.Message(func(field string) string { return field }) }

// Message returns the message with the names that rename gives to the paths of fields and to the [Name]s in the text.
func (e *Error) Message(rename func(path string) string) string {
	text := e.Text(rename)
	if e.Field == "" {
		return text
	}
	return rename(e.Field) + e.separator + text
}

// Text returns the message without the field.
func (e *Error) Text(rename func(path string) string) string {
	args := make([]any, len(e.args))
	for i, arg := range e.args {
		if name, ok := arg.(Name); ok {
			arg = rename(string(name))
		}
		args[i] = arg
	}
	return fmt.Errorf(e.format, args...).Error()
}

// Unwrap returns the error that the format has for %w; nil if there is none.
func (e *Error) Unwrap() error { return errors.Unwrap(e.text) }
