// SPDX-License-Identifier: Apache-2.0

// Package meant finds what a person means by a word that a definition does not know: a mistyped name, the word of
// another product, a line for a shell.
//
//	meant.Hint("itterations", []string{"iterations"}, "") // did you mean "iterations"?
package meant

import (
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/lazyregexp"
)

// MaxNames is the number of names among which a near one is searched; among more, nothing is guessed.
const MaxNames = 2000

// Near returns the name that was probably meant: one with a few letters changed, or
// else the only one that begins likewise. It is empty if there is none.
func Near(typed string, names []string) string {
	if found := expr.Nearest(typed, names); found != "" {
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

// Hint returns the hint for a mistyped name; otherwise if none is near.
func Hint(typed string, names []string, otherwise string) string {
	if len(names) > MaxNames {
		return otherwise
	}
	if near := Near(typed, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return otherwise
}

// plainLine is a command line in which a shell would see words alone, and so would YAML.
var plainLine = lazyregexp.New(`^[A-Za-z0-9_./]+(?: +-{0,2}[A-Za-z0-9_./][A-Za-z0-9_./=@%+-]*)*$`)

// CommandLine writes a line for a shell as the field of a step: as the list of its words, or for a
// shell if only one can read it.
func CommandLine(line string) string {
	switch {
	case plainLine().MatchString(line):
		return "command: [" + strings.Join(strings.Fields(line), ", ") + "]"
	case line != "" && len(line) < 60 && !strings.ContainsAny(line, "{}\n"):
		return "command: [sh, -c, '" + strings.ReplaceAll(line, "'", "''") + "']"
	}
	return "command: [program, argument]"
}

// AsList returns the hint for a command that is a text.
func AsList(line string) string { return "write " + CommandLine(line) }
