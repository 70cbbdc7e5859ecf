// SPDX-License-Identifier: Apache-2.0

package mcptoolset

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// endpoint is a server that speaks streamable HTTP.
type endpoint struct {
	url    string
	client *http.Client
}

func newEndpoint(raw string, headers http.Header) (*endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("the URL: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the URL %q is not one of a web server, such as https://host/mcp", u.Redacted())
	}
	base := http.DefaultTransport
	if t, ok := base.(*http.Transport); ok {
		base = t.Clone() // its idle connections are ours to close
	}
	return &endpoint{url: raw, client: &http.Client{Transport: &signer{base: base, to: u, headers: headers.Clone()}}}, nil
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

// CloseIdleConnections lets http.Client's method of that name through.
func (s *signer) CloseIdleConnections() {
	if t, ok := s.base.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}
