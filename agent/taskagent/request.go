// SPDX-License-Identifier: Apache-2.0

package taskagent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/text/requesttemplate"
	"github.com/refrain-dev/refrain/model"
)

// request fills the templates and returns the request. It adds the secret values in it to secrets.
func (a *HTTPAgent) request(ctx context.Context, lookup func(string) (any, bool),
	secrets *credential.Secrets) (*http.Request, error) {
	where, err := a.url.Fill(lookup)
	if err != nil {
		return nil, err
	}
	body, err := requesttemplate.Fill("Body", a.body, lookup)
	if err != nil {
		return nil, err
	}
	if a.bodyJSON != nil {
		data, err := a.bodyJSON(lookup)
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(data)
		if err != nil {
			return nil, fmt.Errorf("encode BodyJSON: %w", err)
		}
		body = string(text)
	}
	req, err := http.NewRequestWithContext(ctx, a.cfg.Method, where.String(), strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("URL: %w", requesttemplate.WithoutURL(err))
	}
	if a.bodyJSON != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	err = a.headers.Fill(lookup, func(name, value string) {
		req.Header.Set(name, value)
		secrets.Header(name, value)
	})
	if err != nil {
		return nil, err
	}
	secrets.Request(req)
	return req, nil
}

// answer is the answer of a server.
type answer struct {
	Status     int            `json:"status"`
	Headers    map[string]any `json:"headers,omitempty"`
	Body       string         `json:"body,omitempty"`
	RetryAfter time.Duration  `json:"retry_after,omitempty"`
}

// send sends a request and reads the answer. Its errors do not name the URL,
// whose query may hold a secret.
func send(client *http.Client, req *http.Request, sizeLimit int64) (answer, error) {
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, requesttemplate.WithoutURL(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, sizeLimit+1))
	if err != nil {
		return answer{}, fmt.Errorf("read the body: %w", err)
	}
	if int64(len(body)) > sizeLimit {
		return answer{}, &LimitError{Stream: "body", Limit: sizeLimit}
	}
	got := answer{Status: resp.StatusCode, Headers: make(map[string]any, len(resp.Header)),
		Body: cleanText(string(body))}
	got.RetryAfter = model.RetryAfter(resp.Header, time.Now())
	size := 0
	for name, vals := range resp.Header {
		for _, v := range vals {
			size += len(name) + len(v)
		}
		if len(vals) > 0 {
			got.Headers[strings.ToLower(name)] = cleanText(vals[0])
		}
	}
	if limit := max(sizeLimit, leastHeaders); int64(size) > limit {
		return answer{}, &LimitError{Stream: "headers", Limit: limit}
	}
	return got, nil
}

// leastHeaders is the limit of an answer's headers in bytes, if the limit of its body is lower than this.
const leastHeaders = 64 << 10

// withoutSecrets returns the answer without secrets, for an error.
func (a answer) withoutSecrets(secrets *credential.Secrets) answer {
	a.Body = secrets.Strike(a.Body)
	for name, value := range a.Headers {
		if text, ok := value.(string); ok {
			a.Headers[name] = secrets.Strike(text)
		}
	}
	return a
}
