// SPDX-License-Identifier: Apache-2.0

package scripted

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"go.yaml.in/yaml/v4"
)

// SyntaxError is a mistake in a script.
type SyntaxError struct {
	// File is the file's name; empty if the script came from none.
	File string
	// Line and Column count from 1.
	Line, Column int
	Msg          string
}

// Error returns file:line:column: message.
func (e *SyntaxError) Error() string {
	file := e.File
	if file == "" {
		file = "script"
	}
	return fmt.Sprintf("%s:%d:%d: %s", file, e.Line, e.Column, e.Msg)
}

// Load reads a script from a file and returns its model. Errors are those of os.ReadFile, and a
// [*SyntaxError] for an invalid script.
func Load(path string) (*Model, error) {
	data, err := os.ReadFile(path)
	return load(path, data, err)
}

// LoadFS does what [Load] does for a file of a file system, such as that of an os.Root, which no link
// leads out of.
func LoadFS(fsys fs.FS, name string) (*Model, error) {
	data, err := fs.ReadFile(fsys, name)
	return load(name, data, err)
}

func load(name string, data []byte, err error) (*Model, error) {
	if err != nil {
		return nil, fmt.Errorf("load script: %w", err)
	}
	script, err := Parse(data)
	if wrong, ok := errors.AsType[*SyntaxError](err); ok {
		wrong.File = name
	}
	if err != nil {
		return nil, err
	}
	return New(script)
}

// Parse reads a script in YAML or JSON. It fails with a *SyntaxError.
func Parse(data []byte) (script Script, err error) {
	defer func() {
		// The parser is a foreign library, and the text is not trusted.
		if r := recover(); r != nil {
			script, err = Script{}, &SyntaxError{Line: 1, Column: 1,
				Msg: fmt.Sprintf("this is not YAML that can be read: %v", r)}
		}
	}()
	var file struct {
		Name       string      `yaml:"name"`
		Answers    []yaml.Node `yaml:"answers"`
		RepeatLast bool        `yaml:"repeat_last"`
	}
	if err := yaml.Load(data, &file, yaml.WithKnownFields()); err != nil && len(bytes.TrimSpace(data)) > 0 {
		return Script{}, syntax(err, 1, 1)
	}
	script = Script{Name: file.Name, RepeatLast: file.RepeatLast}
	if len(file.Answers) == 0 {
		return Script{}, &SyntaxError{Line: 1, Column: 1, Msg: "a script needs answers"}
	}
	for _, n := range file.Answers {
		var a Answer
		if err := n.Load(&a, yaml.WithKnownFields()); err != nil {
			return Script{}, syntax(err, n.Line, n.Column)
		}
		a, err := a.normal()
		if err != nil {
			return Script{}, &SyntaxError{Line: n.Line, Column: n.Column, Msg: err.Error()}
		}
		script.Answers = append(script.Answers, a)
	}
	return script, nil
}

// syntax takes the place of an error from the parser's, if it has one.
func syntax(err error, line, column int) *SyntaxError {
	e := &SyntaxError{Line: max(line, 1), Column: max(column, 1), Msg: err.Error()}
	if le, ok := errors.AsType[*yaml.LoadError](err); ok {
		e.Msg = explain(le.Message)
		if le.ContextMsg != "" {
			e.Msg = le.ContextMsg + ": " + e.Msg
		}
		if le.Mark.Line > 0 {
			e.Line, e.Column = le.Mark.Line, max(le.Mark.Column, 1)
		}
	}
	return e
}
