// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"strings"

	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/text/requesttemplate"
	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/values/fielderror"
)

// Read is one place where a template or an expression of a task names a key.
type Read struct {
	// Field is the field of the config, such as "Args[2]", "ExitWhen" or `Set["count"]`.
	Field string
	// Ref is the name and its place in the field. For an expression it has no place,
	// and the name is "key" for a key of state, and "prev.key" for a key of prev.
	template.Ref
	// Any reports that an expression may read every key of the state, because it
	// computes the key or uses the whole map. Name is then empty.
	Any bool
}

// source parses the templates and expressions of one config. It collects the keys that they read,
// and every mistake.
type source struct {
	reads []Read
	errs  []error

	keys    []string // the state keys that expressions read
	allKeys bool     // the expressions may read any key
}

func (s *source) add(err *fielderror.Error) { s.errs = append(s.errs, err) }

// report notes what is wrong with a value in a field.
func (s *source) report(field, format string, args ...any) {
	s.add(fielderror.New(field, format, args...))
}

// about notes a mistake in a sentence that begins with the field.
func (s *source) about(field, format string, args ...any) {
	s.add(fielderror.About(field, format, args...))
}

// template parses a template. It returns an empty template, and never nil, if the text is wrong.
func (s *source) template(field, text string, d template.Dialect) *template.Template {
	t, err := template.Parse(text, template.Options{Dialect: d})
	if err != nil {
		s.report(field, "%w", err)
		return new(template.Template)
	}
	for _, ref := range t.Keys() {
		if field == "ExitReason" && (ref.Name == "result" || strings.HasPrefix(ref.Name, "result.")) {
			continue
		}
		s.reads = append(s.reads, Read{Field: field, Ref: ref})
	}
	return t
}

// expression compiles an expression, and returns nil if the text is empty or wrong.
func (s *source) expression(field, text string, vars []expr.Var) expr.Program {
	if text == "" {
		return nil
	}
	p, err := expr.Compile(text, vars...)
	if err != nil {
		s.report(field, "%w", err)
		return nil
	}
	keys, all := p.Reads("state")
	s.keys, s.allKeys = append(s.keys, keys...), s.allKeys || all
	for _, root := range []struct{ variable, prefix string }{{"state", ""}, {"prev", "prev."}} {
		keys, all := p.Reads(root.variable)
		for _, key := range keys {
			s.reads = append(s.reads, Read{Field: field, Ref: template.Ref{Name: root.prefix + key}})
		}
		if all {
			s.reads = append(s.reads, Read{Field: field, Any: true})
		}
	}
	return p
}

// condition compiles a condition, which is true or false and may read the result of a
// task. It returns nil if the text is empty or wrong.
func (s *source) condition(field, text string) expr.Program {
	p := s.expression(field, text, Variables())
	if p == nil {
		return nil
	}
	if t := p.Type(); t != expr.Bool && t != expr.Dyn {
		s.report(field, "%s is of type %s, not true or false", text, t)
	}
	return p
}

// templates returns a parser for the templates of a request. The parser adds its results and errors to s.
func (s *source) templates() requesttemplate.Parser {
	return requesttemplate.Parser{
		Template: func(field, text string) *template.Template { return s.template(field, text, template.Mustache) },
		Report:   s.add,
	}
}
