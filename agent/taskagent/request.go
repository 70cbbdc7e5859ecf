// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// request fills the templates.
func (a *HTTPAgent) request(ctx context.Context, lookup func(string) (any, bool)) (*http.Request, error) {
	where, err := a.url.fill(lookup)
	if err != nil {
		return nil, err
	}
	body, err := fill("Body", a.body, lookup)
	if err != nil {
		return nil, err
	}
	if a.bodyJSON != nil {
		data, err := a.bodyJSON.fill(lookup)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(data)
		if err != nil {
			return nil, fmt.Errorf("encode BodyJSON: %w", err)
		}
		body = string(text)
	}
	req, err := http.NewRequestWithContext(ctx, a.cfg.Method, where, strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("URL: %w", err)
	}
	if a.bodyJSON != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range a.headers {
		value, err := fill(fmt.Sprintf("Headers[%q]", h.name), h.value, lookup)
		if err != nil {
			return nil, err
		}
		if strings.ContainsAny(value, "\r\n\x00") {
			return nil, fmt.Errorf("header %q: a value has a line break or a zero byte in it", h.name)
		}
		req.Header.Set(h.name, value)
	}
	return req, nil
}

// answer is what a server sent back.
type answer struct {
	status  int
	headers map[string]any
	body    string
}

// send sends a request and reads the answer. Its errors do not name the URL,
// whose query may hold a secret.
func (a *HTTPAgent) send(req *http.Request) (answer, error) {
	resp, err := a.cfg.Client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, a.cfg.SizeLimit+1))
	if err != nil {
		return answer{}, fmt.Errorf("read the body: %w", err)
	}
	if int64(len(body)) > a.cfg.SizeLimit {
		return answer{}, &LimitError{Stream: "body", Limit: a.cfg.SizeLimit}
	}
	got := answer{status: resp.StatusCode, headers: make(map[string]any, len(resp.Header)), body: cleanText(string(body))}
	for name, vals := range resp.Header {
		if len(vals) > 0 {
			got.headers[strings.ToLower(name)] = cleanText(vals[0])
		}
	}
	return got, nil
}

// checkRedirect is the redirect policy of the default client.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if s := req.URL.Scheme; s != "http" && s != "https" {
		return fmt.Errorf("redirect to scheme %q: only http and https are followed", s)
	}
	if len(via) > 5 {
		return errors.New("more than 5 redirects")
	}
	if first := via[0].URL; req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		req.Header = http.Header{"Content-Type": req.Header["Content-Type"]} // not even the Referer: its query may hold a secret
	}
	return nil
}

// isToken reports whether a text can be the name of a header.
func isToken(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	}) < 0
}
