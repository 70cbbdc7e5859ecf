// SPDX-License-Identifier: Apache-2.0

package program

import (
	"strings"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// here has the ways of a shell to write the current folder, each with a path for it.
var here = strings.NewReplacer("$PWD", ".", "${PWD}", ".", "$(pwd)", ".", "`pwd`", ".")

// unquoted removes what a shell does not keep of a word.
var unquoted = strings.NewReplacer(`"`, "", "'", "", `\`, "")

// words splits what may be code for a shell. A placeholder stays part of its word, and its name is a word, too.
func words(code string) (all []string) {
	code = here.Replace(code)
	split := func(code, ends string) {
		all = append(all, strings.FieldsFunc(code, func(r rune) bool { return strings.ContainsRune(ends, r) })...)
	}
	const ends = " \t\r\n;|&()<>'\"`$=,:"
	split(code, ends+"{}")
	if strings.Contains(code, "{{") {
		split(code, ends)
	}
	if plain := unquoted.Replace(code); plain != code { // of which a part is quoted, as in "$PWD"/x.sh
		split(plain, ends+"{}")
	}
	return all
}

const (
	changers = `(?:cd|pushd|-C|--chdir|--directory|--cwd|--prefix)`
	folder   = `("[^"]*"|'[^']*'|(?:\{\{[^{}]*\}\}|\\.|[^\s;&|(){}<>\\])+)`
)

// change matches a word of a shell or an option of a known program (git, make, env, npm) that changes the folder, with the folder.
var change = lazyregexp.New(`(?:^|[\s;&|({])` + changers + `(?:\s+--)?(?:\s+|=)` + folder)

// changer matches such a word that is an argument of its own.
var changer = lazyregexp.New(`^` + changers + `$`)

// folders returns the folders that a command changes to, in their order.
func folders(args []string) (all []string) {
	add := func(dir string) {
		if dir = unquoted.Replace(here.Replace(dir)); dir != "" && dir != "-" {
			all = append(all, dir)
		}
	}
	for i, arg := range args {
		for _, m := range change().FindAllStringSubmatch(here.Replace(arg), -1) {
			add(m[1])
		}
		if i+1 < len(args) && changer().MatchString(arg) {
			add(args[i+1])
		}
	}
	return all
}
