// SPDX-License-Identifier: Apache-2.0

// Package requesttemplate fills the templates in a request, which are its URL and the strings in its JSON values.
//
//	p := requesttemplate.Parser{Template: parse, Errorf: report}
//	u := p.URL("URL", "https://shop.example.org/items/{{item}}?q={{query}}")
//	…
//	where, err := u.Fill(lookup)
package requesttemplate

import (
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/template"
)

// Parser parses the templates in the fields of a config.
type Parser struct {
	// Template parses the template of a field. It reports mistakes, and never returns nil. Required.
	Template func(field, text string) *template.Template
	// Errorf reports any other mistake. Required.
	Errorf func(format string, args ...any)
}

// Fill fills a template. Its errors name the field.
func Fill(field string, t *template.Template, lookup func(string) (any, bool)) (string, error) {
	text, err := t.Execute(lookup)
	if err != nil {
		return "", fmt.Errorf("%s: %w", field, err)
	}
	return text, nil
}

// IsHeaderName reports whether a string can be the name of an HTTP header.
func IsHeaderName(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	}) < 0
}
