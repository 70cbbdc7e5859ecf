// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/text/template"
)

func TestErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"{{#a}}", "1:1: section {{#a}} is not closed"},
		{"x\n  {{^a}}", "2:3: section {{^a}} is not closed"},
		{"{{/a}}", "1:1: {{/a}} closes a section that is not open"},
		{"{{#a}}{{#b}}{{/a}}", "1:7: section {{#b}} is not closed before {{/a}} at 1:13"},
		{"{{#a}}{{/b}}", "1:1: section {{#a}} is not closed\n1:7: {{/b}} closes a section that is not open"},
		{"é {{a", "1:3: {{a is not closed by }}"},
		{"{{a}", "1:1: {{a is not closed by }}"},
		{"{{{a}}", "1:1: {{{a is not closed by }}}"},
		{"{{&a", "1:1: {{&a is not closed by }}"},
		{"{{#if x}}", "1:1: {{# needs the name of a key and then }}"},
		{"{{! x", "1:1: comment is not closed by }}"},
		{"{{> part}}", "1:1: partials and blocks do not exist: {{>part}}"},
		{"{{=<% %>=}}", "1:1: the delimiters {{ }} cannot be changed"},
		{"{{a\n{{> p}}\n{{/c}}", "2:1: partials and blocks do not exist: {{>p}}\n3:1: {{/c}} closes a section that is not open"},
	} {
		tmpl, err := template.Parse(tt.text, template.Options{})
		if err == nil || tmpl != nil {
			t.Errorf("Parse(%q) = %v, %v, want an error", tt.text, tmpl, err)
			continue
		}
		if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
			t.Errorf("Parse(%q): %s", tt.text, diff)
		}
		if first, ok := errors.AsType[*template.Error](err); !ok || first.Line == 0 || first.Column == 0 {
			t.Errorf("Parse(%q): no *Error with a position in %#v", tt.text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "{{a}} {b?} {{{c}}}", "{{#a}}\n{{.}}{{^b}}x{{/b}}\n{{/a}}", "{{! c }}{{> p}}{{=x=}}", "{app:k}{artifact.n}",
		"{{#a}}{{.b.c}}{{/a}}"} {
		f.Add(s)
	}
	for _, s := range []string{
		strings.Repeat("{{#a}}", 200), strings.Repeat("{{#a}}", 9) + strings.Repeat("{{/a}}", 9), strings.Repeat("{", 500), strings.Repeat("{{{", 99) + strings.Repeat("}}}", 99),
		"{{\x00}}", "{{\xff\xfe}}", "\ufeff{{a}}\r\n{{#b}}\r\n{{/b}}\r\n", "{{a\u2028}}", strings.Repeat("{{a}}", 1000), "{{" + strings.Repeat("a", 5000) + "}}",
	} {
		f.Add(s) // what is meant to exhaust a parser, or to confuse it
	}
	state := map[string]any{"a": []any{1, map[string]any{"b": nil}}, "b": "{{a}}", "app:k": 1.5}
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range []template.Dialect{template.Canonical, template.Mustache} {
			tmpl, err := template.Parse(text, template.Options{Dialect: d})
			if err != nil {
				continue
			}
			if len(text) > 200 {
				continue // nested lists multiply
			}
			res, err := tmpl.Fill(from(state))
			if err != nil {
				t.Fatal(err)
			}
			if len(tmpl.Keys()) == 0 && len(res.Unset) > 0 {
				t.Fatalf("unset %q without a key", res.Unset)
			}
		}
	})
}
