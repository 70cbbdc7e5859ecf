// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"errors"
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/internal/interpreter"
	"github.com/refrain-dev/refrain/template"
)

// FreePrefix is the prefix of environment variables that may hold any text, because no program reads
// such a variable as a setting.
const FreePrefix = "INPUT_"

// free reports whether a variable may hold any text.
func free(name string) bool {
	return len(name) > len(FreePrefix) && strings.HasPrefix(name, FreePrefix)
}

// checkCode refuses placeholders where their values could be an option, a setting or code.
func (a *CommandAgent) checkCode(s *source) {
	if a.cfg.Unsafe {
		return
	}
	for i, t := range a.args {
		a.checkShapes(s, fmt.Sprintf("Args[%d]", i), t, i == 0)
	}
	a.checkShapes(s, "Dir", a.dir, false)
	for _, v := range a.env {
		if !free(v.name) {
			a.checkShapes(s, fmt.Sprintf("Env[%q]", v.name), v.value, false)
		}
	}
	if len(a.stdin.Keys()) > 0 && a.cfg.CLI == nil {
		if err := interpreter.ReadsCode(a.cfg.Args); err != nil {
			s.errorf("Stdin: %w, or say unsafe: true if you know what the value can be", err)
		}
	}
}

// checkShapes reports the placeholders of a template whose shape is not declared. A program is chosen by
// declared choices only.
func (a *CommandAgent) checkShapes(s *source, field string, t *template.Template, program bool) {
	seen := make(map[string]bool)
	for _, ref := range t.Keys() {
		shape := a.cfg.shape(ref.Name)
		if !seen[ref.Name] && (shape.Free() || program && len(shape.Choices) == 0) {
			s.errs = append(s.errs, &ShapeError{Field: field, Name: ref.Name, Shape: shape})
		}
		seen[ref.Name] = true
	}
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

// filling fills the templates of one process.
type filling struct {
	cfg    *CommandConfig
	lookup func(string) (any, bool)
	p      *process
}

// fill fills the template of an argument or of a variable, which the system ends at a zero byte. Here, and
// nowhere else, a value becomes a part of a command: each is checked as it is put in, unless the variable
// may hold any text.
func (f *filling) fill(field string, t *template.Template, free bool) (string, error) {
	var files []span
	check := func(name string, v any, at int) error {
		shape := f.cfg.shape(name)
		if shape.Free() {
			return &ShapeError{Field: field, Name: name, Shape: shape}
		}
		err := shape.Check(v)
		if err == nil && at == 0 {
			err = shape.checkStart(v)
		}
		if err != nil {
			return &ValueError{Field: field, Name: name, Err: err}
		}
		if text, _ := scalar(v); shape.Type == ShapeFile {
			files = append(files, span{at, at + len(text)})
		}
		return nil
	}
	if free || f.cfg.Unsafe {
		check = nil
	}
	res, err := t.FillChecked(f.lookup, check)
	if err == nil && strings.Contains(res.Text, "\x00") {
		err = errors.New("a value has a zero byte in it")
	}
	if err != nil {
		if _, named := errors.AsType[*ValueError](err); !named {
			err = fmt.Errorf("%s: %w", field, err)
		}
		return "", err
	}
	if field == "Dir" { // workDir looks where it leads
		return res.Text, nil
	}
	for _, at := range files {
		for _, path := range at.paths(res.Text) {
			if isInside(path) { // else the author's own text leads elsewhere
				f.p.Files = append(f.p.Files, path)
			}
		}
	}
	return res.Text, nil
}

// span is the place of a value in a text.
type span struct{ from, to int }

// paths returns the strings that a program may take for the path with the value: "src/a.go" for the value
// a.go in "--file=src/a.go", and both "-fa.go" and "a.go" in "-fa.go".
func (s span) paths(text string) []string {
	const apart = "=:,;@ "
	from := 1 + strings.LastIndexAny(text[:s.from], apart)
	to := len(text)
	if i := strings.IndexAny(text[s.to:], apart); i >= 0 {
		to = s.to + i
	}
	if strings.HasSuffix(text[from:s.from], "/") {
		return []string{text[from:to]}
	}
	return []string{text[from:to], text[s.from:s.to]}
}
