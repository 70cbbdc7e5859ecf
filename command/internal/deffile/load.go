// SPDX-License-Identifier: Apache-2.0

// Package deffile makes programs from the definitions that the command line names.
package deffile

import (
	"fmt"

	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/program"
)

// Load reads a definition. For a file of another product it prints a note.
func Load(e *term.Env, file string) (*definition.Definition, error) {
	def, _, err := LoadWithOrigin(e, file)
	return def, err
}

// LoadWithOrigin reads a definition as [Load] does. The origin maps places in the definition to places in the file of another
// product.
func LoadWithOrigin(e *term.Env, file string) (*definition.Definition, Origin, error) {
	release, err := term.EndsReading(e)
	defer release()
	if err != nil {
		return nil, Origin{}, &term.Exit{Code: term.ExitInterrupted, Err: err}
	}
	if src, own, err := ownDefinition(e, file); own || err != nil {
		if err != nil {
			return nil, Origin{}, err
		}
		def, err := new(program.Program).ReadOwn(file, src)
		return def, Origin{}, err
	}
	def, err := definition.Load(file)
	if err == nil {
		return def, Origin{}, nil
	}
	res, note, err := program.Translate(file, err)
	if note != "" {
		fmt.Fprintln(e.Stderr, note)
	}
	if err != nil {
		return nil, Origin{}, err
	}
	return res.Definition, Origin{res}, nil
}
