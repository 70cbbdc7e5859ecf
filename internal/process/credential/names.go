// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"slices"
	"strings"
)

// secretEnds mark a secret, besides the words of [Named], in a name with a word that ends in one of them, such as apikey.
var secretEnds = []string{
	"key", "token", "secret", "password", "signature", "passwd", "passphrase", "tokens", "secrets", "passwords", "keys",
}

// secretWords mark a secret in a name that has one of them as a whole word.
var secretWords = []string{
	"auth", "authorization", "authentication", "authenticate", "bearer", "cookie", "cookies", "credential", "credentials", "jwt", "pass",
	"pin", "pwd", "session", "sessionid", "sid", "sig",
}

// isSecret reports whether the name of a header, of a query parameter or of a variable marks a secret: whatever [Named] takes
// for one, and words that have other meanings in a definition, such as key and session.
func isSecret(name string) bool {
	switch {
	case isHarmless(name):
		return false
	case Named(name), strings.HasPrefix(strings.ToUpper(name), "PGPASS"):
		return true
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(name), func(r rune) bool { return r < 'a' || r > 'z' }) {
		if slices.Contains(secretWords, word) || slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(word, end) }) {
			return true
		}
	}
	return false
}

// harmless lists headers with a known harmless purpose. Errors show their values, because these help to understand the errors.
var harmless = []string{
	"accept", "cache-control", "connection", "content", "date", "expect", "from", "host", "idempotency-key", "if", "origin", "pragma", "prefer",
	"range", "referer", "traceparent", "user-agent", "a2a-version", "a2a-extensions",
}

func isHarmless(name string) bool {
	name = strings.ToLower(name)
	family, _, _ := strings.Cut(name, "-") // as of Accept-Language, Content-Type, If-Match
	return slices.Contains(harmless, name) || slices.Contains([]string{"accept", "content", "if"}, family)
}
