// SPDX-License-Identifier: Apache-2.0

// Package requesttemplate fills the templates in a request, which are its URL and the strings in its JSON values.
//
//	p := requesttemplate.Parser{Template: parse, Report: report}
//	u := p.URL("URL", "https://shop.example.org/items/{{item}}?q={{query}}")
//	…
//	where, err := u.Fill(lookup)
package requesttemplate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/internal/text/template"
	"github.com/refrain-dev/refrain/internal/values/fielderror"
)

// Parser parses the templates in the fields of a config.
type Parser struct {
	// Template parses the template of a field. It reports mistakes, and never returns nil. Required.
	Template func(field, text string) *template.Template
	// Report reports any other mistake. Required.
	Report func(*fielderror.Error)
}

// report reports what is wrong with a value in a field.
func (p Parser) report(field, format string, args ...any) {
	p.Report(fielderror.New(field, format, args...))
}

// about reports a mistake in a sentence that begins with the field.
func (p Parser) about(field, format string, args ...any) {
	p.Report(fielderror.About(field, format, args...))
}

// Fill fills a template. Its errors name the field.
func Fill(field string, t *template.Template, lookup func(string) (any, bool)) (string, error) {
	text, err := t.Execute(lookup)
	if err != nil {
		return "", fmt.Errorf("%s: %w", field, err)
	}
	return text, nil
}

// Headers are the templates of HTTP headers, by name.
type Headers []header

type header struct {
	field, name string
	value       *template.Template
}

// Headers parses the templates of headers. It reports a name that is none of a header, and Host, which the URL says.
func (p Parser) Headers(field string, given map[string]string) Headers {
	var all Headers
	for _, name := range slices.Sorted(maps.Keys(given)) {
		field := fmt.Sprintf("%s[%q]", field, name)
		switch {
		case !isHeaderName(name):
			p.report(field, "not a name of a header")
		case strings.EqualFold(name, "Host"):
			p.report(field, "the %s says which host it is", fielderror.Name("URL"))
		}
		all = append(all, header{field, name, p.Template(field, given[name])})
	}
	return all
}

// Fill calls set with the name and the value of each header. It fails on a value that ends the header.
func (h Headers) Fill(lookup func(string) (any, bool), set func(name, value string)) error {
	for _, one := range h {
		value, err := Fill(one.field, one.value, lookup)
		if err != nil {
			return err
		}
		if strings.ContainsAny(value, "\r\n\x00") {
			return fmt.Errorf("header %q: a value has a line break or a zero byte in it", one.name)
		}
		set(one.name, value)
	}
	return nil
}

// isHeaderName reports whether a string can be the name of an HTTP header.
func isHeaderName(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	}) < 0
}
