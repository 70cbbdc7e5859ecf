// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v4"
)

// syntax reports an error of the YAML parser, with the usual cause as a hint.
func (r *reading) syntax(err error) {
	src := r.src
	e, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		r.wrong(Span{Src: src}, "%v", err).Err = err
		return
	}
	at := Span{src, max(e.Mark.Line, 1), max(e.Mark.Column, 1), 1}
	msg := e.Message
	if e.ContextMsg != "" {
		msg = e.ContextMsg + ": " + msg
	}
	if e.ContextMark.Line > 0 && strings.TrimSpace(src.Line(at.Line)) == "" {
		at.Line, at.Column = e.ContextMark.Line, max(e.ContextMark.Column, 1) // where an unfinished value begins
	}
	f := r.wrong(at, "not YAML: %s", msg)
	f.Err, f.Hint = err, syntaxHint(msg, src.Line(at.Line), src.from(at.Line, at.Column))
}

// syntaxHint returns a hint for a line that is not valid YAML. rest is the text at which the parser stopped.
func syntaxHint(msg, line, rest string) string {
	bare := strings.TrimSpace(line)
	switch {
	case strings.Contains(msg, "mapping values are not allowed"):
		return `a text with ": " in it needs quotes`
	case strings.HasPrefix(line, "\t"), strings.Contains(msg, "cannot start any token") &&
		strings.HasPrefix(bare, "\t"):
		return "indent with spaces, not with tabs"
	case strings.Contains(bare, "{{"):
		return `a text that begins with {{ needs quotes`
	case strings.Contains(msg, "unknown escape"):
		return `in double quotes \ begins an escape: use single quotes, or \\`
	case strings.Contains(msg, "unknown anchor"):
		return "an anchor is set before with &; a text that begins with * needs quotes"
	case strings.Contains(msg, "expected ':'"):
		return "a field is written name: value"
	case strings.Contains(msg, "cannot start any token") && strings.ContainsAny(first1(rest), "@`%"):
		return "a text that begins with " + first1(rest) + " needs quotes"
	case strings.Contains(msg, "did not find expected key") && strings.Count(bare, "'") > 2:
		return "in single quotes a quote is written twice, as in 'it''s'"
	}
	return ""
}

// first1 returns the first character of a text.
func first1(s string) string {
	for _, r := range s {
		return string(r)
	}
	return ""
}
