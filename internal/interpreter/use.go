// SPDX-License-Identifier: Apache-2.0

package interpreter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/internal/lazyregexp"
)

// Place says what a value may be in an argument.
type Place int

// The places of values.
const (
	None  Place = iota // no value: it would be code, or choose what runs
	Whole              // a value may be the whole argument, so that it is no part of an option
	Data               // a value may stand anywhere in it: it is a variable of the author's script
)

// Use says what a program does with its arguments and its standard input.
type Use struct {
	name   string
	kind   kind
	fixed  bool // the code that it runs is the author's
	script int  // the index of the first argument that is the script's, if fixed
	stdin  bool // standard input is data
}

// Of looks at a program with its arguments. fixed reports whether the argument of an
// index stands as the author has written it, without a value in it.
//
// The rule is one of what is allowed: a value may be a whole argument of a program
// that is neither an interpreter nor starts other programs, and its standard input.
// An interpreter whose code the author has written, as sh -c SCRIPT or python3 FILE,
// takes its further arguments and its standard input as data. Whatever else there is
// takes no value.
func Of(args []string, fixed func(i int) bool) Use {
	if len(args) == 0 {
		return Use{}
	}
	u := Use{script: len(args)}
	u.name, u.kind = kindOf(args[0])
	switch u.kind {
	case plain:
		u.stdin = true
	case shell:
		u.ownScript(shellScript(args), args, fixed)
	case python:
		u.ownScript(pythonScript(args), args, fixed)
		module := len(args) > 2 && args[1] == "-m" && fixed(1) && fixed(2) && !consoles[args[2]]
		u.stdin = u.stdin || module
	case language:
		at := -1
		if len(args) > 1 && args[1] != "" && args[1][0] != '-' {
			at = 1
		}
		u.ownScript(at, args, fixed)
	case filter:
		all := len(args) > 1 && !slices.ContainsFunc(args[1:], fromStdin)
		for i := range args {
			all = all && fixed(i)
		}
		u.stdin = all
	}
	return u
}

// consoles are modules of Python that run their standard input.
var consoles = setOf("code pdb asyncio bdb sqlite3 idlelib IPython ptpython bpython")

// ReadsCode is why a command whose arguments are all the author's may not be told
// anything on its standard input: an interpreter in it runs that as code. It is nil
// if none does.
func ReadsCode(args []string) error {
	for i, arg := range args {
		name, k := kindOf(arg)
		if k != shell && k != python && k != language {
			continue
		}
		rest := args[i+1:]
		code := !slices.ContainsFunc(rest, func(arg string) bool {
			option := arg == "" || arg[0] == '-' || arg[0] == '+'
			return !option && !fromStdin(arg) || givesCode().MatchString(arg)
		})
		if code {
			return fmt.Errorf("%s runs its standard input as code; give it a script", name)
		}
	}
	return nil
}

// ownScript notes that the code stands in the argument at and is the author's, if it
// and all before it are fixed; at is negative if there is none.
func (u *Use) ownScript(at int, args []string, fixed func(int) bool) {
	if at < 0 || at >= len(args) || fromStdin(args[at]) {
		return
	}
	for i := range at + 1 {
		if !fixed(i) {
			return
		}
	}
	u.fixed, u.script, u.stdin = true, at+1, true
}

// fromStdin reports whether a file's name means the standard input.
func fromStdin(arg string) bool {
	return arg == "-" || strings.Contains(arg, "/dev/stdin") || strings.Contains(arg, "/dev/fd/") ||
		strings.Contains(arg, "/proc/")
}

var (
	// shellFlags are options of shells that neither take a value nor read the script
	// from elsewhere; commandFlags have c among them.
	shellFlags = lazyregexp.New(
		`^[-+][aefhuvxlnkptBCEHPT]+$|^--(norc|noprofile|posix|login|restricted|no-config|no-rcs)$`)
	commandFlags = lazyregexp.New(`^-[aefhuvxlnkptBCEHPT]*c$|^-[aefhuvxlnkptBCEHPT]*co$`)
	shellOption  = lazyregexp.New(`^[-+][aefhuvxlnkptBCEHPT]*[oO]$`)
	givesCode    = lazyregexp.New(`^-[a-zA-Z]*[cemrE]$|^--(eval|execute|run|command)`)
	pythonFlags  = lazyregexp.New(`^-[uBEIOsSqRbv]+$`)
)

// shellScript is the index of a shell's script, be it a file or the code after -c.
func shellScript(args []string) int {
	command := false
	for i := 1; i < len(args); i++ {
		switch arg := args[i]; {
		case commandFlags().MatchString(arg):
			command = true
			if strings.HasSuffix(arg, "o") {
				i++
			}
		case shellOption().MatchString(arg):
			i++
		case shellFlags().MatchString(arg):
		case arg == "--" && command:
		case arg == "" || arg[0] == '-' || arg[0] == '+':
			return -1
		default:
			return i
		}
	}
	return -1
}

// pythonScript is the index of a script's file, or of the code after -c.
func pythonScript(args []string) int {
	for i := 1; i < len(args); i++ {
		switch arg := args[i]; {
		case arg == "-c" && i+1 < len(args):
			return i + 1
		case pythonFlags().MatchString(arg):
		case arg == "" || arg[0] == '-':
			return -1
		default:
			return i
		}
	}
	return -1
}

// Arg says what a value may be in the argument of an index. The error, in None, is
// why it may be nothing.
func (u Use) Arg(i int) (Place, error) {
	switch {
	case i == 0:
		return None, errors.New("the program's name has a placeholder: a value cannot choose what runs")
	case u.kind == plain:
		return Whole, nil
	case u.fixed && i >= u.script:
		return Data, nil
	}
	return None, u.code("arguments")
}

// Stdin is why no value may be on the standard input; nil if one may.
func (u Use) Stdin() error {
	if u.stdin {
		return nil
	}
	return u.code("standard input")
}

func (u Use) code(what string) error {
	switch u.kind {
	case launcher:
		return fmt.Errorf("%s starts other programs, which may run a value in its %s as code; call the program itself",
			u.name, what)
	case shell:
		return fmt.Errorf("%s may run a value in its %s as code; "+
			`write a script without placeholders, and the values after it: sh -c 'cat "$1"' sh {{key}}`, u.name, what)
	case python, language:
		return fmt.Errorf("%s may run a value in its %s as code; name the file of the script first, and the values "+
			"after it",
			u.name, what)
	}
	return fmt.Errorf("%s may run a value in its %s as code", u.name, what)
}
