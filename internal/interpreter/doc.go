// SPDX-License-Identifier: Apache-2.0

// Package interpreter knows which programs run what they are given as code, so
// that a value from a model, a tool or a person never becomes a program.
//
//	p := interpreter.Of([]string{"sh", "-c", `cat "$1"`, "sh", "{{file}}"}, fixed)
//	p.Args(4) // Data: the script is the author's, and this is its $1
//	p.Stdin() // nil: the script reads it, the shell does not
package interpreter
