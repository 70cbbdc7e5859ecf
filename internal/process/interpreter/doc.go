// SPDX-License-Identifier: Apache-2.0

// Package interpreter knows programs that run their standard input as code, so that Refrain does not give an event or
// a text from a model to such a program by mistake. It has a list of names, and so is a best effort; a program that
// is not in the list may do the same.
//
//	interpreter.ReadsCode([]string{"sh"})            // an error
//	interpreter.ReadsCode([]string{"sh", "score.sh"}) // nil: the script reads the text, the shell does not
package interpreter
