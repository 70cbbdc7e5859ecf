// SPDX-License-Identifier: Apache-2.0

package session

import "strings"

// Address is the place of a step in a run: the path of steps from the root agent,
// with the iteration of each loop on the way, such as "story/refine[3]/critic". The
// second run of an agent under the same parent is "critic#2".
type Address string

// Agent returns the name of the agent at the end of the path.
func (a Address) Agent() string {
	s := string(a)
	s = s[strings.LastIndexByte(s, '/')+1:]
	if i := strings.IndexAny(s, "[#"); i >= 0 {
		s = s[:i]
	}
	return s
}

// Parent returns the address one step up; empty for the root.
func (a Address) Parent() Address {
	i := strings.LastIndexByte(string(a), '/')
	if i < 0 {
		return ""
	}
	p := a[:i]
	if open := strings.LastIndexByte(string(p), '['); open >= 0 && strings.HasSuffix(string(p), "]") {
		p = p[:open]
	}
	return p
}

// Under reports whether a is p or a step below it, in any iteration.
func (a Address) Under(p Address) bool {
	if len(a) < len(p) || a[:len(p)] != p {
		return false
	}
	return len(a) == len(p) || a[len(p)] == '/' || a[len(p)] == '['
}

// loop returns the address of the innermost loop iteration that contains a, such as "story/refine[3]". It is
// empty outside loops.
func (a Address) loop() Address {
	if i := strings.LastIndex(string(a), "]/"); i >= 0 {
		return a[:i+1]
	}
	return ""
}

// Place returns the address without the numbers of iterations and of repeated runs: "story/refine/critic" for
// "story/refine[3]/critic#2".
func (a Address) Place() Address {
	if !strings.ContainsAny(string(a), "[#") {
		return a
	}
	var b strings.Builder
	skip := false
	for _, r := range string(a) {
		switch r {
		case '[', '#':
			skip = true
		case ']':
			skip = false
			continue
		case '/':
			skip = false
		}
		if !skip {
			b.WriteRune(r)
		}
	}
	return Address(b.String())
}
