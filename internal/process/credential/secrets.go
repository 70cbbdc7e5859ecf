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

// mark replaces a secret in a text.
const mark = "[secret]"

// The least length of a secret in bytes. Shorter texts occur in other words by accident.
const (
	leastNamed   = 4  // if a name marks it as a secret
	leastGiven   = 8  // if it only may be a secret
	leastSegment = 10 // of a path; common words such as "services" and "webhooks" are shorter
)

// Secrets is a set of texts that no output may contain. The zero value is an empty set. Secrets is safe for concurrent use.
type Secrets struct {
	mu       sync.RWMutex
	known    []string // longest first
	replacer *strings.Replacer
}

// Add adds a secret in all forms in which servers repeat it: escaped for URLs, JSON and HTML, and in base64. It
// ignores a secret of less than 4 bytes.
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

// index sorts the known secrets and builds the replacer.
func (s *Secrets) index() {
	slices.SortFunc(s.known, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	s.known = slices.Compact(s.known)
	var pairs []string
	for _, known := range s.known {
		pairs = append(pairs, known, mark)
	}
	s.replacer = strings.NewReplacer(pairs...) // the first match wins
}

// Request adds the credentials of a request: the values of headers and query parameters whose names mark a secret,
// and the name and password in its URL.
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

// Header adds the value of a header from a configuration. It adds any header except those with a known harmless purpose.
func (s *Secrets) Header(name, value string) {
	switch {
	case isSecret(name):
		s.header(value)
	case !isHarmless(name):
		s.add(value, leastGiven)
	}
}

// Address adds all parts of an address except the server, because many services use the path as the secret.
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

// header adds a value in the form of Authorization: the token after the scheme, the decoded content of Basic, and
// each value of cookies.
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

// StrikeWhole returns a text with its secrets replaced.
func (s *Secrets) StrikeWhole(text string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.replacer == nil {
		return text
	}
	return s.replacer.Replace(text)
}

// Strike does what StrikeWhole does for a text that may have been cut. It also removes the beginning of a secret, of
// 8 bytes or more, at the end of the text.
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

// Error returns an error that wraps err and whose text has no secrets. It returns err itself if its text has none.
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
