// SPDX-License-Identifier: Apache-2.0

package mcptoolset

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/refrain-dev/refrain/internal/process/child"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// endpoint is a server that speaks streamable HTTP.
type endpoint struct {
	url    string
	name   string // the URL as configured, without the values of variables
	client *http.Client
	oauth  auth.OAuthHandler
}

func newEndpoint(cfg *Config) (*endpoint, error) {
	raw, err := expand(cfg.URL, cfg.Env)
	if err != nil {
		return nil, fmt.Errorf("the URL: %w", err)
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("the URL: %w", child.Secrets(cfg.Env).Error(err))
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the URL %q is not one of a web server, such as https://host/mcp", child.Secrets(cfg.Env).StrikeWhole(u.Redacted()))
	}
	headers := make(http.Header)
	for name, values := range cfg.Headers {
		for _, value := range values {
			if value, err = expand(value, cfg.Env); err != nil {
				return nil, fmt.Errorf("the header %s: %w", name, err)
			}
			headers.Add(name, value)
		}
	}
	base := cfg.RoundTripper
	if base == nil {
		base = http.DefaultTransport
	}
	if t, ok := base.(*http.Transport); ok {
		base = t.Clone() // its idle connections are ours to close
	}
	client := &http.Client{Transport: &signer{base: base, to: u, headers: headers, oauth: cfg.OAuth != nil},
		CheckRedirect: checkRedirect}
	return &endpoint{url: raw, name: cfg.URL, client: client, oauth: cfg.OAuth}, nil
}

// named matches a variable in a URL or a header.
var named = lazyregexp.New(`\$\{([^}]*)\}`)

// expand returns a text with the values of its variables, which are in env as NAME=value.
func expand(text string, env []string) (string, error) {
	var unknown error
	text = named().ReplaceAllStringFunc(text, func(variable string) string {
		name := variable[len("${") : len(variable)-len("}")]
		i := slices.IndexFunc(env, func(pair string) bool { return strings.HasPrefix(pair, name+"=") })
		if i < 0 {
			unknown = fmt.Errorf("the variable %s is not given: add it to inherit, in Go to Env", name)
			return ""
		}
		return env[i][len(name)+len("="):]
	})
	return text, unknown
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
	u, err := url.Parse(e.name)
	if err != nil {
		return "MCP server"
	}
	u.RawQuery = "" // people put keys there
	return "MCP server " + strings.NewReplacer("$%7B", "${", "%7D", "}").Replace(u.Redacted())
}

func (e *endpoint) transport() (mcp.Transport, func() string) {
	return &mcp.StreamableClientTransport{Endpoint: e.url, HTTPClient: e.client, OAuthHandler: e.oauth}, silent
}

func (e *endpoint) close() { e.client.CloseIdleConnections() }

// signer adds headers to requests to one host: a redirect to another one does
// not carry a token there.
type signer struct {
	base    http.RoundTripper
	to      *url.URL
	headers http.Header
	oauth   bool // a handler signs in after 401
}

func (s *signer) RoundTrip(req *http.Request) (*http.Response, error) {
	own := req.URL.Scheme == s.to.Scheme && req.URL.Host == s.to.Host
	if len(s.headers) > 0 && own {
		req = req.Clone(req.Context())
		for name, values := range s.headers {
			req.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	res, err := s.base.RoundTrip(req)
	if err == nil && res.StatusCode == http.StatusUnauthorized && !s.oauth {
		res.Body.Close()
		return nil, &unauthorizedError{token: req.Header.Get("Authorization") != "",
			oauth: strings.Contains(strings.Join(res.Header.Values("WWW-Authenticate"), " "), "resource_metadata")}
	}
	return res, err
}

// unauthorizedError is the answer of a server that wants a token, or another one.
type unauthorizedError struct{ token, oauth bool }

func (e *unauthorizedError) Error() string {
	text := `the server wants a token (401 Unauthorized): send one with headers: {Authorization: "Bearer ${TOKEN}"} and inherit: [TOKEN]`
	if e.token {
		text = "the server refuses the token in the header Authorization (401 Unauthorized): get a new one"
	}
	if e.oauth {
		text += "; the server signs people in with OAuth, which definitions cannot do, " +
			"so get a token from its operator; programs in Go set Config.OAuth"
	}
	return text
}

// CloseIdleConnections passes on the call of http.Client's method of that name.
func (s *signer) CloseIdleConnections() {
	if t, ok := s.base.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}
