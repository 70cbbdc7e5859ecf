// SPDX-License-Identifier: Apache-2.0

// Package lazyregexp compiles a regular expression at its first use. Most commands use few of the expressions, and
// compiling all of them took a sixth of the program's start time.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled pattern. The first call of that function compiles the pattern, and
// panics if it is not valid.
//
//go:noinline
func New(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
