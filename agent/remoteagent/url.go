// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/template"
)

// urlTemplate is a URL whose placeholders are escaped. Its server is fixed.
type urlTemplate struct {
	base        *url.URL // what comes before the first placeholder
	path, query urlPart
}

// urlPart is one side of the question mark.
type urlPart struct {
	text   *template.Template
	values map[string]*template.Template // by name, a template of just that
	escape func(string) string
}

// url parses the template of a URL; nil if something is wrong.
func (p *parser) url(field, text string) *urlTemplate {
	path, query := cutQuery(text)
	fixed, _, placeholder := strings.Cut(path, "{{")
	base, err := url.Parse(fixed)
	switch {
	case err != nil:
		p.errorf("%s: %w", field, errors.Unwrap(err))
		return nil
	case base.Host == "" || base.Path == "" && placeholder:
		p.errorf("%s: %q has to begin with http:// or https:// and a host without placeholders, and a slash before "+
			"the first of them: a value cannot choose the server", field, text)
		return nil
	case base.User != nil:
		p.errorf("%s has a name or a password in it: send them in Headers", field)
		return nil
	}
	u := &urlTemplate{base: base, path: p.urlPart(field, path, url.PathEscape)}
	if query != "" {
		u.query = p.urlPart(field, query, url.QueryEscape)
	}
	return u
}

func (p *parser) urlPart(field, text string, escape func(string) string) urlPart {
	part := urlPart{text: p.template(field, text), values: make(map[string]*template.Template), escape: escape}
	for _, ref := range part.text.Keys() {
		if ref.Section {
			p.errorf("%s: {{#%s}}: a URL cannot have sections", field, ref.Name)
		}
		part.values[ref.Name], _ = template.Parse("{{"+ref.Name+"?}}", template.Options{Dialect: template.Mustache})
	}
	return part
}

// cutQuery splits a URL before its first question mark that is not in a tag.
func cutQuery(text string) (path, query string) {
	for i := 0; i < len(text); i++ {
		if strings.HasPrefix(text[i:], "{{") {
			end := strings.Index(text[i:], "}}")
			if end < 0 {
				return text, ""
			}
			i += end
		} else if text[i] == '?' {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// fill returns the URL.
func (u *urlTemplate) fill(lookup func(string) (any, bool)) (*url.URL, error) {
	path, err := u.path.fill(lookup)
	if err != nil {
		return nil, err
	}
	query, err := u.query.fill(lookup)
	if err != nil {
		return nil, err
	}
	got, err := url.Parse(path + query)
	if err != nil {
		return nil, fmt.Errorf("AgentCardSource: %w", errors.Unwrap(err))
	}
	dots := func(segment string) bool { return segment == "." || segment == ".." }
	switch {
	case got.Scheme != u.base.Scheme || got.Host != u.base.Host:
		return nil, fmt.Errorf("AgentCardSource: the server became %q, not %q", got.Host, u.base.Host)
	case len(u.path.values) > 0 && slices.ContainsFunc(strings.Split(got.Path, "/"), dots):
		return nil, errors.New(`AgentCardSource: the path has a segment ".." or ".", which could lead elsewhere`)
	}
	return got, nil
}

// fill asks lookup for each value as a text, by its full name, and escapes it.
func (p *urlPart) fill(lookup func(string) (any, bool)) (string, error) {
	if p.text == nil {
		return "", nil
	}
	var failed error
	text, err := fill("AgentCardSource", p.text, func(name string) (any, bool) {
		t, ok := p.values[name]
		if !ok {
			return nil, false
		}
		value, err := t.Execute(lookup)
		failed = errors.Join(failed, err)
		return p.escape(value), true
	})
	return text, errors.Join(failed, err)
}

// identity is what an agent is known by in the log: the address of its card, with
// a sum in the place of the query, which may be secret.
func identity(u *url.URL) string {
	if u.RawQuery == "" {
		return shortURL(u)
	}
	return fmt.Sprintf("%s?sha256=%.4x", shortURL(u), sha256.Sum256([]byte(u.RawQuery)))
}

// shortURL is a URL without what may be secret in it.
func shortURL(u *url.URL) string {
	short := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return short.String()
}
