// SPDX-License-Identifier: Apache-2.0

package operations

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/program"
)

// Described is the description of a definition that a client gets.
type Described struct {
	Name string `json:"name"`
	File string `json:"file"`
	ETag string `json:"etag"`
	// Title, Description and Type are those of the root agent; they are empty if the definition has
	// errors.
	Title       string              `json:"title,omitempty"`
	Description string              `json:"description,omitempty"`
	Type        definition.Type     `json:"type,omitempty"`
	Valid       bool                `json:"valid"`
	Inputs      []definition.Input  `json:"inputs,omitempty"`
	Problems    definition.Problems `json:"problems,omitempty"`
	Text        string              `json:"text,omitempty"`
}

// Load reads a text as the definition in a file of the folder. files holds the files that the
// definition may refer to.
func Load(files fs.FS, file string, text []byte) (*program.Program, *definition.Definition, error) {
	p := new(program.Program)
	def, err := p.ReadIn(files, file, file, text)
	return p, def, err
}

// Describe returns the description of a definition. For a file without a definition, ok is false.
func (r *Runs) Describe(name, file string, text []byte) (d *Described, ok bool) {
	d = &Described{Name: name, File: file, ETag: TagOf(text)}
	def, err := r.Folder.Load(file, text)
	if err != nil {
		if all, is := errors.AsType[definition.Problems](err); is {
			d.Problems = all
		} else {
			d.Problems = definition.Problems{{File: file, Severity: definition.SeverityError, Code: definition.CodeFile, Message: err.Error()}}
		}
		return d, looksLikeOne(text)
	}
	d.Title, d.Description, d.Type, d.Valid = def.Root.Shown(), def.Description, def.Root.Type, true
	d.Problems, d.Inputs = slices.Concat(def.Warnings(), def.Notes()), def.Inputs
	return d, true
}

// looksLikeOne reports whether a text with mistakes is meant to be a definition.
func looksLikeOne(text []byte) bool {
	for line := range strings.Lines(string(text)) {
		for _, field := range []string{"sub_agents:", "instructions:", "max_iterations:", "agent_class:", "command:", "question:"} {
			if strings.HasPrefix(line, field) {
				return true
			}
		}
	}
	return false
}

// Definitions describes all definitions of the folder.
func (r *Runs) Definitions() ([]*Described, error) {
	names, files, err := r.Folder.List()
	if err != nil {
		return nil, err
	}
	all := []*Described{}
	for _, name := range names {
		text, err := r.Folder.ReadFile(files[name])
		if err != nil {
			continue
		}
		if d, ok := r.Describe(name, files[name], text); ok {
			all = append(all, d)
		}
	}
	return all, nil
}
