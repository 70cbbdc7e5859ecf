// SPDX-License-Identifier: Apache-2.0

package interpreter

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// family describes the options of interpreters that take code.
type family struct {
	script      string // last letters of options that are followed by code or by a file of code
	codeLetters string // those of them that are followed by code
	value       string // last letters of options that are followed by another value
	stdin       string // letters of options for code on standard input
	file        bool   // without an argument it runs a file that it finds by itself
	first       bool   // matches only where a program is expected, because its name is a common word
	positional  bool   // without such an option, the first argument is code
	sql         bool   // the second argument is code
}

var (
	shells    = &family{script: "c", codeLetters: "c", value: "oO", stdin: "s"}
	pythons   = &family{script: "cm", codeLetters: "cm", value: "WX"}
	languages = &family{script: "cemEf", codeLetters: "ceEpmrMC", value: "WXIrdlKC"}
	commands  = &family{script: "cemEf", codeLetters: "ck", value: ""}
	php       = &family{script: "frBRE", codeLetters: "rBRE", value: "cd"}
	filters   = &family{script: "ef", codeLetters: "e", value: "vF", positional: true} // an argument is code
	makes     = &family{script: "f", codeLetters: "E", value: "C", file: true}
	consoles  = &family{codeLetters: "ceEQ", first: true} // run their standard input whatever their arguments are
	databases = &family{codeLetters: "ceEQ", first: true, sql: true}
)

// families has the interpreters by their bare names.
var families = byName(map[*family]string{
	shells:  "sh bash rbash dash ash zsh ksh ksh93 rksh mksh lksh pdksh oksh yash fish csh tcsh",
	pythons: "python pypy ipython",
	languages: "perl ruby jruby irb node nodejs deno bun lua luajit tclsh wish expect rscript groovy julia osascript " +
		"elixir iex ghci",
	commands: "pwsh powershell cmd",
	php:      "php",
	filters:  "awk gawk mawk nawk sed gsed",
	makes:    "make gmake",
	consoles: "r octave gnuplot bc dc m4 ed ex vi vim nvim emacs gdb lldb psql mysql mariadb mongosh redis-cli ftp " +
		"sftp telnet at batch mail mailx xargs parallel",
	databases: "sqlite3 duckdb",
})

func byName(lists map[*family]string) map[string]*family {
	all := make(map[string]*family)
	for f, names := range lists {
		for name := range strings.FieldsSeq(names) {
			all[name] = f
		}
	}
	return all
}

// variant is the name of a program with its version or its build: python3.12, perl5.36-x86_64-linux-gnu,
// bash-static, vim.tiny.
var variant = lazyregexp.New(`^([a-z]+)(?:[-.]?[0-9][0-9.]*[a-z]?(?:-[a-z0-9_]+)*|[-.](?:static|dbg|debug|tiny|nox|gtk|basic|` +
	`minimal|distrib|real|bin|original))?(?:\.(?:exe|com|cmd|bat))?$`)

// familyOf finds an interpreter by the last part of its path. It returns nil for an unknown program.
func familyOf(program string) (name string, f *family) {
	name = path.Base(strings.ToLower(strings.ReplaceAll(program, `\`, "/")))
	if f, known := families[name]; known {
		return name, f
	}
	if m := variant().FindStringSubmatch(name); m != nil {
		f = families[m[1]]
	}
	return name, f
}

// ReadsCode returns an error for an interpreter in a command line that would run its standard input as code, because
// no script follows it. It returns nil if there is no such interpreter. The interpreter may be anywhere in the line, because other
// programs may start it, or a command in the code of sh -c. The name that sh -c CODE NAME gives to its code is ignored.
func ReadsCode(args []string) error {
	for i, arg := range args {
		if i > 1 && commandOption().MatchString(args[i-1]) {
			if slices.ContainsFunc(args[:i-1], func(p string) bool { _, f := familyOf(p); return f == shells }) {
				if err := commandsReadCode(arg); err != nil {
					return err
				}
			}
		}
		name, f := familyOf(arg)
		if f == nil || f.first && i > 0 && args[i-1] != "--" || i > 2 && commandOption().MatchString(args[i-2]) ||
			f.hasScript(args[i+1:]) {
			continue
		}
		return fmt.Errorf("%s runs its standard input as code; give it a script", name)
	}
	return nil
}

// commandsReadCode is [ReadsCode] of the commands in the code of a shell that begin with an interpreter, or with a program that
// starts another one. A command with an input of its own is left out.
func commandsReadCode(code string) error {
	for command := range strings.FieldsFuncSeq(code, func(c rune) bool { return strings.ContainsRune(";|&\n(){}`", c) }) {
		args := strings.Fields(command)
		if len(args) == 0 || strings.Contains(command, "<") {
			continue
		}
		if _, f := familyOf(args[0]); f != nil || wrappers[args[0]] {
			if err := ReadsCode(args); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasScript reports whether the arguments of an interpreter contain code or name a file of code.
func (f *family) hasScript(args []string) bool {
	for i := 0; i < len(args) && !f.first; i++ {
		arg := args[i]
		letters, option := strings.CutPrefix(arg, "-")
		if !option {
			letters, option = strings.CutPrefix(arg, "+")
		}
		last, next := letters[max(0, len(letters)-1):], ""
		if i+1 < len(args) {
			next = args[i+1]
		}
		switch {
		case fromStdin(arg) && !f.isCode(arg, letters, option):
			return false
		case arg == "--" || arg == "":
		case !option:
			return true
		case strings.HasPrefix(letters, "-"):
			if codeOption().MatchString(letters) {
				return true
			}
			if valueOption().MatchString(letters) {
				i++
			}
		case strings.Contains(f.script, last):
			return next != "" && !(last == "m" && readsStdin[next]) &&
				(!fromStdin(next) || strings.Contains(f.codeLetters, last) && strings.ContainsAny(next, " \t\n;<("))
		case strings.ContainsAny(letters, f.stdin):
			return false
		case strings.Contains(f.value, last):
			i++
		}
	}
	return f.file
}

var (
	commandOption = lazyregexp.New(`^-[a-z]*c$`)
	codeOption    = lazyregexp.New(`^-(eval|execute|command|print|run|expression|file|source)(=|$)`)
	valueOption   = lazyregexp.New(`^-(rcfile|init-file|require|import|loader|conditions)$`)
)

// readsStdin lists modules of Python that run their standard input.
var readsStdin = map[string]bool{"code": true, "pdb": true, "bdb": true, "asyncio": true, "sqlite3": true, "IPython": true}

// isCode reports whether an argument is itself code, in which the name of a file is only a word.
func (f *family) isCode(arg, letters string, option bool) bool {
	_, code, is := strings.Cut(letters, "=")
	return !option && f.positional && arg != "-" || is && code != "" && codeOption().MatchString(letters) &&
		!strings.HasPrefix(letters, "-file") && !strings.HasPrefix(letters, "-source")
}

// fromStdin reports whether a file name means the standard input.
func fromStdin(arg string) bool {
	return arg == "-" || strings.Contains(arg, "/dev/stdin") || strings.Contains(arg, "/dev/fd/") || procFile().MatchString(arg)
}

var procFile = lazyregexp.New(`/proc/.*/fd/`)
