// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"slices"
	"strings"
)

// secretWords are words in the names of headers and query parameters that mark a secret. Longer words end in one of the first five.
var secretWords = []string{
	"key", "token", "secret", "password", "signature",
	"auth", "authorization", "authentication", "authenticate", "bearer", "cookie", "cookies", "credential", "credentials", "jwt", "pass", "passwd",
	"pin", "pwd", "session", "sessionid", "sid", "sig",
}

// isSecret reports whether a name marks a secret.
func isSecret(name string) bool {
	if isHarmless(name) {
		return false
	}
	for word := range strings.FieldsFuncSeq(strings.ToLower(name), func(r rune) bool { return r < 'a' || r > 'z' }) {
		if slices.Contains(secretWords, word) || slices.ContainsFunc(secretWords[:5],
			func(end string) bool { return strings.HasSuffix(word, end) }) {
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
