// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// mark is what stands where a secret was.
const mark = "[secret]"

// How long texts have to be, in bytes, to be struck out: shorter ones say nothing,
// and stand in other words by accident.
const (
	leastNamed   = 4  // where a name says that it is a secret
	leastGiven   = 8  // where it only may be one
	leastSegment = 10 // of a path: words as "services" and "webhooks" are shorter
)

// Secrets are texts that nobody is told. The zero value has none. It is safe for
// concurrent use.
type Secrets struct {
	mu       sync.RWMutex
	known    []string // longest first
	replacer *strings.Replacer
}

// Add adds a secret, with the forms in which servers repeat it: escaped for URLs,
// JSON and HTML, and in base64. Less than 4 bytes are none.
func (s *Secrets) Add(secret string) { s.add(secret, leastNamed) }

func (s *Secrets) add(secret string, least int) {
	if secret = strings.TrimSpace(secret); len(secret) < least {
		return
	}
	escaped, _ := json.Marshal(secret)
	forms := []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), strings.Trim(string(escaped), `"`),
		html.EscapeString(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawStdEncoding.EncodeToString([]byte(secret)),
		base64.URLEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.known, secret) {
		return
	}
	s.known = append(s.known, forms...)
	s.index()
}

// index sorts what is known and makes the replacer.
func (s *Secrets) index() {
	slices.SortFunc(s.known, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	s.known = slices.Compact(s.known)
	var pairs []string
	for _, known := range s.known {
		pairs = append(pairs, known, mark)
	}
	s.replacer = strings.NewReplacer(pairs...) // the first that fits counts
}

// Request adds what a request proves itself with: headers and parts of the query
// whose names say so, and the name and password in its URL.
func (s *Secrets) Request(req *http.Request) {
	for name, values := range req.Header {
		for _, v := range values {
			if isSecret(name) {
				s.header(v)
			}
		}
	}
	s.user(req.URL)
	for name, values := range req.URL.Query() {
		for _, v := range values {
			if isSecret(name) {
				s.Add(v)
			}
		}
	}
}

// Header adds the value of a header that somebody has written into a
// configuration: whatever it is called, unless it is known for other things.
func (s *Secrets) Header(name, value string) {
	switch {
	case isSecret(name):
		s.header(value)
	case !isHarmless(name):
		s.add(value, leastGiven)
	}
}

// Address adds all of an address but its server: with many services the path is
// the secret.
func (s *Secrets) Address(u *url.URL) {
	s.user(u)
	s.add(strings.TrimPrefix(u.Path, "/"), leastGiven)
	for segment := range strings.SplitSeq(u.Path, "/") {
		s.add(segment, leastSegment)
	}
	s.add(u.RawQuery, leastGiven)
	for _, values := range u.Query() {
		for _, v := range values {
			s.Add(v)
		}
	}
}

func (s *Secrets) user(u *url.URL) {
	if password, ok := u.User.Password(); ok {
		s.Add(password)
		s.add(u.User.Username()+":"+password, leastNamed)
	}
}

// header adds a value as of Authorization: the token behind the scheme, what is in
// it if that is Basic, and each value of cookies.
func (s *Secrets) header(value string) {
	value = strings.TrimSpace(value)
	scheme, token, _ := strings.Cut(value, " ")
	if token = strings.TrimSpace(token); len(token) < leastGiven {
		s.Add(value)
	}
	s.Add(token)
	if strings.EqualFold(scheme, "basic") {
		if plain, err := base64.StdEncoding.DecodeString(token); err == nil {
			_, password, _ := strings.Cut(string(plain), ":")
			s.Add(string(plain))
			s.Add(password)
		}
	}
	for pair := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ';' || r == ',' }) {
		if _, v, ok := strings.Cut(pair, "="); ok {
			s.add(strings.Trim(v, `" `), leastGiven)
		}
	}
}

// StrikeWhole returns a text without the secrets.
func (s *Secrets) StrikeWhole(text string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.replacer == nil {
		return text
	}
	return s.replacer.Replace(text)
}

// Strike is StrikeWhole for a text that may have been cut. It also takes away the
// beginning of a secret, 8 bytes or more, at the end of the text.
func (s *Secrets) Strike(text string) string {
	text = s.StrikeWhole(text)
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, secret := range s.known {
		for n := min(len(secret)-1, len(text)); n >= leastGiven; n-- {
			if strings.HasSuffix(text, secret[:n]) {
				return text[:len(text)-n] + mark
			}
		}
	}
	return text
}

// Error returns an error without the secrets in its text, which wraps err; err
// itself if there are none in it.
func (s *Secrets) Error(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if struck := s.Strike(text); struck != text {
		return &struckError{struck, err}
	}
	return err
}

type struckError struct {
	text string
	err  error
}

func (e *struckError) Error() string { return e.text }

func (e *struckError) Unwrap() error { return e.err }
