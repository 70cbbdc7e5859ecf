// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/internal/lazyregexp"
)

// hidden replaces each character of a secret in a line that is shown.
const hidden = "*"

var (
	nameParts = lazyregexp.New(`[A-Z]*[a-z0-9]+|[A-Z]+`)
	// tokens matches keys and tokens of known kinds, whatever their names are.
	tokens = lazyregexp.New(`(?i:bearer|basic)\s+[A-Za-z0-9+/=._~-]{16,}|\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{6,}|\bAIza[A-Za-z0-9_-]{20,}|\bgh[opsu]_[A-Za-z0-9]{20,}|` +
		`\bgithub_pat_[A-Za-z0-9_]{20,}|\bxox[abps]-[A-Za-z0-9-]{10,}|\bAKIA[A-Z0-9]{12,}|\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`)
	// userInfo matches the name and password in an address, and queryParts its query parameters.
	userInfo   = lazyregexp.New(`([A-Za-z][A-Za-z0-9+.-]*://)([^\s/?#"']*)@`)
	queryParts = lazyregexp.New(`([?&;#])([^=?&;#\s"']+)=([^&;#\s"']*)`)
)

// Named reports whether a name marks a secret. It does for api_key, apiKey and X-Auth-Token, but not for output_key or max_tokens.
func Named(name string) bool {
	before := ""
	for _, word := range nameParts().FindAllString(name[:min(len(name), 200)], -1) {
		word = strings.ToLower(word)
		switch word {
		case "apikey", "token", "secret", "password", "passwd", "passphrase", "pwd", "auth", "authorization",
			"credential", "credentials", "cookie", "bearer", "signature", "pass", "pat", "dsn", "jwt", "sig":
			return true
		case "key", "keys":
			if before == "api" || before == "access" || before == "private" || before == "secret" || before == "x" {
				return true
			}
		}
		before = word
	}
	return false
}

// Token reports whether a text contains a known kind of key or token.
func Token(text string) bool { return tokens().MatchString(text) }

// WithoutTokens replaces known kinds of keys and tokens in a text.
func WithoutTokens(text, with string) string { return tokens().ReplaceAllString(text, with) }

// Masked replaces keys, tokens and passwords in a text by "[secret]".
func Masked(text string) string {
	text, _ = Cleaned(text, "[secret]")
	return WithoutTokens(text, "[secret]")
}

// Cleaned removes the names and passwords from the addresses in a text, and replaces keys in their queries by with.
// found reports whether it has changed the text.
func Cleaned(text, with string) (_ string, found bool) {
	if !strings.Contains(text, "://") {
		return text, false
	}
	out := userInfo().ReplaceAllString(text, "$1")
	found = out != text
	out = queryParts().ReplaceAllStringFunc(out, func(part string) string {
		m := queryParts().FindStringSubmatch(part)
		if m[3] == "" || m[3] == with || strings.Contains(m[3], "{") && !tokens().MatchString(m[3]) {
			return part
		}
		name, err := url.QueryUnescape(m[2])
		if err != nil || Named(name) || strings.EqualFold(name, "key") || tokens().MatchString(m[3]) {
			found = true
			return m[1] + m[2] + "=" + with
		}
		return part
	})
	return out, found
}

// Mask masks the secrets in a line of a file: the given ones, those in addresses, and known kinds of keys and tokens.
// The line keeps its length in characters.
func Mask(line string, secrets []string) string {
	mask := func(s string) string { return strings.Repeat(hidden, utf8.RuneCountInString(s)) }
	for _, s := range secrets {
		for _, part := range strings.FieldsFunc(s, breaks) {
			if len(part) >= 4 && strings.Contains(line, part) {
				line = strings.ReplaceAll(line, part, mask(part))
			}
		}
	}
	line = userInfo().ReplaceAllStringFunc(line, func(s string) string {
		m := userInfo().FindStringSubmatch(s)
		return m[1] + mask(m[2]) + "@"
	})
	line = queryParts().ReplaceAllStringFunc(line, func(s string) string {
		m := queryParts().FindStringSubmatch(s)
		if Named(m[2]) || strings.EqualFold(m[2], "key") {
			return m[1] + m[2] + "=" + mask(m[3])
		}
		return s
	})
	return tokens().ReplaceAllStringFunc(line, mask)
}

// breaks reports whether a character ends a line in YAML.
func breaks(r rune) bool { return r == '\n' || r == '\r' || r == 0x85 || r == 0x2028 || r == 0x2029 }
