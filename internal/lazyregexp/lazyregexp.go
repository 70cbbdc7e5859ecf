// SPDX-License-Identifier: Apache-2.0

// Package lazyregexp compiles a regular expression when it is first used: most commands use few of them, and
// compiling all took a sixth of the time that the program needs to start.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New gives a function that returns the compiled pattern. Its first call compiles, and panics if the pattern is not
// valid.
//
//go:noinline
func New(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
