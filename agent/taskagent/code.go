// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/template"
)

var (
	// shells run the argument after -c as code; windowsShells run all that
	// follow.
	shells        = []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh"}
	windowsShells = []string{"cmd", "powershell", "pwsh"}
	// wrappers run a program that is named among their arguments.
	wrappers = []string{"env", "sudo", "doas", "nice", "nohup", "timeout", "setsid", "stdbuf", "time", "xargs", "busybox"}

	// withValue are options of shells whose value is the next argument.
	withValue = regexp.MustCompile(`^[-+][a-zA-Z]*[oO]$|^--(rcfile|init-file)$`)
)

// checkCode refuses placeholders where a value would be a program or its code.
func checkCode(args []string, templates []*template.Template, s *source) {
	if len(args) == 0 {
		return
	}
	if len(templates[0].Keys()) > 0 {
		s.errorf("Args[0]: the program's name has a placeholder: a value cannot choose what runs")
		return
	}
	at := 0
	if slices.Contains(wrappers, program(args[0])) {
		at = slices.IndexFunc(args, func(arg string) bool {
			return slices.Contains(shells, program(arg)) || slices.Contains(windowsShells, program(arg))
		})
	}
	if at < 0 {
		return
	}
	end := 0
	switch name := program(args[at]); {
	case slices.Contains(shells, name):
		end = scriptEnd(args, at+1)
	case slices.Contains(windowsShells, name):
		end = len(args)
	}
	for i := at + 1; i < end; i++ {
		if len(templates[i].Keys()) > 0 {
			s.errorf(`Args[%d]: a value in the script of a shell would be run as code; write "$1" there and add the placeholder as an argument: sh -c SCRIPT sh {{key}}`, i)
		}
	}
}

// scriptEnd is the index after a shell's script, be it a file or the code after
// -c: the first argument that is no option.
func scriptEnd(args []string, from int) int {
	for i := from; i < len(args); i++ {
		switch {
		case withValue.MatchString(args[i]):
			i++
		case !strings.HasPrefix(args[i], "-") && !strings.HasPrefix(args[i], "+"):
			return i + 1
		}
	}
	return len(args)
}

// program is the bare name of a program.
func program(arg string) string {
	name := path.Base(strings.ToLower(strings.ReplaceAll(arg, `\`, "/")))
	return strings.TrimSuffix(name, ".exe")
}
