// SPDX-License-Identifier: Apache-2.0

// Package interpreter knows programs that run their standard input as code, so that an event, or a text
// from a model, is not given to one by mistake. It is a list of names, and so a best effort: a program that
// is not on it may do the same.
//
//	interpreter.ReadsCode([]string{"sh"})            // an error
//	interpreter.ReadsCode([]string{"sh", "score.sh"}) // nil: the script reads the text, the shell does not
package interpreter
