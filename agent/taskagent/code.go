// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/internal/process/interpreter"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// FreePrefix is the prefix of environment variables that may hold any text, because no program reads
// such a variable as a setting.
const FreePrefix = "INPUT_"

// free reports whether a variable may hold any text.
func free(name string) bool {
	return len(name) > len(FreePrefix) && strings.HasPrefix(name, FreePrefix)
}

// checkCode adds an error to s for each placeholder whose value could become an option, a setting or code.
func (a *CommandAgent) checkCode(s *source) {
	if a.cfg.Unsafe {
		return
	}
	code := a.codeArgs()
	for i, t := range a.args {
		in := argument
		switch {
		case i == 0:
			in = program
		case code[i]:
			in = inCode
		}
		a.checkShapes(s, fmt.Sprintf("Args[%d]", i), t, in)
	}
	a.checkShapes(s, "Dir", a.dir, folder)
	for _, v := range a.env {
		in := argument
		if interpreter.CodeVariable(v.name) {
			in = inCode
		}
		if !free(v.name) {
			a.checkShapes(s, fmt.Sprintf("Env[%q]", v.name), v.value, in)
		}
	}
	if len(a.stdin.Keys()) > 0 && a.cfg.CLI == nil {
		if err := interpreter.ReadsCode(a.cfg.Args); err != nil {
			s.report("Stdin", "%w, or say unsafe: true if you know what the value can be", err)
		}
	}
}

// codeArgs reports for each argument whether a known interpreter reads it as code. If a placeholder in an argument has
// declared choices, codeArgs tries each of them as that argument.
func (a *CommandAgent) codeArgs() []bool {
	code := interpreter.Code(a.cfg.Args)
	for i, t := range a.args {
		refs := t.Keys()
		if len(refs) != 1 {
			continue
		}
		for _, choice := range a.cfg.shape(refs[0].Name).Choices {
			args := slices.Clone(a.cfg.Args)
			args[i] = choice
			for j, is := range interpreter.Code(args) {
				code[j] = code[j] || is
			}
		}
	}
	return code
}

// checkOpen adds an error to s for each name in Open that opens no file.
func (a *CommandAgent) checkOpen(s *source) {
	used := make(map[string]bool)
	for _, t := range a.args {
		for _, ref := range t.Keys() {
			used[ref.Name] = true
		}
	}
	for _, v := range a.env {
		for _, ref := range v.value.Keys() {
			used[ref.Name] = used[ref.Name] || !free(v.name)
		}
	}
	for i, name := range a.cfg.Open {
		switch {
		case a.cfg.Unsafe:
			s.report(fmt.Sprintf("Open[%d]", i), "an unsafe command gets all values as they are, so it has no open files")
		case !a.cfg.shape(name).path():
			s.report(fmt.Sprintf("Open[%d]", i), "%q is not the path of a file or folder: declare it with type: file or type: folder", name)
		case !used[name]:
			s.report(fmt.Sprintf("Open[%d]", i), "no argument, and no variable of the command, has {{%s}}", name)
		}
	}
}

// place is the part of a command in which a value stands.
type place int

const (
	argument place = iota // an argument or a variable
	program               // the program's name
	inCode                // an argument or variable that an interpreter reads as code
	folder                // the working directory
)

// checkShapes reports the placeholders of a template whose shape is not declared or does not suffice for their place.
func (a *CommandAgent) checkShapes(s *source, field string, t *template.Template, in place) {
	apart := apartFrom(t)
	seen := make(map[string]bool)
	for _, ref := range t.Keys() {
		shape := a.cfg.shape(ref.Name)
		if err := misplacement(field, ref.Name, shape, in, apart[ref.Name]); !seen[ref.Name] && err != nil {
			s.errs = append(s.errs, err)
		}
		seen[ref.Name] = true
	}
}

// misplacement returns a [*ShapeError] if values of a shape may not stand at a place; nil if they may. apart reports that
// other text stands beside the value, so that it cannot be a path; see stands.
func misplacement(field, name string, shape Shape, in place, apart bool) error {
	e := &ShapeError{Field: field, Name: name, Shape: shape, in: in}
	switch {
	case shape.Free():
		e.Code = in == inCode
	case in == program && len(shape.Choices) == 0:
	case in == inCode && !shape.literal():
		e.Code = true
	case in == folder && shape.Type == ShapeFile && len(shape.Choices) == 0:
		e.why = "the command starts in a folder: declare it with type: folder"
	case in == argument && apart && shape.path():
		e.why = `a path is a whole argument, or stands behind "=" at its end, as in --file={{` + name + `}}; it begins with ./ by itself`
	default:
		return nil
	}
	return e
}

// apartFrom returns the names of the placeholders in a template that have other text beside them, so that their values cannot
// be paths; see stands.
func apartFrom(t *template.Template) map[string]bool {
	const mark = "\x01"
	type value struct{ name, before string }
	var all []value
	res, err := t.FillChecked(func(string) (any, bool) { return mark, true }, func(name string, v any, before string) (any, error) {
		all = append(all, value{name, before})
		return v, nil
	})
	apart := make(map[string]bool)
	if err != nil {
		return apart // the error appears again when the command fills the template
	}
	for _, v := range all {
		if strings.HasPrefix(res.Text[len(v.before):], mark) && !stands(v.before, res.Text[len(v.before)+len(mark):]) {
			apart[v.name] = true
		}
	}
	return apart
}

// stands reports whether a path may stand between two texts in an argument: nothing may follow it, and only nothing or the name
// of a setting with "=" may be before it.
func stands(before, behind string) bool {
	return behind == "" && (before == "" || settingName().MatchString(before))
}

// settingName matches what may stand before a path in an argument: "--file=", "if=", "-Dconf.file=".
var settingName = lazyregexp.New(`\A[-\w.,:/+@%=]*[\w]=\z`)

// LoosePattern describes a placeholder in a command whose declared pattern lets dangerous texts through.
type LoosePattern struct {
	Field, Name string // as in a [ShapeError]
	Pattern     string
	Permits     []string // as [Shape.Permits] names them
}

// LoosePatterns lists the placeholders in arguments, variables and the folder whose pattern lets dangerous texts
// through, in the order of the fields. An unsafe command has none, because no pattern limits its values.
func (a *CommandAgent) LoosePatterns() (all []LoosePattern) {
	if a.cfg.Unsafe {
		return nil
	}
	list := func(field string, t *template.Template) {
		seen := make(map[string]bool)
		for _, ref := range t.Keys() {
			shape := a.cfg.shape(ref.Name)
			if permits := shape.Permits(); len(permits) > 0 && !seen[ref.Name] {
				all = append(all, LoosePattern{field, ref.Name, shape.Pattern, permits})
			}
			seen[ref.Name] = true
		}
	}
	for i, t := range a.args {
		list(fmt.Sprintf("Args[%d]", i), t)
	}
	list("Dir", a.dir)
	for _, v := range a.env {
		if !free(v.name) {
			list(fmt.Sprintf("Env[%q]", v.name), v.value)
		}
	}
	return all
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

	args  []string // the filled arguments, with {{}} in place of each value that is not literal
	loose []string // for each argument the name of its last such value; "" if it has none
}

// fill fills the template of an argument, a variable or the working directory. This is the only place where a value
// becomes a part of a command. fill checks each value as it inserts it, unless free reports that the variable may
// hold any text. A zero byte is an error, because the system ends arguments and variables there.
func (f *filling) fill(field string, t *template.Template, in place, free bool) (string, error) {
	var all []span
	check := func(name string, v any, before string) (any, error) {
		shape := f.cfg.shape(name)
		if err := misplacement(field, name, shape, in, false); err != nil {
			return nil, err
		}
		err := shape.Check(v)
		if err == nil && before == "" && !shape.path() {
			err = shape.checkStart(v)
		}
		if err != nil {
			return nil, &ValueError{Field: field, Name: name, Err: err}
		}
		text, _ := scalar(v)
		if shape.path() {
			if text = strings.TrimPrefix(text, "./"); text == "" || in != folder {
				text = "./" + text
			}
			v = text
		}
		s := span{name: name, shape: shape, from: len(before), text: text}
		if in == argument && slices.Contains(f.cfg.Open, name) && shape.path() {
			s.text, s.open = f.p.opens(text, shape.Type == ShapeFolder), true
			v = s.text
		}
		all = append(all, s)
		return v, nil
	}
	if free || f.cfg.Unsafe {
		check = nil
	}
	res, err := t.FillChecked(f.lookup, check)
	if err == nil && strings.Contains(res.Text, "\x00") {
		err = errors.New("a value has a zero byte in it")
	}
	if err != nil {
		_, named := errors.AsType[*ValueError](err)
		if _, shapeless := errors.AsType[*ShapeError](err); !named && !shapeless {
			err = fmt.Errorf("%s: %w", field, err)
		}
		return "", err
	}
	neutral, loose, at := strings.Builder{}, "", 0
	for _, s := range all {
		behind, written := strings.CutPrefix(res.Text[s.from:], s.text)
		if !written { // the value of a section, which is not inserted itself
			continue
		}
		if err := misplacement(field, s.name, s.shape, in, !stands(res.Text[:s.from], behind)); err != nil {
			return "", err
		}
		switch {
		case in == folder:
			f.p.DirChosen = f.p.DirChosen || !s.shape.literal()
		case s.open || !s.shape.path():
		case s.shape.Type == ShapeFolder:
			f.p.Folders = append(f.p.Folders, s.text)
		default:
			f.p.Files = append(f.p.Files, s.text)
		}
		if !s.shape.literal() && s.from >= at {
			neutral.WriteString(res.Text[at:s.from] + "{{}}")
			loose, at = s.name, s.from+len(s.text)
		}
	}
	if in == argument || in == program {
		neutral.WriteString(res.Text[at:])
		f.args, f.loose = append(f.args, neutral.String()), append(f.loose, loose)
	}
	return res.Text, nil
}

// span is a value in a filled text.
type span struct {
	name  string
	shape Shape
	from  int // the offset of the value in the text, in bytes
	text  string
	open  bool // text is the name of an open file, and not the path itself
}

// checkArgs returns an error if an argument with a value is code for the program that now runs. checkCode cannot know this
// if a choice selects the program.
func (f *filling) checkArgs() error {
	if f.cfg.Unsafe {
		return nil
	}
	for i, code := range interpreter.Code(f.args) {
		if code && f.loose[i] != "" && i > 0 {
			return misplacement(fmt.Sprintf("Args[%d]", i), f.loose[i], f.cfg.shape(f.loose[i]), inCode, false)
		}
	}
	return nil
}
