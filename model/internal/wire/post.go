// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
)

// Endpoint is the address to which an adapter posts its requests.
type Endpoint struct {
	url    *url.URL
	header http.Header
	client *http.Client
}

// NewEndpoint returns the endpoint at a path below a base URL, whose query it
// keeps. The header goes with every request. The client is by default
// http.DefaultClient; see [Client].
//
// It fails on a base URL that is not an http URL.
func NewEndpoint(baseURL, path string, header http.Header, client *http.Client) (*Endpoint, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the base URL%s is not an http URL", displayURL(u))
	}
	return &Endpoint{url: u.JoinPath(path), header: header, client: Client(client)}, nil
}

// Host returns the host of the requests, with the port if the URL names it.
func (e *Endpoint) Host() string { return e.url.Host }

// Post sends a request as JSON and returns the body of the answer. Its error is
// as of [Exchange.Fail].
func (x *Exchange) Post(ctx context.Context, to *Endpoint, request any) ([]byte, error) {
	resp, err := x.send(ctx, to, request, "application/json")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil {
		err = x.Broken(ctx)
	}
	return body, err
}

// PostForEvents sends a request as JSON and yields the events of the answer, as
// [Events] does. An error is as of [Exchange.Fail] and the last. A stream that
// was cut ends as if it were complete: ask [Exchange.Broken] at its end.
func (x *Exchange) PostForEvents(ctx context.Context, to *Endpoint, request any) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		resp, err := x.send(ctx, to, request, "text/event-stream")
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer resp.Body.Close()
		for ev, err := range Events(resp.Body) {
			if err != nil {
				err = x.Garbage(ctx, nil, err)
			}
			if !yield(ev, err) {
				return
			}
		}
	}
}

// send returns an answer with a status of success.
func (x *Exchange) send(ctx context.Context, to *Endpoint, request any, accept string) (*http.Response, error) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(request); err != nil {
		return nil, x.Fail(ctx, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.url.String(), bytes.NewReader(body.Bytes()))
	if err != nil {
		return nil, x.Fail(ctx, err)
	}
	for name, values := range to.header {
		req.Header[name] = slices.Clone(values)
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "refrain")
	resp, err := to.client.Do(req)
	if err != nil {
		return nil, x.Fail(ctx, err)
	}
	if !x.OK() {
		io.Copy(io.Discard, resp.Body) // the exchange keeps what explains the error, and ends it there
		resp.Body.Close()
		return nil, x.Fail(ctx, nil)
	}
	return resp, nil
}

// displayURL returns an address for an error, with a blank before it and without secrets; empty if there
// is nothing to show.
func displayURL(u *url.URL) string {
	if u == nil {
		return ""
	}
	short := url.URL{Scheme: u.Scheme, Opaque: u.Opaque, Host: u.Host, Path: u.Path}
	return fmt.Sprintf(" %q", excerpt(short.String()))
}
