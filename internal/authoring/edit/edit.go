// SPDX-License-Identifier: Apache-2.0

// Package edit changes values in the text of a definition and keeps all other text, including comments and layout. A form
// in a page, or a program that tries variants of a loop, uses it.
//
//	e, err := edit.New(data)
//	if err != nil {
//		return err
//	}
//	if err := e.Set("max_iterations", 8); err != nil {
//		return err
//	}
//	data = e.Bytes()
package edit

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// Editor changes values in the text of a definition and keeps everything else: comments, empty lines, order, quotes,
// indentation, line ends.
//
//	e, err := edit.New(data)
//	if err != nil {
//		return err
//	}
//	if err := e.Set("score.target", 8.5); err != nil {
//		return err
//	}
//	if err := e.Move("sub_agents", 2, 0); err != nil {
//		return err
//	}
//	os.WriteFile(name, e.Bytes(), 0o644)
//
// A path names a value: max_iterations, score.target, sub_agents[1].text,
// prices["openai/gpt-4.1"].input; [FieldPath] writes one. A value is text, a number,
// true or false, nil, a list or a map of such, any other Go value that can be written as YAML,
// or [YAML], which is inserted as it is. Text of several lines is written as a block with |,
// or with > if the field already uses that.
//
// A comment belongs to the value below it without an empty line between, or to the value before
// it in the same line; a deeper comment belongs to the enclosing value. Comments move with their
// value and are removed with it. Text above the first field of the file stays there.
//
// After each operation the Editor checks that the text has the new value, and that
// no other value has changed. If not, it keeps the old text and returns
// an [*Error] with the position. This happens with anchors, aliases and merges, because an edit of one
// value would change another one. Use [definition.Parse] to check the text as a definition.
//
// An Editor is not safe for concurrent use.
type Editor struct {
	mark  bool // the text begins with a byte order mark
	sheet *sheet
}

// New parses a text. The error is [definition.Problems] if the text is not YAML, or larger than a definition can be.
func New(data []byte) (*Editor, error) {
	s, err := newSheet(data)
	if err != nil {
		return nil, err
	}
	return &Editor{mark: bytes.HasPrefix(data, []byte(byteOrderMark)), sheet: s}, nil
}

// Bytes returns the current text. It belongs to the caller.
func (e *Editor) Bytes() []byte {
	if e.mark {
		return []byte(byteOrderMark + e.sheet.Text)
	}
	return []byte(e.sheet.Text)
}

// Error reports why an edit was not made.
type Error struct {
	// Op and Path are the requested edit, such as "set" and "score.target".
	Op, Path string
	// Line and Column are the position that prevents the edit, from 1, in characters; they are 0 if the text has no
	// such position.
	Line, Column int
	// Err is the reason.
	Err error
}

// Error returns a text such as "set score.target: 3:8: the reason".
func (e *Error) Error() string {
	at := ""
	if e.Line > 0 {
		at = fmt.Sprintf("%d:%d: ", e.Line, e.Column)
	}
	return strings.TrimSpace(e.Op+" "+brief.Printable(e.Path)) + ": " + at + e.Err.Error()
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// attempt is one way of doing an operation: the pieces that it replaces, and what the
// text then has to say.
type attempt struct {
	pieces []splice
	want   *yaml.Node
}

// do carries out an operation. If the result is not what was asked for, it tries again with all texts in quotes.
func (e *Editor) do(op, path string, way func(quotes bool) (attempt, error)) error {
	err := errors.New("the text is not UTF-8")
	if utf8.ValidString(path) {
		if err = e.try(way(false)); err != nil && e.try(way(true)) == nil {
			return nil
		}
	}
	if err == nil {
		return nil
	}
	out := &Error{Op: op, Path: path, Err: err}
	if at, ok := errors.AsType[*Error](err); ok {
		out.Line, out.Column, out.Err = at.Line, at.Column, at.Err
	}
	return out
}

// try makes an attempt.
func (e *Editor) try(a attempt, err error) error {
	if err != nil || a.want == e.sheet.root {
		return err
	}
	text := e.sheet.part(0, len(e.sheet.Text), a.pieces)
	err = e.accept(text, a.want)
	if brk := e.sheet.pen.brk; err != nil && !strings.HasSuffix(text, brk) && e.accept(text+brk, a.want) == nil {
		return nil // the lines of a text behind | have to end
	}
	return err
}

// accept makes a text the one that is edited, if it says what it has to.
func (e *Editor) accept(text string, want *yaml.Node) error {
	if len(text) > source.MaxFile {
		return errors.New("the text would be larger than 1 MiB")
	}
	after, err := newSheet([]byte(text))
	if err != nil {
		return fmt.Errorf("the new value cannot be written there; edit the file by hand (%w)", err)
	}
	if at := differs(want, after.root); at != nil {
		return after.fail(at, "the new value cannot be written there without changing another one; edit the file by hand")
	}
	e.sheet = after
	return nil
}

// document is a text with its one value.
func document(data []byte) (*source.Source, *yaml.Node, error) {
	src := source.New("definition", "definition", 0, "")
	n, faults := source.Read(bytes.NewReader(data), src, new(int))
	if n != nil {
		return src, n, nil
	}
	var problems definition.Problems
	for _, f := range faults {
		p := &definition.Problem{
			File: src.Name, Line: f.At.Line, Column: f.At.Column, Length: f.At.Length,
			Severity: definition.SeverityError, Code: definition.CodeSyntax, Message: f.Message, Hint: f.Hint,
			Excerpt: src.Excerpt(f.At.Line),
		}
		if f.OfFile {
			p.Code = definition.CodeFile
		}
		problems = append(problems, p)
	}
	return nil, nil, problems
}
