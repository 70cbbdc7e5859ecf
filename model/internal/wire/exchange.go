// SPDX-License-Identifier: Apache-2.0

// Package wire is the HTTP below the adapters: it posts JSON, decodes streams of
// server-sent events, and watches the exchange, so that all adapters tell apart
// in the same way an error status, a lost connection, a stream that was cut and
// an answer that is garbage.
//
//	ctx, x := wire.Watch(ctx, "openai")
//	body, err := x.Post(ctx, endpoint, request)
//
// An adapter with an SDK gives it a [Client], and asks the exchange why it
// failed:
//
//	if err := sdk.Generate(ctx, params); err != nil {
//		return x.Fail(ctx, err)
//	}
package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/model"
)

const (
	// headSize limits the bytes of a body that are kept to explain an error, and the bytes that are
	// read of an error's body.
	headSize = 16 << 10
	// mostBytes is more than any answer has, however small the pieces of its
	// stream are.
	mostBytes = 256 << 20
)

// Exchange records one request and its answer.
type Exchange struct {
	provider string
	secrets  credential.Secrets // that the request was sent with

	mu      sync.Mutex
	status  int // of the last answer; 0: none
	header  http.Header
	head    []byte // the body's first bytes
	sendErr error  // the request got no answer
	readErr error  // the body broke off
	moved   string // the server to which it redirects
}

// OK reports whether the answer came with a status of success.
func (x *Exchange) OK() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.status >= 200 && x.status < 300
}

type exchangeKey struct{}

// Watch returns a context for one request to a provider, sent through a client of [Client], and the
// exchange that records it.
func Watch(ctx context.Context, provider string) (context.Context, *Exchange) {
	x := &Exchange{provider: provider}
	return context.WithValue(ctx, exchangeKey{}, x), x
}

// Client returns a copy of an HTTP client, by default http.DefaultClient, that records requests in
// their exchanges. In watched requests a body that breaks off ends as if it were complete: ask
// [Exchange.Broken] at its end. Redirects to another server are not followed: it would get the
// conversation, and of most providers the key, whose header is not one that net/http knows to leave
// out.
func Client(base *http.Client) *http.Client {
	if base == nil {
		base = http.DefaultClient
	}
	c := *base
	c.Transport = transport{c.Transport}
	policy := c.CheckRedirect
	c.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		switch {
		case credential.Left(req, via):
			if x, ok := req.Context().Value(exchangeKey{}).(*Exchange); ok {
				x.mu.Lock()
				defer x.mu.Unlock()
				x.moved = credential.Origin(req.URL)
			}
			return errors.New("it redirects to another server")
		case policy != nil:
			return policy(req, via)
		case len(via) >= mostRedirects:
			return errors.New("it redirects too many times")
		}
		return nil
	}
	return &c
}

// mostRedirects is as many as net/http follows.
const mostRedirects = 10

type transport struct{ base http.RoundTripper }

// RoundTrip sends a request and records what comes back.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	base := t.base
	if base == nil {
		base = http.DefaultTransport
	}
	x, ok := req.Context().Value(exchangeKey{}).(*Exchange)
	if !ok {
		return base.RoundTrip(req)
	}
	model.NoteExchange(req.Context(), func(to *model.Exchange) {
		to.Server = req.URL.Hostname()
		if to.Port, _ = strconv.Atoi(req.URL.Port()); to.Port == 0 {
			to.Port = map[string]int{"http": 80, "https": 443}[req.URL.Scheme]
		}
	})
	x.secrets.Request(req)
	resp, err := base.RoundTrip(req)
	if err == nil && resp.Request != nil {
		x.secrets.Request(resp.Request) // with what transports below have added
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err != nil {
		x.sendErr = err
		return nil, err
	}
	x.status, x.header, x.head = resp.StatusCode, resp.Header, nil
	b := &body{ReadCloser: resp.Body, x: x, left: mostBytes}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		b.left = headSize
	}
	resp.Body = b
	return resp, nil
}

var errTooLong = fmt.Errorf("it is longer than %d bytes", mostBytes)

// body is a response's body that reports to its exchange.
type body struct {
	io.ReadCloser
	x    *Exchange
	left int
}

func (b *body) Read(p []byte) (int, error) {
	n, err := 0, errTooLong
	if b.left > 0 {
		n, err = b.ReadCloser.Read(p[:min(len(p), b.left)])
		b.left -= n
	}
	b.x.mu.Lock()
	defer b.x.mu.Unlock()
	if room := headSize - len(b.x.head); room > 0 {
		b.x.head = append(b.x.head, p[:min(n, room)]...)
	}
	if err != nil && err != io.EOF {
		b.x.readErr = err
		err = io.EOF
	}
	return n, err
}
