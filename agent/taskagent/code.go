// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"errors"
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/internal/interpreter"
	"github.com/refrain-dev/refrain/internal/lazyregexp"
	"github.com/refrain-dev/refrain/template"
)

// onePlaceholder is an argument that is a value and nothing else.
var onePlaceholder = lazyregexp.New(`^\{\{\{?&?\s*[^{}#^/!&\s]+\s*\}?\}\}$`)

var errPart = errors.New("a value may only be a whole argument; give it one of its own, " +
	`or join the parts in a script: sh -c 'cat "$1/$2"' sh {{a}} {{b}}`)

// checkCode refuses placeholders where a value could be run as code. With Unsafe,
// only the program's name has none.
func (a *CommandAgent) checkCode(s *source) {
	before := len(s.errs)
	has := func(t *template.Template) bool { return len(t.Keys()) > 0 }
	use := interpreter.Of(a.cfg.Args, func(i int) bool { return !has(a.args[i]) })
	for i, t := range a.args {
		if !has(t) || i > 0 && a.cfg.Unsafe {
			continue
		}
		switch place, err := use.Arg(i); {
		case i == 0:
			s.errorf("Args[0]: %w", err)
			return
		case place == interpreter.None:
			a.refuse(s, fmt.Sprintf("Args[%d]", i), err)
		case place == interpreter.Whole && !onePlaceholder().MatchString(strings.TrimSpace(a.cfg.Args[i])):
			a.refuse(s, fmt.Sprintf("Args[%d]", i), errPart)
		}
	}
	if a.cfg.Unsafe {
		return
	}
	if has(a.stdin) && len(s.errs) == before {
		if err := use.Stdin(); err != nil {
			a.refuse(s, "Stdin", err)
		}
	}
	for _, v := range a.env {
		if has(v.value) && !interpreter.Variable(v.name) {
			a.refuse(s, fmt.Sprintf("Env[%q]", v.name),
				fmt.Errorf("programs take %s for code, or for where their code is; give the value a name of its own",
					v.name))
		}
	}
}

func (a *CommandAgent) refuse(s *source, field string, why error) {
	s.errorf("%s: %w; or say unsafe: true, if you know what it can hold", field, why)
}

// NeedsUnsafe reports whether the command would be refused without Unsafe.
func (a *CommandAgent) NeedsUnsafe() bool {
	if !a.cfg.Unsafe {
		return false
	}
	var s source
	safe := *a
	safe.cfg.Unsafe = false
	safe.checkCode(&s)
	return len(s.errs) > 0
}
