// SPDX-License-Identifier: Apache-2.0

// Package meant finds the meaning of an unknown word in a definition: a mistyped name, the word of another product,
// or a shell command.
//
//	meant.Hint("itterations", []string{"iterations"}, "") // did you mean "iterations"?
package meant

import (
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// MaxNames is the largest number of names in which [Hint] looks for a similar one.
const MaxNames = 2000

// Near returns the name that was probably meant: a name that differs in a few letters, or else the only name with a
// similar beginning. It returns "" if there is none.
func Near(typed string, names []string) string {
	if found := suggest.Nearest(typed, names); found != "" {
		return found
	}
	found := ""
	for _, name := range names {
		n := 0
		for n < min(len(typed), len(name)) && typed[n] == name[n] {
			n++
		}
		if n < 5 || 3*n < 2*len(typed) || name == typed {
			continue
		}
		if found != "" {
			return ""
		}
		found = name
	}
	return found
}

// Hint returns the hint for a mistyped name with the name that it suggests, or otherwise and no suggestion if no name is similar.
func Hint(typed string, names []string, otherwise string) (hint, suggestion string) {
	if len(names) > MaxNames {
		return otherwise, ""
	}
	if near := Near(typed, names); near != "" {
		return Name(near)
	}
	return otherwise, ""
}

// Name returns the hint that suggests a name.
func Name(name string) (hint, suggestion string) { return fmt.Sprintf("did you mean %q?", name), name }

// plainLine matches a command line that has only plain words for a shell and for YAML.
var plainLine = lazyregexp.New(`^[A-Za-z0-9_./]+(?: +-{0,2}[A-Za-z0-9_./][A-Za-z0-9_./=@%+-]*)*$`)

// CommandLine writes a shell command as the field of a step: as the list of its words, or as a call of sh if only a
// shell can read it.
func CommandLine(line string) string {
	switch {
	case plainLine().MatchString(line):
		return "command: [" + strings.Join(strings.Fields(line), ", ") + "]"
	case line != "" && len(line) < 60 && !strings.ContainsAny(line, "{}\n"):
		return "command: [sh, -c, '" + strings.ReplaceAll(line, "'", "''") + "']"
	}
	return "command: [program, argument]"
}

// AsList returns the hint for a command that is a string instead of a list.
func AsList(line string) string { return "write " + CommandLine(line) }
