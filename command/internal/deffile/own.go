// SPDX-License-Identifier: Apache-2.0

package deffile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/program"
)

// Read reads a definition into a program: the program's own definition with this name, or else the file.
func Read(e *term.Env, p *program.Program, name string) (*definition.Definition, error) {
	src, own, err := ownDefinition(e, name)
	switch {
	case err != nil:
		return nil, err
	case own:
		return p.ReadOwn(name, src)
	}
	return p.Read(name)
}

// ownDefinition returns the program's own definition with a name. It fails if neither a definition nor a file has the name.
func ownDefinition(e *term.Env, name string) (src program.Source, own bool, err error) {
	all, err := e.Code.Own()
	if err != nil || len(all) == 0 {
		return src, false, err
	}
	if src, own = all[name]; own {
		return src, true, nil
	}
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		names := slices.Sorted(maps.Keys(all))
		return src, false, fmt.Errorf("the program has no definition %q (%s), and there is no file of this name", name, term.Meant(name, names))
	}
	return src, false, nil
}

// WithOnly adds the name of the program's only definition to the arguments of refrain run, if they name no definition: there
// are no arguments, or the only argument is a request of several words and not a file.
func WithOnly(e *term.Env, args []string) []string {
	if len(args) > 1 || len(args) == 1 && !strings.ContainsFunc(args[0], unicode.IsSpace) {
		return args
	}
	all, err := e.Code.Own()
	if err != nil || len(all) != 1 {
		return args
	}
	if len(args) == 1 {
		if _, err := os.Stat(args[0]); err == nil {
			return args
		}
	}
	return append(slices.Collect(maps.Keys(all)), args...)
}
