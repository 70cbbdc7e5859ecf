// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

var (
	// settingEnd matches the ends of variable names for settings about a secret, such as TOKEN_FILE.
	settingEnd = lazyregexp.New(`(?i)_(file|path|dir|sock|socket|url|uri|host|port|domain|name|user|type|method|mode|scheme|expiry|ttl|timeout|limit)$`)
	// headerEnd matches the ends of variable names whose values are pairs of headers, as OpenTelemetry's.
	headerEnd = lazyregexp.New(`(?i)_headers$`)
	// place matches a path, which says where a secret is stored and is no secret itself.
	place = lazyregexp.New(`^(/|~/|\.{1,2}/)[^\s]*\.|^[A-Za-z]:\\`)
)

// Environment adds the secrets in an environment of NAME=value. These are the values of variables whose names mark a
// secret, such as X_API_KEY and PGPASSWORD, passwords in addresses and in connection strings, and the values of
// headers. PWD is no secret, because it is the working directory. Environment ignores values that could be ordinary
// words: values of less than 8 bytes, values of less than 16 bytes of one kind, such as lower-case letters, and
// numbers.
func (s *Secrets) Environment(env []string) {
	for _, pair := range env {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case name == "PWD":
			continue
		case headerEnd().MatchString(name):
			for header := range strings.SplitSeq(value, ",") {
				key, v, _ := strings.Cut(header, "=")
				s.variable(v)
				if plain, err := url.PathUnescape(v); err == nil && isSecret(strings.TrimSpace(key)) {
					s.header(plain)
				}
			}
		case isVariable(name) && !place().MatchString(value):
			s.variable(value)
		}
		for _, m := range userInfo().FindAllStringSubmatch(value, -1) {
			_, password, _ := strings.Cut(m[2], ":")
			s.variable(password)
			if plain, err := url.PathUnescape(password); err == nil {
				s.variable(plain)
			}
		}
		for part := range strings.FieldsFuncSeq(value, func(r rune) bool { return strings.ContainsRune(" ;,&?", r) }) {
			if key, v, ok := strings.Cut(part, "="); ok && Named(key) {
				s.variable(strings.Trim(v, `'"`))
			}
		}
	}
}

// plain matches variables of the desktop and of counts, whose names have words of secrets.
var plain = lazyregexp.New(`(?i)^(xdg_|desktop_session$|session_manager$|gdmsession$)|(max|min|total|input|output|num|context)_?tokens$|` +
	`(public|pub|primary|foreign|sort|cache|partition|row|group|output|input|state|idempotency|host|known)_?keys?$`)

// isVariable reports whether the value of an environment variable with this name is a secret. It is if its name marks a secret
// anywhere else, and if it is one of the names that only variables have, such as the address of a webhook, which is a
// secret as a whole.
func isVariable(name string) bool {
	upper := strings.ToUpper(name)
	switch {
	case plain().MatchString(name):
		return false
	case strings.Contains(upper, "WEBHOOK") && (strings.HasSuffix(upper, "URL") || strings.HasSuffix(upper, "WEBHOOK")), strings.HasSuffix(upper, "DSN"):
		return true
	}
	return !settingEnd().MatchString(name) && isSecret(strings.ReplaceAll(name, "_", "-"))
}

// With returns a copy of s with the secrets of an environment added. It returns s itself if the environment has none.
func (s *Secrets) With(env []string) *Secrets {
	var more Secrets
	if more.Environment(env); more.known == nil {
		return s
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	more.known = slices.Concat(more.known, s.known)
	more.index()
	return &more
}

// variable adds a value and each of its lines, except those that could be ordinary words.
func (s *Secrets) variable(value string) {
	for _, text := range append(strings.Split(value, "\n"), value) {
		if !ordinary(strings.TrimSpace(text)) {
			s.add(text, leastGiven)
		}
	}
}

// ordinary reports whether a text could occur in other texts by accident.
func ordinary(text string) bool {
	kinds := []func(rune) bool{unicode.IsLower, unicode.IsUpper, unicode.IsDigit, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}}
	kinds = slices.DeleteFunc(kinds, func(is func(rune) bool) bool { return !strings.ContainsFunc(text, is) })
	return len(text) < leastGiven || len(text) < 2*leastGiven && len(kinds) < 2 || !strings.ContainsFunc(text, unicode.IsLetter)
}
