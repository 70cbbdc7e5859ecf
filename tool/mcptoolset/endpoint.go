// SPDX-License-Identifier: Apache-2.0

package mcptoolset

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/internal/credential"
)

// endpoint is a server that speaks streamable HTTP.
type endpoint struct {
	url    string
	client *http.Client
}

func newEndpoint(raw string, headers http.Header, base http.RoundTripper) (*endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("the URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the URL %q is not one of a web server, such as https://host/mcp", u.Redacted())
	}
	if base == nil {
		base = http.DefaultTransport
	}
	if t, ok := base.(*http.Transport); ok {
		base = t.Clone() // its idle connections are ours to close
	}
	client := &http.Client{Transport: &signer{base: base, to: u, headers: headers.Clone()},
		CheckRedirect: checkRedirect}
	return &endpoint{url: raw, client: client}, nil
}

// checkRedirect follows no redirect of a request with a body, and none to another server, because
// the arguments of tools and their list concern only the configured server.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	switch {
	case len(via) > 5:
		return errors.New("more than 5 redirects")
	case first.Method != http.MethodGet || first.Body != nil && first.Body != http.NoBody:
		return fmt.Errorf("it redirects the %s request to %s, to which it is not sent: use that address as the url "+
			"if it is right",
			first.Method, credential.Origin(req.URL))
	case credential.Left(req, via):
		return fmt.Errorf("it redirects to another server, %s, which is not followed: use that address as the url if "+
			"it is right",
			credential.Origin(req.URL))
	}
	return nil
}

func (e *endpoint) String() string {
	u, err := url.Parse(e.url)
	if err != nil {
		return "MCP server"
	}
	u.RawQuery = "" // people put keys there
	return "MCP server " + u.Redacted()
}

func (e *endpoint) transport() (mcp.Transport, func() string) {
	return &mcp.StreamableClientTransport{Endpoint: e.url, HTTPClient: e.client}, silent
}

func (e *endpoint) close() { e.client.CloseIdleConnections() }

// signer adds headers to requests to one host: a redirect to another one does
// not carry a token there.
type signer struct {
	base    http.RoundTripper
	to      *url.URL
	headers http.Header
}

func (s *signer) RoundTrip(req *http.Request) (*http.Response, error) {
	if len(s.headers) > 0 && req.URL.Scheme == s.to.Scheme && req.URL.Host == s.to.Host {
		req = req.Clone(req.Context())
		for name, values := range s.headers {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	return s.base.RoundTrip(req)
}

// CloseIdleConnections passes on the call of http.Client's method of that name.
func (s *signer) CloseIdleConnections() {
	if t, ok := s.base.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}
