// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"net/http"
	"net/url"
	"strings"
)

// SameOrigin reports whether two addresses have the same scheme, host and port. A different port is a different
// service, which may have a different owner.
func SameOrigin(a, b *url.URL) bool { return Origin(a) == Origin(b) }

// Origin returns the scheme, host and port of an address, such as https://example.org:443, in lower case. Without a
// port in the address it uses the default port of the scheme.
func Origin(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		switch scheme {
		case "http":
			port = "80"
		case "https":
			port = "443"
		}
	}
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return scheme + "://" + host + ":" + port
}

// Left reports, for an http.Client's CheckRedirect, whether this redirect or an earlier one leads to a different
// server than the first request's. A request that has been to a different server stays untrusted even if it is
// redirected back.
func Left(req *http.Request, via []*http.Request) bool {
	for _, r := range via {
		if !SameOrigin(req.URL, r.URL) {
			return true
		}
	}
	return false
}
