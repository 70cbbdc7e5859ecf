// SPDX-License-Identifier: Apache-2.0

// Package deffile makes runnable programs of the definitions that the command line names.
package deffile

import (
	"fmt"

	"github.com/refrain-dev/refrain/cmd/refrain/internal/term"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/definition/dialect"
)

// Load reads a definition, or a file of another product with a note
// that it is one.
func Load(e *term.Env, file string) (*definition.Definition, error) {
	def, _, err := LoadWithOrigin(e, file)
	return def, err
}

// LoadWithOrigin is Load, and says where what a file of another product was made
// into stands in that file.
func LoadWithOrigin(e *term.Env, file string) (*definition.Definition, Origin, error) {
	release, err := term.EndsReading(e)
	defer release()
	if err != nil {
		return nil, Origin{}, &term.Exit{Code: term.ExitInterrupted, Err: err}
	}
	def, err := definition.Load(file)
	if err == nil {
		return def, Origin{}, nil
	}
	res, note, err := asDefinition(file, err)
	if note != "" {
		fmt.Fprintln(e.Stderr, note)
	}
	if err != nil {
		return nil, Origin{}, err
	}
	return res.Definition, Origin{res}, nil
}

// asDefinition makes a definition of a file that is none, for the reason that
// err gives, if it is one of another product. The note says that it is.
func asDefinition(file string, err error) (res *dialect.Result, note string, _ error) {
	res, other := dialect.Load(file, dialect.Options{})
	if other != nil {
		return nil, "", err
	}
	r := res.Report
	note = fmt.Sprintf("%s: note: this is %s: %d changed, %d left out; refrain import says what",
		file, r.Dialect.Title(), r.Count(dialect.Changed), r.Count(dialect.Dropped))
	if err := res.Err(); err != nil {
		if res.YAML == nil {
			note = "" // the error says that, and more
		}
		return nil, note, err
	}
	return res, note, nil
}
