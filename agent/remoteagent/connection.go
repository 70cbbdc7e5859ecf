// SPDX-License-Identifier: Apache-2.0

package remoteagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2acompat/a2av0"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/text/requesttemplate"
	"github.com/refrain-dev/refrain/internal/values/propagate"
)

// connection is the connection of one run to the remote agent.
type connection struct {
	*a2aclient.Client
	streams bool
	http    *http.Client
	wire    *wire
	own     bool // the connections are this run's, and end with it
}

// connect reads the agent's card, if it was not given, and prepares a client for
// the best interface in it. Where is the address of the card.
func (a *A2AAgent) connect(ctx agent.InvocationContext) (c *connection, where string, err error) {
	c = &connection{}
	if c.wire, err = a.newWire(ctx); err != nil {
		return nil, "", err
	}
	c.http = &http.Client{CheckRedirect: checkRedirect}
	if given := a.cfg.Client; given != nil {
		c.http = new(*given)
	}
	c.wire.base = c.http.Transport
	if c.wire.base == nil {
		c.wire.base = http.DefaultTransport
		if t, ok := http.DefaultTransport.(*http.Transport); ok && a.cfg.Client == nil {
			c.wire.base, c.own = t.Clone(), true
		}
	}
	c.http.Transport = c.wire
	card, where, err := a.card(ctx, c)
	if err == nil {
		err = c.open(ctx, card)
	}
	if err != nil {
		c.close()
		return nil, "", c.wire.shown(err)
	}
	return c, where, nil
}

func (c *connection) open(ctx context.Context, card *a2a.AgentCard) (err error) {
	factory := a2aclient.NewFactory(
		a2aclient.WithJSONRPCTransport(c.http), a2aclient.WithRESTTransport(c.http),
		a2av0.WithJSONRPCTransport(a2av0.JSONRPCTransportConfig{Client: c.http}),
		a2av0.WithRESTTransport(a2av0.RESTTransportConfig{Client: c.http}),
	)
	c.streams = card.Capabilities.Streaming
	if c.Client, err = factory.CreateFromCard(ctx, card); err != nil {
		return fmt.Errorf("none of the interfaces in the agent's card can be used (JSONRPC and HTTP+JSON can, of A2A "+
			"1.0 and 0.3): %w", err)
	}
	return nil
}

func (c *connection) close() {
	if c.Client != nil {
		_ = c.Destroy() // of HTTP clients there is nothing to destroy
	}
	if t, ok := c.wire.base.(*http.Transport); ok && c.own {
		t.CloseIdleConnections()
	}
}

// reason is an error of a request, without its URL, and with a hint.
func (c *connection) reason(err error) error {
	if limit := c.wire.exceeded.Load(); limit {
		return &LimitError{Limit: c.wire.limit}
	}
	err = requesttemplate.WithoutURL(err)
	switch c.wire.status.Load() {
	case http.StatusUnauthorized, http.StatusForbidden:
		err = fmt.Errorf("%w; give what the agent wants to see in Headers", err)
	}
	return err
}

// wire sends the requests of one run. It adds headers, keeps to the servers that
// are allowed, and bounds the answers.
type wire struct {
	base    http.RoundTripper
	headers http.Header
	limit   int64
	origins []string // of credential.Origin: where requests may go
	secrets credential.Secrets

	status   atomic.Int64 // of the last answer
	exceeded atomic.Bool
}

func (a *A2AAgent) newWire(ctx agent.InvocationContext) (*wire, error) {
	w := &wire{limit: a.cfg.SizeLimit, headers: make(http.Header)}
	set := func(name, value string) {
		w.headers.Set(name, value)
		w.secrets.Header(name, value)
	}
	for name := range a.given {
		set(name, a.given.Get(name))
	}
	return w, a.headers.Fill(drive.At(ctx).Lookup, set)
}

// allows returns an error unless requests may go to an address.
func (w *wire) allows(u *url.URL) error {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("%.200q is neither http nor https", requesttemplate.Short(u))
	case u.Host == "":
		return fmt.Errorf("%.200q has no host", requesttemplate.Short(u))
	case !slices.Contains(w.origins, credential.Origin(u)):
		return fmt.Errorf("%w: %.200q is not one of %q; if that is right, ask for the card there, or list it in Hosts",
			errNotAllowed, credential.Origin(u), w.origins)
	}
	return nil
}

// shown returns an error that can be displayed: without the secrets of the requests, and shortened,
// because it may contain text from a server, of any length.
func (w *wire) shown(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if told := shortText(w.secrets.Strike(text)); told != text {
		return &shownError{told, err}
	}
	return err
}

// words returns a text of the remote agent for an error or a question, shortened and without
// secrets.
func (w *wire) words(text string) string { return shortText(w.secrets.Strike(text)) }

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := w.allows(req.URL); err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	req = req.Clone(req.Context())
	maps.Copy(req.Header, w.headers)
	propagate.Header(req.Context(), req.Header)
	w.secrets.Request(req)
	resp, err := w.base.RoundTrip(req)
	if err != nil {
		w.status.Store(0)
		return nil, err
	}
	w.status.Store(int64(resp.StatusCode))
	resp.Body = &limitedBody{ReadCloser: resp.Body, wire: w, left: w.limit}
	return resp, nil
}

// limitedBody is the body of an answer up to the limit.
type limitedBody struct {
	io.ReadCloser
	wire *wire
	left int64
}

func (l *limitedBody) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.ReadCloser.Read(p)
	if l.left -= int64(n); l.left < 0 {
		l.wire.exceeded.Store(true)
		return n - 1, &LimitError{Limit: l.wire.limit}
	}
	return n, err
}

// checkRedirect is the redirect policy of the default client; the wire looks at
// where it leads.
func checkRedirect(_ *http.Request, via []*http.Request) error {
	if len(via) > 5 {
		return errors.New("more than 5 redirects")
	}
	return nil
}
