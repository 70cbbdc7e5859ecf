// SPDX-License-Identifier: Apache-2.0

package requesttemplate

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/internal/text/template"
)

// URL is the template of a URL. Placeholders can only follow the host, so their values cannot change the server, and
// the values are escaped.
type URL struct {
	field       string
	base        *url.URL // the part before the first placeholder
	path, query part
}

// part is the part of a URL before or after the question mark.
type part struct {
	text   *template.Template
	values map[string]*template.Template // by name, a template of just that
	escape func(string) string
}

// URL parses the template of an http or https URL. If the template has a mistake, URL reports it and returns nil.
func (p Parser) URL(field, text string) *URL {
	path, query := cutQuery(text)
	fixed, _, _ := strings.Cut(path, "{{")
	base, err := url.Parse(fixed)
	switch {
	case text == "":
		p.about(field, "is empty")
		return nil
	case err != nil:
		p.report(field, "%w", WithoutURL(err))
		return nil
	case base.Scheme != "http" && base.Scheme != "https" || base.Host == "":
		p.report(field, "%q does not start with http:// or https:// and a host without placeholders: a value cannot "+
			"choose the server", text)
		return nil
	case base.Path == "" && len(fixed) < len(path):
		p.report(field, "%q has a placeholder in the host: a value cannot choose the server; write a slash after the host", text)
		return nil
	case base.User != nil:
		p.about(field, "has a name or a password in it; send them in a header")
		return nil
	}
	u := &URL{field: field, base: base, path: p.part(field, path, url.PathEscape)}
	if query != "" {
		u.query = p.part(field, query, url.QueryEscape)
	}
	return u
}

func (p Parser) part(field, text string, escape func(string) string) part {
	x := part{text: p.Template(field, text), values: make(map[string]*template.Template), escape: escape}
	for _, ref := range x.text.Keys() {
		if ref.Section {
			p.report(field, "{{#%s}}: a URL cannot have sections", ref.Name)
		}
		x.values[ref.Name], _ = template.Parse("{{"+ref.Name+"?}}", template.Options{Dialect: template.Mustache})
	}
	return x
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

// Scheme returns http or https.
func (u *URL) Scheme() string { return u.base.Scheme }

// Fill returns the URL with the values filled in. It fails if a value would lead to another server, or out of the path.
func (u *URL) Fill(lookup func(string) (any, bool)) (*url.URL, error) {
	path, err := u.path.fill(u.field, lookup)
	if err != nil {
		return nil, err
	}
	query, err := u.query.fill(u.field, lookup)
	if err != nil {
		return nil, err
	}
	got, err := url.Parse(path + query)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.field, WithoutURL(err))
	}
	dots := func(segment string) bool { return segment == "." || segment == ".." }
	switch {
	case got.Scheme != u.base.Scheme || got.Host != u.base.Host:
		return nil, fmt.Errorf("%s: the server became %q, not %q", u.field, got.Host, u.base.Host)
	case len(u.path.values) > 0 && slices.ContainsFunc(strings.Split(got.Path, "/"), dots):
		return nil, fmt.Errorf(`%s: the path has a segment ".." or ".", which could lead elsewhere`, u.field)
	}
	return got, nil
}

// fill asks lookup for the text of each value by its full name, and escapes it.
func (p *part) fill(field string, lookup func(string) (any, bool)) (string, error) {
	if p.text == nil {
		return "", nil
	}
	var failed error
	text, err := Fill(field, p.text, func(name string) (any, bool) {
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

// Short returns a URL without the parts that may be secret.
func Short(u *url.URL) string {
	short := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return short.String()
}

// WithoutURL removes the URL from an error, because its query may hold a secret.
func WithoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
