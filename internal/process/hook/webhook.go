// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/internal/values/sleep"
)

// WebhookConfig describes a webhook.
type WebhookConfig struct {
	Config
	// URL is the http or https address of the webhook. Required.
	URL string
	// Secret signs each message, as Standard Webhooks say: base64, with or without the prefix
	// whsec_. Without one, messages are not signed.
	Secret string
	// Client sends the requests; the default is a new client. Its rule for redirects is replaced:
	// see [NewWebhook].
	Client *http.Client
}

// The limits of a webhook's answer, and the delay before the second attempt.
const (
	answerLimit = 64 << 10 // bytes
	retryDelay  = 500 * time.Millisecond
)

// NewWebhook returns a hook that sends each event as an HTTP POST. Any status from 200 to 299 is an
// answer; with Veto, its body is read, which must be empty or {"veto": true, "reason": "…"}. At
// most three redirects are followed, within the server (scheme, host and port), and only those that
// keep the request unchanged (307 and 308). An event about an action that has ended is sent once
// more if the server answers 5xx.
//
// It fails on an address that is neither http nor https, and on a secret that is not base64 or
// shorter than 16 bytes.
func NewWebhook(cfg WebhookConfig) (*Hook, error) {
	u, err := CheckURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	w := &webhook{url: u.String(), veto: cfg.Veto, client: &http.Client{}}
	name := "webhook " + displayURL(u)
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if cfg.Client != nil {
		*w.client = *cfg.Client
	}
	w.client.CheckRedirect = checkRedirect
	w.secrets.Address(u)
	if cfg.Secret != "" {
		if w.signer, err = NewSigner(cfg.Secret); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return &Hook{name: name, cfg: cfg.Config, call: w.call}, nil
}

// CheckURL parses the address of a webhook. It returns an error for a text that cannot be such
// an address.
func CheckURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("the webhook's address is no URL") // url's own error has all of it, with secrets
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the webhook's address must begin with http:// or https://")
	case u.Hostname() == "":
		return nil, errors.New("the webhook's address has no host")
	}
	return u, nil
}

// displayURL returns an address without the parts that may be secret. With many services the path is
// secret, from its first segment (/bot123:abc/sendMessage) to its last.
func displayURL(u *url.URL) string {
	where := (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	if strings.Trim(u.Path, "/") != "" {
		where += "/…"
	}
	return where
}

func checkRedirect(req *http.Request, via []*http.Request) error {
	switch {
	case req.Method != http.MethodPost, len(via) > 3:
		return http.ErrUseLastResponse // its status is the answer then, and no good one
	case credential.Left(req, via):
		return fmt.Errorf("it redirects to another server, %s, which is not followed; use that address if it is right",
			displayURL(req.URL))
	}
	return nil
}

type webhook struct {
	url     string
	veto    bool
	client  *http.Client
	signer  Signer
	secrets credential.Secrets // in the address
}

func (w *webhook) call(ctx context.Context, ev *Event) error {
	body, err := json.Marshal(ev)
	if err != nil {
		return fmt.Errorf("encode the event: %w", err)
	}
	err = w.send(ctx, ev, body)
	if s, ok := errors.AsType[*statusError](err); !ok || s.code < 500 || ev.Type.Before() {
		return err
	}
	if sleep.For(ctx, retryDelay) != nil {
		return err
	}
	return w.send(ctx, ev, body)
}

func (w *webhook) send(ctx context.Context, ev *Event, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return errors.New("the request cannot be made")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "refrain")
	if err := w.signer.SetHeaders(req.Header, ev.ID, body); err != nil {
		return err
	}
	resp, err := w.client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the address, which may have a secret
		}
		return w.secrets.Error(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit+1))
	switch {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return &statusError{resp.StatusCode}
	case !w.veto || !ev.Type.Before():
		return nil
	case err != nil:
		return fmt.Errorf("read its answer: %w", err)
	case len(answer) > answerLimit:
		return fmt.Errorf("its answer is longer than %d bytes", answerLimit)
	}
	return w.verdict(answer)
}

// verdict returns the verdict of an answer: nil approves.
func (w *webhook) verdict(answer []byte) error {
	veto, reason, err := readVerdict(answer)
	switch {
	case err != nil:
		return fmt.Errorf(`its answer is neither empty nor JSON such as {"veto": true, "reason": "…"}: %s`,
			brief.Line(w.secrets.Strike(err.Error()), reasonText))
	case veto:
		return &VetoError{Reason: brief.Line(w.secrets.Strike(reason), reasonText)}
	}
	return nil
}

// statusError says that a server did not take an event.
type statusError struct{ code int }

func (e *statusError) Error() string {
	return fmt.Sprintf("it answered %d %s", e.code, http.StatusText(e.code))
}
