// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"net/http"
	"net/url"
	"strings"
)

// SameOrigin reports whether two addresses are the same server: scheme, host and
// port. Another port is another service, which may be somebody else's.
func SameOrigin(a, b *url.URL) bool { return Origin(a) == Origin(b) }

// Origin is the scheme, host and port of an address, as https://example.org:443,
// in lower case and with the port that the scheme stands for if there is none.
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

// Left reports, for an http.Client's CheckRedirect, whether a redirect leads to
// another server than the first request's, or one before it did. What has been
// elsewhere does not become trusted by being sent back.
func Left(req *http.Request, via []*http.Request) bool {
	for _, r := range via {
		if !SameOrigin(req.URL, r.URL) {
			return true
		}
	}
	return false
}
