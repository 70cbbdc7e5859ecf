// SPDX-License-Identifier: Apache-2.0

// Package channel sends short messages to the services with which people notify each other: Slack, Discord, Telegram,
// Teams, ntfy, Mattermost, mail, and any receiver of webhooks.
//
//	ch, err := channel.Parse(os.Getenv("OPS_SLACK"))
//	if err != nil {
//		return err
//	}
//	err = ch.Send(ctx, channel.Message{ID: "r_1.7", Title: "story has ended", Text: "The target was reached."})
//
// An address is a secret: no error and no String of this package contains it.
package channel

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/process/credential"
	"github.com/refrain-dev/refrain/internal/process/hook"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// Message is what people get.
type Message struct {
	// ID is the same when the message is sent again.
	ID string
	// Title is one line, Text may have several. Link is an address to open; it may be empty.
	Title, Text, Link string
	// Record has the whole message as JSON, for a webhook.
	Record json.RawMessage
}

// text returns the message as plain text of at most a number of characters.
func (m *Message) text(most int) string {
	end := "\n" + m.Link + "\n" + m.ID
	if m.Link == "" {
		end = "\n" + m.ID
	}
	return brief.Clip(m.Title+"\n"+m.Text, max(most-len([]rune(end)), 0)) + end
}

// Channel is the address of a service. It is safe for concurrent use.
type Channel struct {
	service string
	url     *url.URL    // of HTTP; of the mail server for mail
	chat    string      // of Telegram; the topic of ntfy
	signer  hook.Signer // of a webhook
	secrets credential.Secrets
}

// String returns the name of the service, such as "slack".
func (c *Channel) String() string { return c.service }

// Error reports that a service has not taken a message.
type Error struct {
	// Status is the status of HTTP; 0 if there is none.
	Status int
	// Reason is what the service said, without secrets.
	Reason string
	// After is how long the service asks to wait; 0 if it does not.
	After time.Duration
}

// Error returns the status and the reason.
func (e *Error) Error() string {
	text := fmt.Sprintf("it answered %d %s", e.Status, http.StatusText(e.Status))
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}

// Permanent reports whether another attempt would get the same answer.
func (e *Error) Permanent() bool {
	return e.Status < 500 && e.Status != http.StatusTooManyRequests && e.Status != http.StatusRequestTimeout
}

// Send sends a message, with one attempt that ends with ctx. It uses the proxies of the environment and follows no redirect.
// The error of a service that answers is an [*Error].
func (c *Channel) Send(ctx context.Context, m Message) error {
	if c.service == mail {
		return c.secrets.Error(c.mail(ctx, m))
	}
	body, err := json.Marshal(c.body(m))
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), bytes.NewReader(body))
	if err != nil {
		return errors.New("the request cannot be made") // its own error has the address
	}
	if user := c.url.User; user != nil {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "refrain")
	if c.service == webhook {
		if err := c.signer.SetHeaders(req.Header, m.ID, body); err != nil {
			return err
		}
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // without the address
		}
		return c.secrets.Error(err)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if resp.StatusCode/100 == 2 {
		return nil
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return &Error{Status: resp.StatusCode, Reason: brief.Line(c.secrets.Strike(string(answer)), 200), After: time.Duration(seconds) * time.Second}
}

// Text of agents mentions nobody: no service reads the name behind a character of no width. Mattermost also reads the mentions of
// Slack, such as <!channel>.
var (
	unmentioned = strings.NewReplacer("@", "@\u200b", "<", "<\u200b")
	escaped     = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;") // of Slack
	unformatted = strings.NewReplacer("@", "@\u200b", "<", "<\u200b", `\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "~", `\~`, "|", `\|`,
		"[", `\[`, "]", `\]`, "#", `\#`, ">", `\>`) // of Markdown
)

// with returns the message with the characters of its title and text replaced.
func (m Message) with(r *strings.Replacer) *Message {
	m.Title, m.Text = r.Replace(m.Title), r.Replace(m.Text)
	return &m
}

// body returns the JSON that a service wants. Text of agents is in it, so each body makes sure that the text mentions nobody, is
// not formatted, and makes the service fetch no address.
func (c *Channel) body(m Message) any {
	type object = map[string]any
	switch c.service {
	case slack:
		return object{"text": escaped.Replace(m.text(3000)), "mrkdwn": false, "unfurl_links": false, "unfurl_media": false}
	case discord:
		const noPreviews = 1 << 2
		return object{"content": m.with(unformatted).text(2000), "allowed_mentions": object{"parse": []string{}}, "flags": noPreviews}
	case telegram:
		return object{"chat_id": c.chat, "text": m.with(unmentioned).text(4096), "link_preview_options": object{"is_disabled": true}}
	case mattermost:
		return object{"text": m.with(unformatted).text(4000)}
	case ntfy:
		body := object{"topic": c.chat, "title": m.Title, "message": (&Message{Title: m.Text, ID: m.ID}).text(3000)}
		if m.Link != "" {
			body["click"] = m.Link
		}
		return body
	case teams:
		run := func(text string, bold bool) object {
			weight := "Default"
			if bold {
				weight = "Bolder"
			}
			return object{"type": "RichTextBlock", "inlines": []object{{"type": "TextRun", "text": text, "weight": weight}}}
		}
		card := object{"type": "AdaptiveCard", "version": "1.4", "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
			"body": []object{run(m.Title, true), run((&Message{Title: m.Text, ID: m.ID}).text(3000), false)}}
		if m.Link != "" {
			card["actions"] = []object{{"type": "Action.OpenUrl", "title": "Open", "url": m.Link}}
		}
		return object{"type": "message", "attachments": []object{{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}}}
	}
	return m.Record
}

// origin returns the address of a server without a path.
func origin(u *url.URL) *url.URL {
	return &url.URL{Scheme: u.Scheme, User: u.User, Host: cmp.Or(u.Host, "localhost")}
}
