// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// hidden replaces each character of a secret in a line that is shown.
const hidden = "*"

var (
	nameParts = lazyregexp.New(`[A-Z]*[a-z0-9]+|[A-Z]+`)
	// token matches a text that begins with a key or token of a known kind, whatever its name is.
	token = lazyregexp.New(`^(?:(?i:bearer|basic)\s+[A-Za-z0-9+/=._~-]{16,}|(?:sk|pk|rk)[-_][A-Za-z0-9_-]{6,}|AIza[A-Za-z0-9_-]{20,}|` +
		`gh[opsu]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|xox[abps]-[A-Za-z0-9-]{10,}|AKIA[A-Z0-9]{12,}|` +
		`eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})`)
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
func Token(text string) bool {
	from, _ := nextToken(text, 0)
	return from >= 0
}

// WithoutTokens replaces known kinds of keys and tokens in a text.
func WithoutTokens(text, with string) string {
	return replaceTokens(text, func(string) string { return with })
}

func replaceTokens(text string, by func(token string) string) string {
	var out strings.Builder
	begin := 0
	for {
		from, to := nextToken(text, begin)
		if from < 0 {
			return out.String() + text[begin:]
		}
		out.WriteString(text[begin:from])
		out.WriteString(by(text[from:to]))
		begin = to
	}
}

// nextToken returns where the first token at or after a byte begins and ends; -1 if there is none. It looks at two bytes of a place
// before it asks the pattern: all that a server sends goes through here, and the pattern alone takes 0.3 s for a megabyte.
func nextToken(text string, begin int) (from, to int) {
	for i := begin; i+1 < len(text); i++ {
		near := false
		switch c, next := text[i], text[i+1]; c {
		case 'b', 'B':
			near = next|0x20 == 'e' || next|0x20 == 'a'
		case 's', 'p', 'r':
			near = next == 'k'
		case 'A':
			near = next == 'I' || next == 'K'
		case 'g':
			near = next == 'h' || next == 'i'
		case 'x':
			near = next == 'o'
		case 'e':
			near = next == 'y'
		}
		if !near || i > 0 && text[i]|0x20 != 'b' && isWord(text[i-1]) {
			continue
		}
		if at := token().FindStringIndex(text[i:]); at != nil {
			return i, i + at[1]
		}
	}
	return -1, -1
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

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
	var out strings.Builder
	for len(text) > 0 {
		// No part of an address has a blank or a quotation mark, so the patterns are asked about one word at a time, and about few.
		end := strings.IndexAny(text, " \t\n\f\r\"'") + 1
		if end == 0 {
			end = len(text)
		}
		word, rest := text[:end], text[end:]
		if strings.Contains(word, "@") {
			word = userInfo().ReplaceAllString(word, "$1")
		}
		if strings.Contains(word, "=") {
			word = withoutKeys(word, with)
		}
		found = found || word != text[:end]
		out.WriteString(word)
		text = rest
	}
	return out.String(), found
}

// withoutKeys replaces keys in the query of an address.
func withoutKeys(address, with string) string {
	return queryParts().ReplaceAllStringFunc(address, func(part string) string {
		m := queryParts().FindStringSubmatch(part)
		if m[3] == "" || m[3] == with || strings.Contains(m[3], "{") && !Token(m[3]) {
			return part
		}
		name, err := url.QueryUnescape(m[2])
		if err != nil || Named(name) || strings.EqualFold(name, "key") || Token(m[3]) {
			return m[1] + m[2] + "=" + with
		}
		return part
	})
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
	return replaceTokens(line, mask)
}

// breaks reports whether a character ends a line in YAML.
func breaks(r rune) bool { return r == '\n' || r == '\r' || r == 0x85 || r == 0x2028 || r == 0x2029 }
