// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
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

// url parses the template of a URL. It returns nil if something is wrong.
func (s *source) url(field, text string) *urlTemplate {
	path, query := cutQuery(text)
	fixed, _, _ := strings.Cut(path, "{{")
	base, err := url.Parse(fixed)
	switch {
	case text == "":
		s.errorf("%s is empty", field)
		return nil
	case err != nil:
		s.errorf("%s: %w", field, err)
		return nil
	case base.Scheme != "http" && base.Scheme != "https" || base.Host == "":
		s.errorf("%s: %q does not start with http:// or https:// and a host without placeholders: a value cannot "+
			"choose the server", field, text)
		return nil
	case base.Path == "" && len(fixed) < len(path):
		s.errorf("%s: %q has a placeholder in the host: a value cannot choose the server; write a slash after the host",
			field, text)
		return nil
	}
	u := &urlTemplate{base: base, path: s.urlPart(field, path, url.PathEscape)}
	if query != "" {
		u.query = s.urlPart(field, query, url.QueryEscape)
	}
	return u
}

func (s *source) urlPart(field, text string, escape func(string) string) urlPart {
	p := urlPart{text: s.template(field, text, template.Mustache), values: make(map[string]*template.Template),
		escape: escape}
	for _, ref := range p.text.Keys() {
		if ref.Section {
			s.errorf("%s: {{#%s}}: a URL cannot have sections", field, ref.Name)
		}
		p.values[ref.Name], _ = template.Parse("{{"+ref.Name+"?}}", template.Options{Dialect: template.Mustache})
	}
	return p
}

// cutQuery splits a URL before its first question mark that is not in a tag.
func cutQuery(text string) (path, query string) {
	for i := 0; i < len(text); {
		switch {
		case strings.HasPrefix(text[i:], "{{"):
			end := strings.Index(text[i:], "}}")
			if end < 0 {
				return text, ""
			}
			i += end
		case text[i] == '?':
			return text[:i], text[i:]
		default:
			i++
		}
	}
	return text, ""
}

// fill returns the URL.
func (u *urlTemplate) fill(lookup func(string) (any, bool)) (string, error) {
	path, err := u.path.fill(lookup)
	if err != nil {
		return "", err
	}
	query, err := u.query.fill(lookup)
	if err != nil {
		return "", err
	}
	got, err := url.Parse(path + query)
	if err != nil {
		return "", fmt.Errorf("URL: %w", withoutURL(err))
	}
	if got.Scheme != u.base.Scheme || got.Host != u.base.Host {
		return "", fmt.Errorf("URL: the server became %q, not %q", got.Host, u.base.Host)
	}
	if len(u.path.values) > 0 && slices.ContainsFunc(strings.Split(got.Path, "/"), dots) {
		return "", errors.New(`URL: the path has a segment ".." or ".", which could lead elsewhere`)
	}
	return path + query, nil
}

func dots(segment string) bool { return segment == "." || segment == ".." }

// fill asks lookup for each value as a text, by its full name, and escapes it.
func (p *urlPart) fill(lookup func(string) (any, bool)) (string, error) {
	if p.text == nil {
		return "", nil
	}
	var failed error
	text, err := fill("URL", p.text, func(name string) (any, bool) {
		t, ok := p.values[name]
		if !ok {
			return nil, false
		}
		value, err := t.Execute(lookup)
		failed = errors.Join(failed, err)
		return p.escape(value), true
	})
	if err := errors.Join(failed, err); err != nil {
		return "", err
	}
	return text, nil
}

// shortURL is a URL without what may be secret in it.
func shortURL(u *url.URL) string {
	short := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return short.String()
}
